"""`python -m pytest_ascend_e2e`: the `ascend-e2e` command where its script is not on PATH."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
