"""A pytest process for tests that kill it: it supervises one run of the fake trainer, under a lock that the run inherits.

`python -m tests.fakes.session_process ROOT LOCK GRACE_S ACTION...`; the name of the run directory is its first line of output.
"""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

from pytest_ascend_e2e.launch import make_ray_home, name_ray_home
from tests.fakes.launching import FakeRun, limits


def main() -> None:
    root, lock, grace_s, *actions = sys.argv[1:]
    with Path(lock).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        home = name_ray_home("test_fake-20261130T150405-5e5e5e")
        make_ray_home(home)
        actions = [action.replace("RAY_HOME", str(home)) for action in actions]
        run = FakeRun(Path(root), *actions, fds=(file.fileno(),), ray_home=home, limits=limits(grace_s=float(grace_s)))
        sys.stdout.write(f"{run.run_id}\n{home}\n")
        sys.stdout.flush()
        run.supervisor.run()


if __name__ == "__main__":
    main()
