"""Datasets that somebody prepared for verl already, lying ready below the root of the datasets.

Must not know: what is in them. Names that the project prepares itself (gsm8k, geometry3k) are another room's.
"""

from __future__ import annotations

import os
from pathlib import Path


def ready_files(name: str, root: Path) -> tuple[Path, Path] | None:
    """Return the files to train from and to validate with, None where there are none.

    They are `<root>/<name>/train.parquet` and `test.parquet` beside it, or `<root>/<name>.parquet` for both.
    """
    train, test, both = root / name / "train.parquet", root / name / "test.parquet", root / f"{name}.parquet"
    if os.path.isfile(train) and os.path.isfile(test):  # noqa: PTH113  # Path.is_file() raises where a directory above is closed
        return train, test
    return (both, both) if os.path.isfile(both) else None  # noqa: PTH113  # as above


def ready_names(root: Path) -> list[str]:
    """Return the names of what lies directly below a root, sorted."""
    singles = {path.stem for path in root.glob("*.parquet")}
    return sorted(singles | {path.parent.name for path in root.glob("*/train.parquet") if ready_files(path.parent.name, root)})
