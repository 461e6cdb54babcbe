"""What was given where a log is expected, and is none.

Must not know: how a log is read, or what in it counts.
"""

from __future__ import annotations

import codecs
from pathlib import Path

_HEAD_BYTES = 256
_XML = (b"<?xml", b"<testsuite")


def not_a_log(path: Path) -> str | None:
    """Return what is wrong with a file that holds the report of a session; None for any other, and for one that cannot be read.

    Of such a file each line could be taken for one of a log that shows nothing.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    if not head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(_XML):
        return None
    return (
        f"{str(path)!r} is the JUnit file of a session; expected the directory of a run, or a log: the property e2e_run_dir of its "
        "cases names their directories, and `pytest --e2e-from` repeats the cases"
    )
