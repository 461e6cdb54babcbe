"""The page of a CI's job, on which GitHub and Gitea show what a job appends to a file.

Must not know: what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import ReportError

VARIABLE = "GITHUB_STEP_SUMMARY"


def append_page(page: str, environ: Mapping[str, str]) -> None:
    """Show a page of Markdown on that of the CI's job, where there is one.

    Raises:
        ReportError: there is one, and it cannot be written.
    """
    path = environ.get(VARIABLE)
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as shown:
            shown.write(page)
    except OSError as error:
        raise ReportError(f"{VARIABLE}: {path} cannot be written: {error.strerror or error}") from error
