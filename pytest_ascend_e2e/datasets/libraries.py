"""The optional libraries of this room, imported when they are needed.

Must not know: what they are used for.
"""

from __future__ import annotations

from typing import Any

from ..errors import DatasetError

_ADVICE = "install it, or pytest-ascend-e2e[data], into this Python; verl itself needs it too"


def import_arrow() -> Any:
    """Return the module `pyarrow` with its submodules for parquet.

    Raises:
        DatasetError: not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  # optional
        import pyarrow.parquet  # noqa: PLC0415  # loads the submodule
    except ImportError as error:
        raise DatasetError(f"pyarrow cannot be imported ({error}): {_ADVICE}") from error
    return pa


def import_pillow() -> Any:
    """Return the module `PIL` with `Image`, `ImageDraw` and `ImageFont`.

    Raises:
        DatasetError: not installed.
    """
    try:
        import PIL  # noqa: PLC0415  # optional
        from PIL import Image, ImageDraw, ImageFont  # noqa: F401, PLC0415  # loads the submodules
    except ImportError as error:
        raise DatasetError(f"Pillow cannot be imported ({error}): {_ADVICE}") from error
    return PIL
