"""A dataset by its name, prepared for verl: from raw data where they are, else generated where that is allowed.

Owns what each dataset is called, where its raw data lie and which rows are taken. Must not know: recipes, runners, models.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import TYPE_CHECKING, Any

from ..deadline import Deadline
from ..errors import DatasetError, did_you_mean
from .cache import filled_entry
from .conversion import Row, convert_geometry3k, convert_gsm8k, schema
from .difficulty import Difficulty
from .geometry_problems import geometry_rows
from .libraries import import_arrow, import_pillow
from .raw import SPLITS, RawDataset, RawFile, find_files, find_raw, layouts_text, read_rows
from .word_problems import word_rows

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1  # raised when the same input shall give other files although no source of this room changed

_SHOWN_PROBLEMS = 10
_LOCK_LIMIT_S = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedDataset:
    """Files that verl can train from, with the number of their rows; `origin` says in words where the rows come from.

    `key` names the content: equal keys, equal rows.
    """

    name: str
    train_files: Path
    val_files: Path
    train_rows: int
    val_rows: int
    origin: str
    key: str

    def describe(self) -> str:
        """Return one line for a reader."""
        return f"{self.name}: {self.train_rows} rows to train, {self.val_rows} to validate; {self.origin}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Dataset:
    """What must be known of a dataset; `generated_rows` are the rows for train and test when no size is asked for."""

    repository: str
    config: str | None
    configs: tuple[str, ...]
    columns: tuple[str, ...]
    convert: Callable[[Mapping[str, Any], int, str], tuple[Row, list[str]]]
    generate: Callable[..., Iterator[Row]]
    generated_rows: tuple[int, int]
    has_pictures: bool


_DATASETS: Mapping[str, _Dataset] = {
    "geometry3k": _Dataset(
        repository="hiyouga/geometry3k",
        config=None,
        configs=(),
        columns=("problem", "answer", "images"),
        convert=convert_geometry3k,
        generate=geometry_rows,
        generated_rows=(512, 64),
        has_pictures=True,
    ),
    "gsm8k": _Dataset(
        repository="openai/gsm8k",
        config="main",
        configs=("main", "socratic"),
        columns=("question", "answer"),
        convert=convert_gsm8k,
        generate=word_rows,
        generated_rows=(2048, 128),
        has_pictures=False,
    ),
}

NAMES = tuple(_DATASETS)


def prepare(
    name: str,
    *,
    raw_root: Path,
    cache_root: Path,
    seed: int = 0,
    train_size: int | None = None,
    val_size: int | None = None,
    generate: Difficulty | None = None,
    deadline: Deadline | None = None,
) -> PreparedDataset:
    """Return `geometry3k` or `gsm8k` as verl's own examples prepare them, as `train.parquet` and `test.parquet` in a cache.

    Raw data are looked for in `raw_root` under the dataset's name on the hub. A size takes the first so many rows after a shuffle
    by `seed`; without one all rows are taken in their own order. `extra_info.index` is the row's place in its raw split.
    `generate` allows problems of that difficulty, drawn by `seed`, where there are no raw data; None makes their absence an error.

    Raises:
        DatasetError: no raw data and none may be generated, data that cannot be used (all problems together), a size that cannot
            be had, or a cache that cannot be written or that another process holds until `deadline` (default: 10 minutes).
    """
    sizes = {"train": train_size, "test": val_size}
    dataset = _known(name, sizes)
    import_arrow()
    folder = raw_root.expanduser() / dataset.repository
    raw = find_raw(folder, config=dataset.config, configs=dataset.configs)
    if raw is not None:
        source = _raw_source(dataset, raw, sizes, seed)
    elif generate is not None:
        source = _generated_source(dataset, sizes, seed, generate)
    else:
        raise DatasetError(_absent(name, dataset, folder))

    def fill(directory: Path) -> Mapping[str, Any]:
        rows = source.rows()
        for split in SPLITS:
            _write(directory / f"{split}.parquet", rows[split], dataset)
        return {"rows": {split: len(rows[split]) for split in SPLITS}}

    entry, facts = filled_entry(
        cache_root.expanduser(),
        name,
        parameters={"dataset": name, "version": VERSION, "code": _code_sha256(), **source.parameters},
        fill=fill,
        deadline=deadline or Deadline.after(_LOCK_LIMIT_S, name="preparing a dataset"),
    )
    return PreparedDataset(
        name=name,
        train_files=entry / "train.parquet",
        val_files=entry / "test.parquet",
        train_rows=facts["rows"]["train"],
        val_rows=facts["rows"]["test"],
        origin=source.origin,
        key=entry.name.rpartition("-")[2],
    )


def nearest(name: str, names: Collection[str] = NAMES, *, likeness: float = 0.6) -> list[str]:
    """Return the one name that somebody may have meant, or none.

    A name of the hub counts by its last part. One that goes on after a known name, such as `gsm8k_sft`, is a name of its own.
    """
    if name.startswith(tuple(f"{known}{mark}" for known in names for mark in "_-.")):
        return []
    wanted = name.rstrip("/").rpartition("/")[2].lower()
    return difflib.get_close_matches(wanted, names, n=1, cutoff=likeness)


def name_problem(name: str) -> str | None:
    """Return what is wrong with a name of a dataset to be prepared, None for a known one."""
    if name in _DATASETS:
        return None
    hint = did_you_mean(nearest(name), before="; ")
    return f"dataset {name!r} is not known; expected one of {', '.join(map(repr, _DATASETS))}{hint}"


def raw_problems(name: str, raw_root: Path) -> list[str]:
    """Return what keeps the raw data of a dataset from being prepared, as far as is seen without reading them: one text each."""
    try:
        dataset = _known(name, {})
        folder = raw_root.expanduser() / dataset.repository
        files = find_files(folder, config=dataset.config, configs=dataset.configs)
    except DatasetError as error:
        return list(error.problems)
    if files is None:
        return [_absent(name, dataset, folder)]
    unreadable = [path for paths in files.values() for path in paths if not os.access(path, os.R_OK)]
    return [f"{path}: cannot be read; make it readable for this user" for path in unreadable]


def _absent(name: str, dataset: _Dataset, folder: Path) -> str:
    return (
        f"{name}: no raw data in {folder}; put there {layouts_text(dataset.config)}, for example by "
        f"hf download --repo-type dataset {dataset.repository} --local-dir {folder}"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """Where the rows come from, in words and as what a cache key is made from; `rows` makes them."""

    origin: str
    parameters: Mapping[str, Any]
    rows: Callable[[], Mapping[str, list[Row]]]


def _known(name: str, sizes: Mapping[str, int | None]) -> _Dataset:
    unknown = name_problem(name)
    problems = [] if unknown is None else [unknown]
    for split, size in sizes.items():
        if size is not None and size < 1:
            option = "train_size" if split == "train" else "val_size"
            problems.append(
                f"{option}={size!r} of the dataset {name!r} cannot be used; expected a positive number, or None for all rows"
            )
    if problems:
        raise DatasetError(*problems)
    return _DATASETS[name]


def _raw_source(dataset: _Dataset, raw: RawDataset, sizes: Mapping[str, int | None], seed: int) -> _Source:
    def rows() -> Mapping[str, list[Row]]:
        problems: list[str] = []
        all_rows = {split: _converted(dataset, raw, split, problems) for split in SPLITS}
        if not problems:
            problems += [text for split in SPLITS for text in _lacks(raw, split, all_rows[split], sizes[split])]
        if problems:
            raise DatasetError(*_first(problems))
        return {split: _chosen(all_rows[split], sizes[split], f"{seed} {split}") for split in SPLITS}

    files = {
        split: [[str(file.path.relative_to(raw.folder)), file.size, file.sha256] for file in raw.splits[split]] for split in SPLITS
    }
    is_shuffled = any(size is not None for size in sizes.values())
    return _Source(
        origin=f"raw data in {raw.folder}",
        parameters={"raw": files, "sizes": sizes, "seed": seed if is_shuffled else None},
        rows=rows,
    )


def _generated_source(dataset: _Dataset, sizes: Mapping[str, int | None], seed: int, difficulty: Difficulty) -> _Source:
    counts = {split: sizes[split] or usual for split, usual in zip(SPLITS, dataset.generated_rows, strict=True)}
    pillow = import_pillow().__version__ if dataset.has_pictures else None

    def rows() -> Mapping[str, list[Row]]:
        problems: list[str] = []
        made = {}
        for split in SPLITS:
            stream = itertools.islice(dataset.generate(split, seed=seed, difficulty=difficulty), counts[split])
            made[split] = _rows_of(dataset, ((f"generated {split} problem", raw) for raw in stream), split, problems)
        if problems:
            raise RuntimeError(f"the generator of {dataset.repository} made rows that cannot be used: {_first(problems)}")
        return made

    return _Source(
        origin=f"generated, seed {seed}, difficulty {difficulty.value}",
        parameters={"generated": difficulty.value, "sizes": counts, "seed": seed, "pillow": pillow},
        rows=rows,
    )


def _converted(dataset: _Dataset, raw: RawDataset, split: str, problems: list[str]) -> list[Row]:
    """Return all rows of a split for verl, and add to `problems` what is wrong with its files and rows."""
    placed = [row for file in raw.splits[split] for row in _placed(file, dataset.columns, problems)]
    return _rows_of(dataset, placed, split, problems)


def _placed(file: RawFile, columns: Sequence[str], problems: list[str]) -> list[tuple[str, Row]]:
    """Return each row of a file with where it stands; what makes the file unreadable is added to `problems`."""
    try:
        return [(f"{file.path}, row {number}", row) for number, row in enumerate(read_rows(file, columns))]
    except DatasetError as error:
        problems += error.problems
        return []


def _rows_of(dataset: _Dataset, placed: Iterable[tuple[str, Row]], split: str, problems: list[str]) -> list[Row]:
    rows = []
    for index, (place, raw) in enumerate(placed):
        row, flaws = dataset.convert(raw, index, split)
        problems += [f"{place}: {flaw}" for flaw in flaws]
        rows.append(row)
    return rows


def _lacks(raw: RawDataset, split: str, rows: Sequence[Row], size: int | None) -> Iterator[str]:
    names = ", ".join(str(file.path) for file in raw.splits[split])
    if not rows:
        yield f"{names}: the split {split!r} has no rows; copy the dataset again"
    elif size is not None and size > len(rows):
        yield f"{names}: the split {split!r} has {len(rows)} rows, and {size} were asked for; ask for fewer, or for all (None)"


def _chosen(rows: list[Row], size: int | None, seed: str) -> list[Row]:
    """Return all rows in their order, or the first `size` after a shuffle."""
    if size is None:
        return rows
    order = list(range(len(rows)))
    Random(seed).shuffle(order)  # noqa: S311  # repeatable, not secret
    return [rows[index] for index in order[:size]]


def _first(problems: Sequence[str]) -> Sequence[str]:
    more = len(problems) - _SHOWN_PROBLEMS
    return problems if more <= 0 else [*problems[:_SHOWN_PROBLEMS], f"and {more} more"]


def _write(path: Path, rows: list[Row], dataset: _Dataset) -> None:
    pa = import_arrow()
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=schema(dataset.columns)), path)


def _code_sha256() -> str:
    """Return a hash of the sources of this room: a change of any of them makes new cache entries."""
    digest = hashlib.sha256()
    for source in sorted(resources.files(__package__).iterdir(), key=lambda source: source.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()
