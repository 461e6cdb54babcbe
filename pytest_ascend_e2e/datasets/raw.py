"""The raw datasets as they lie on a runner: which files hold which split, and the rows in them.

Owns the directory layouts that Hugging Face's tools produce. Must not know: what the rows are prepared for, the cache.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ..errors import DatasetError
from .libraries import import_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SPLITS = ("train", "test")

_SHARD = r"(?:-(?P<index>\d{5})-of-(?P<count>\d{5})(?:-[0-9a-f]{16})?)?"
_BY_NAME = re.compile(rf"(?:[\w.]+-)?(?P<split>train|test){_SHARD}\.(?P<ending>parquet|arrow)")
_BY_FOLDER = re.compile(r"data-(?P<index>\d{5})-of-(?P<count>\d{5})\.(?P<ending>arrow)|(?P<number>\d{4})\.(?P<converted>parquet)")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class RawFile:
    """One file of a split: where it lies, its size in bytes, and the SHA-256 of its content."""

    path: Path
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RawDataset:
    """The files of each split, in the order of their rows; `folder` is the dataset's directory."""

    folder: Path
    splits: Mapping[str, Sequence[RawFile]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """A file that looks like a part of a split; `group` is the directory that holds all parts of all splits of one copy."""

    path: Path
    group: PurePath
    layout: str
    split: str
    index: int
    count: int | None


def find_raw(folder: Path, *, config: str | None, configs: Sequence[str]) -> RawDataset | None:
    """Return the files of a dataset below `folder`, None where there is no such directory or it is empty.

    `config` is the one to take of those that the dataset has (`configs`). Where several layouts lie side by side, parquet is taken
    first, then what `save_to_disk` wrote, then the cache of `load_dataset`.

    Raises:
        DatasetError: unreadable, no file of a known layout, a split or a part of one is missing, or there are two copies.
    """
    files = find_files(folder, config=config, configs=configs)
    if files is None:
        return None
    return RawDataset(folder=folder, splits={split: tuple(map(_hashed, paths)) for split, paths in files.items()})


def find_files(folder: Path, *, config: str | None, configs: Sequence[str]) -> Mapping[str, Sequence[Path]] | None:
    """Return what `find_raw` would read, by split and in order, without reading it.

    Raises:
        DatasetError: as `find_raw`.
    """
    names = _walk(folder)
    if not names:
        return None
    unwanted = {other for other in configs if other != config}
    found = [part for name in names if not unwanted & set(name.parts) for part in _recognised(folder, name)]
    if not found:
        raise DatasetError(
            f"{folder}: none of its {len(names)} files is a split of a dataset ({names[0]}, ...); expected {layouts_text(config)}"
        )
    layout = min(part.layout for part in found)
    parts = [part for part in found if part.layout == layout]
    groups = sorted({str(part.group) for part in parts})
    if len(groups) > 1:
        raise DatasetError(
            f"{folder}: {len(groups)} copies of the dataset ({', '.join(groups)}); keep one, so that it is clear which is meant"
        )
    problems = [problem for split in SPLITS for problem in _gaps(folder, split, [part for part in parts if part.split == split])]
    if problems:
        raise DatasetError(*problems)
    ordered = sorted(parts, key=lambda part: part.index)
    return {split: [part.path for part in ordered if part.split == split] for split in SPLITS}


def layouts_text(config: str | None) -> str:
    """Return the accepted layouts as a text for an error."""
    parquet = f"{config or 'data'}/train-00000-of-00001.parquet (as on the Hugging Face hub)"
    return f"{parquet}, train/data-00000-of-00001.arrow (save_to_disk) or *-train.arrow (its cache), the same for test"


def read_rows(file: RawFile, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file with the named columns.

    Raises:
        DatasetError: the file changed since it was found, is no parquet or Arrow file, or lacks a column.
    """
    arrow = import_arrow()
    content = _content(file)
    try:
        table = _parquet(content, columns) if file.path.suffix == ".parquet" else _arrow(content)
    except (arrow.ArrowException, OSError) as error:
        raise DatasetError(
            f"{file.path}: not a readable {file.path.suffix[1:]} file ({_first_line(error)}); copy it again"
        ) from error
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise DatasetError(
            f"{file.path}: no column {' and no column '.join(map(repr, missing))}; found {', '.join(map(repr, table.column_names))}"
            + (
                "; this file is already prepared for verl, the raw dataset is needed"
                if "reward_model" in table.column_names
                else ""
            )
        )
    yield from table.select(list(columns)).to_pylist()


def _walk(folder: Path) -> list[PurePath]:
    """Return the names of all files below a directory, relative to it and sorted."""
    if not os.path.lexists(folder):
        return []
    problems: list[str] = []

    def note(error: OSError) -> None:
        problems.append(f"{error.filename}: cannot be read ({error.strerror}); a directory with the raw dataset is expected here")

    names = [Path(place, name).relative_to(folder) for place, _, files in os.walk(folder, onerror=note) for name in files]
    if problems:
        raise DatasetError(*problems)
    return sorted(names)


def _recognised(folder: Path, name: PurePath) -> Iterator[_Found]:
    path = folder / name
    if by_name := _BY_NAME.fullmatch(name.name):
        is_parquet = by_name["ending"] == "parquet"
        index, count = int(by_name["index"] or 0), int(by_name["count"]) if by_name["count"] else None
        yield _Found(
            path=path,
            group=name.parent,
            layout="1 parquet" if is_parquet else "3 cache",
            split=by_name["split"],
            index=index,
            count=count,
        )
    elif (by_folder := _BY_FOLDER.fullmatch(name.name)) and name.parent.name in SPLITS:
        is_arrow = by_folder["ending"] is not None
        index = int(by_folder["index"] or by_folder["number"])
        count = int(by_folder["count"]) if is_arrow else None
        yield _Found(
            path=path,
            group=name.parent.parent,
            layout="2 saved" if is_arrow else "1 parquet",
            split=name.parent.name,
            index=index,
            count=count,
        )


def _gaps(folder: Path, split: str, parts: Sequence[_Found]) -> Iterator[str]:
    """Yield what keeps some files from being one whole split."""
    if not parts:
        yield f"{folder}: no file of the split {split!r}; copy the whole dataset"
        return
    by_index: dict[int, list[str]] = defaultdict(list)
    for part in parts:
        by_index[part.index].append(part.path.name)
    counts = {part.count for part in parts}
    for names in by_index.values():
        if len(names) > 1:
            yield f"{folder}: several files claim the same rows of the split {split!r}: {', '.join(sorted(names))}; keep one"
    if len(counts) > 1:
        yield f"{folder}: files of the split {split!r} belong to different copies: {', '.join(part.path.name for part in parts)}"
        return
    count = counts.pop()
    expected = range(count if count is not None else max(by_index) + 1)
    absent = ", ".join(str(index) for index in expected if index not in by_index)
    if absent:
        yield f"{folder}: the split {split!r} has {len(expected)} parts, counted from 0, and of these {absent} is not there"


def _hashed(path: Path) -> RawFile:
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}); make it readable for this user") from error
    return RawFile(path=path, size=size, sha256=digest.hexdigest())


def _content(file: RawFile) -> bytes:
    try:
        content = file.path.read_bytes()
    except OSError as error:
        raise DatasetError(f"{file.path}: cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise DatasetError(f"{file.path}: was changed while it was being read; try again when it is complete")
    return content


def _parquet(content: bytes, columns: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # only who reads needs pyarrow
    from pyarrow import parquet  # noqa: PLC0415  # as above

    file = parquet.ParquetFile(pa.BufferReader(content))
    names = file.schema_arrow.names
    return file.read(columns=list(columns)) if set(columns) <= set(names) else file.schema_arrow.empty_table()


def _arrow(content: bytes) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # only who reads needs pyarrow

    # `datasets` writes the stream format; the file format has its own magic and may come from elsewhere.
    opened = pa.ipc.open_file if content.startswith(b"ARROW1") else pa.ipc.open_stream
    return opened(pa.BufferReader(content)).read_all()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
