"""Files that others read, written whole or not at all.

Must not know: what stands in them. Files of a run, which must be on the disk when the host dies, are written by `launch`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from .errors import E2EError


def write_whole(path: Path, text: str, error: Callable[[str], E2EError] = E2EError) -> None:
    """Write a text (UTF-8, what that cannot hold as an escape) in one step, into a directory that is made if need be.

    Raises:
        E2EError: it cannot be written; of the kind that `error` makes.
    """
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"  # also of a path without a name, as . is
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
        temporary.replace(path)
    except OSError as wrong:
        raise error(f"{path}: cannot be written: {wrong.strerror or wrong}; choose another place") from wrong
    finally:
        with contextlib.suppress(OSError):  # replaced, or never there: the error above tells more
            temporary.unlink()
