"""Raw datasets are found in every layout of Hugging Face's tools, whole or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ascend_e2e.datasets.raw import find_raw, read_rows
from pytest_ascend_e2e.errors import DatasetError
from tests.fakes.raw_data import GEOMETRY3K, GSM8K, geometry_rows, word_rows, write_arrow, write_gsm8k, write_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONFIGS = ("main", "socratic")


def questions(folder: Path, split: str, *, config: str | None = "main", configs: Sequence[str] = CONFIGS) -> list[str]:
    raw = find_raw(folder, config=config, configs=configs)
    assert raw is not None
    return [row["question"] for file in raw.splits[split] for row in read_rows(file, ["question", "answer"])]


def expected(count: int, *, first: int = 0) -> list[str]:
    return [row["question"] for row in word_rows(count, first=first)]


def problems_of(folder: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        questions(folder, "train")
    return str(caught.value)


def test_hub_layout_gives_the_wanted_configuration(tmp_path: Path) -> None:
    folder = write_gsm8k(tmp_path, train=word_rows(5), test=word_rows(2, first=50))

    assert questions(folder, "train") == expected(5)
    assert questions(folder, "test") == expected(2, first=50)
    raw = find_raw(folder, config="main", configs=CONFIGS)
    assert raw is not None
    assert {file.path.parent.name for split in raw.splits.values() for file in split} == {"main"}


def test_shards_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for index in (10, 2, 0, *range(3, 10), 1):
        write_parquet(tmp_path / f"data/train-{index:05d}-of-00011.parquet", word_rows(2, first=2 * index), GSM8K)
    write_parquet(tmp_path / "data/test-00000-of-00001.parquet", word_rows(1), GSM8K)

    assert questions(tmp_path, "train") == expected(22)


@pytest.mark.parametrize("above", ["", "main"])
def test_save_to_disk_layout(tmp_path: Path, above: str) -> None:
    folder = tmp_path / above
    write_arrow(folder / "train/data-00000-of-00002.arrow", word_rows(4), GSM8K)
    write_arrow(folder / "train/data-00001-of-00002.arrow", word_rows(4, first=4), GSM8K)
    write_arrow(folder / "test/data-00000-of-00001.arrow", word_rows(1), GSM8K)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    (folder / "train/state.json").write_text("{}")

    assert questions(tmp_path, "train") == expected(8)


def test_nested_cache_layout_without_the_caches_of_maps(tmp_path: Path) -> None:
    place = tmp_path / "default/0.0.0/0123abc"
    for split in ("train", "test", "validation"):
        write_arrow(place / f"geometry3k-{split}.arrow", geometry_rows(3), GEOMETRY3K)
    write_arrow(place / "cache-0123456789abcdef.arrow", word_rows(1), GSM8K)
    raw = find_raw(tmp_path, config=None, configs=())

    assert raw is not None
    assert [file.path.name for file in raw.splits["train"]] == ["geometry3k-train.arrow"]
    assert [row["answer"] for row in read_rows(raw.splits["test"][0], ["problem", "answer", "images"])] == ["0", "1", "2"]


def test_cache_layout_in_shards_and_with_configurations(tmp_path: Path) -> None:
    for config in CONFIGS:
        for index in range(2):
            rows = word_rows(2, first=2 * index + (100 if config == "socratic" else 0))
            write_arrow(tmp_path / f"{config}/0.0.0/h/gsm8k-train-{index:05d}-of-00002.arrow", rows, GSM8K)
        write_arrow(tmp_path / f"{config}/0.0.0/h/gsm8k-test.arrow", word_rows(1), GSM8K)

    assert questions(tmp_path, "train") == expected(4)


def test_converted_layout_with_a_directory_for_each_split(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for index in range(2):
            write_parquet(tmp_path / f"main/{split}/{index:04d}.parquet", word_rows(2, first=2 * index), GSM8K)

    assert questions(tmp_path, "test") == expected(4)


def test_arrow_file_format_is_read_like_the_stream_format(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_arrow(tmp_path / f"gsm8k-{split}.arrow", word_rows(7), GSM8K, is_stream=False)

    assert questions(tmp_path, "train") == expected(7)


def test_parquet_is_preferred_to_arrow_beside_it(tmp_path: Path) -> None:
    write_gsm8k(tmp_path, train=word_rows(1), test=word_rows(1))
    folder = tmp_path / "openai/gsm8k"
    write_arrow(folder / "main/0.0.0/h/gsm8k-train.arrow", word_rows(9), GSM8K)

    assert questions(folder, "train") == expected(1)


@pytest.mark.parametrize("exists", [True, False])
def test_absent_or_empty_directory_is_no_dataset(tmp_path: Path, *, exists: bool) -> None:
    folder = tmp_path / "data"
    if exists:
        folder.mkdir()

    assert find_raw(folder, config=None, configs=()) is None


def test_directory_without_a_known_layout_is_an_error_that_names_the_layouts(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("soon")

    text = problems_of(tmp_path)

    assert "none of its 1 files is a split of a dataset (readme.md, ...)" in text
    assert "main/train-00000-of-00001.parquet" in text


def test_missing_split_is_an_error(tmp_path: Path) -> None:
    write_parquet(tmp_path / "main/train-00000-of-00001.parquet", word_rows(1), GSM8K)

    assert problems_of(tmp_path) == f"{tmp_path}: no file of the split 'test'; copy the whole dataset"


def test_missing_shards_of_all_splits_are_told_together(tmp_path: Path) -> None:
    write_parquet(tmp_path / "main/train-00001-of-00003.parquet", word_rows(1), GSM8K)
    write_parquet(tmp_path / "main/test-00000-of-00002.parquet", word_rows(1), GSM8K)

    lines = problems_of(tmp_path).splitlines()

    assert [line.partition(": ")[2] for line in lines] == [
        "the split 'train' has 3 parts, counted from 0, and of these 0, 2 is not there",
        "the split 'test' has 2 parts, counted from 0, and of these 1 is not there",
    ]


def test_shards_of_two_copies_in_one_directory_are_an_error(tmp_path: Path) -> None:
    write_parquet(tmp_path / "train-00000-of-00002.parquet", word_rows(1), GSM8K)
    write_parquet(tmp_path / "train-00001-of-00003.parquet", word_rows(1), GSM8K)
    write_parquet(tmp_path / "test.parquet", word_rows(1), GSM8K)

    assert "belong to different copies" in problems_of(tmp_path)


def test_two_files_for_the_same_rows_are_an_error(tmp_path: Path) -> None:
    for name in ("train.parquet", "gsm8k-train.parquet", "test.parquet"):
        write_parquet(tmp_path / name, word_rows(1), GSM8K)

    assert "several files claim the same rows of the split 'train': gsm8k-train.parquet, train.parquet" in problems_of(tmp_path)


def test_two_copies_in_two_directories_are_an_error(tmp_path: Path) -> None:
    for revision in ("1a", "2b"):
        for split in ("train", "test"):
            write_parquet(tmp_path / f"snapshots/{revision}/main/{split}-00000-of-00001.parquet", word_rows(1), GSM8K)

    assert "2 copies of the dataset (snapshots/1a/main, snapshots/2b/main)" in problems_of(tmp_path)


@pytest.mark.parametrize("name", ["main/train-00000-of-00001.parquet", "main/test-00000-of-00001.parquet"])
def test_file_that_is_not_parquet_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    folder = write_gsm8k(tmp_path, train=word_rows(1), test=word_rows(1))
    (folder / name).write_bytes(b"<html>not found</html>")

    with pytest.raises(DatasetError) as caught:
        questions(folder, name[5:].partition("-")[0])

    assert str(caught.value).startswith(f"{folder / name}: not a readable parquet file (")


def test_cut_arrow_file_is_an_error(tmp_path: Path) -> None:
    for split in ("train", "test"):
        path = write_arrow(tmp_path / f"gsm8k-{split}.arrow", word_rows(30), GSM8K)
    whole = (tmp_path / "gsm8k-train.arrow").read_bytes()
    (tmp_path / "gsm8k-train.arrow").write_bytes(whole[: len(whole) // 2])

    assert "not a readable arrow file" in problems_of(tmp_path)
    assert path.exists()


def test_missing_column_is_an_error_that_tells_what_was_found(tmp_path: Path) -> None:
    folder = write_gsm8k(tmp_path, train=word_rows(1), test=word_rows(1))
    raw = find_raw(folder, config="main", configs=CONFIGS)
    assert raw is not None

    with pytest.raises(DatasetError, match=r"no column 'problem' and no column 'images'; found 'question', 'answer'$"):
        list(read_rows(raw.splits["train"][0], ["problem", "answer", "images"]))


def test_file_that_changes_after_it_was_found_is_an_error(tmp_path: Path) -> None:
    folder = write_gsm8k(tmp_path, train=word_rows(1), test=word_rows(1))
    raw = find_raw(folder, config="main", configs=CONFIGS)
    assert raw is not None
    write_gsm8k(tmp_path, train=word_rows(2), test=word_rows(1))

    with pytest.raises(DatasetError, match="was changed while it was being read"):
        list(read_rows(raw.splits["train"][0], ["question"]))


def test_file_in_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "gsm8k").write_text("a file")

    assert "cannot be read (Not a directory)" in problems_of(tmp_path / "gsm8k")
