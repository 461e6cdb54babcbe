"""Raw datasets as Hugging Face's tools lay them down, with rows of our own."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from PIL import Image
from pyarrow import parquet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Row = dict[str, Any]

IMAGES = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
GEOMETRY3K = pa.schema([("images", IMAGES), ("problem", pa.string()), ("answer", pa.string())])
GSM8K = pa.schema([("question", pa.string()), ("answer", pa.string())])


def picture(shade: int = 200, *, mode: str = "RGB", encoding: str = "PNG") -> bytes:
    """Return a small picture of one grey in one of Pillow's modes."""
    content = io.BytesIO()
    Image.new("L", (40, 30), shade).convert(mode).save(content, encoding)
    return content.getvalue()


def geometry_rows(count: int, *, first: int = 0) -> list[Row]:
    """Return rows that are told apart by their answer: `first`, `first` + 1, ..."""
    return [
        {
            "problem": f"<image>Find side {number} of the figure.",
            "answer": str(number),
            "images": [{"bytes": picture(number % 250), "path": None}],
        }
        for number in range(first, first + count)
    ]


def word_rows(count: int, *, first: int = 0) -> list[Row]:
    """Return rows that are told apart by their final number: `first`, `first` + 1, ..."""
    return [
        {"question": f"What is 0 + {number}?", "answer": f"0 + {number} = <<0+{number}={number}>>{number}\n#### {number}"}
        for number in range(first, first + count)
    ]


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> Path:
    """Write one parquet file as on the hub."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return path


def write_arrow(path: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema, *, is_stream: bool = True) -> Path:
    """Write one Arrow file: a stream, as `datasets` does, or the file format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(list(rows), schema=schema)
    with path.open("wb") as sink, (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(sink, schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return path


def write_gsm8k(raw_root: Path, *, train: Sequence[Row], test: Sequence[Row]) -> Path:
    """Write gsm8k as the hub has it, with both of its configurations; return its directory."""
    folder = raw_root / "openai/gsm8k"
    for split, rows in (("train", train), ("test", test)):
        write_parquet(folder / f"main/{split}-00000-of-00001.parquet", rows, GSM8K)
        socratic = [{**row, "answer": f"Why? ** {row['answer']}"} for row in rows]
        write_parquet(folder / f"socratic/{split}-00000-of-00001.parquet", socratic, GSM8K)
    return folder


def write_geometry3k(raw_root: Path, *, train: Sequence[Row], test: Sequence[Row]) -> Path:
    """Write geometry3k as the hub has it, with its three splits; return its directory."""
    folder = raw_root / "hiyouga/geometry3k"
    for split, rows in (("train", train), ("test", test), ("validation", test)):
        write_parquet(folder / f"data/{split}-00000-of-00001.parquet", rows, GEOMETRY3K)
    return folder
