"""A dataset by its name: raw where there is raw data, generated where that is allowed, an error elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from pytest_ascend_e2e.datasets import Difficulty, PreparedDataset, prepare, raw_problems
from pytest_ascend_e2e.errors import DatasetError
from tests.fakes.raw_data import GSM8K, geometry_rows, word_rows, write_geometry3k, write_gsm8k, write_parquet


def prepared(tmp_path: Path, name: str = "gsm8k", **options: Any) -> PreparedDataset:
    return prepare(name, raw_root=tmp_path / "raw", cache_root=tmp_path / "cache", **options)  # type: ignore[misc, unused-ignore]  # Any


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def truths(path: Path) -> list[int]:
    return [int(row["reward_model"]["ground_truth"]) for row in rows_of(path)]


def problems_of(tmp_path: Path, name: str = "gsm8k", **options: Any) -> tuple[str, ...]:
    with pytest.raises(DatasetError) as caught:
        prepared(tmp_path, name, **options)
    cache = tmp_path / "cache"
    assert [path.name for path in cache.glob("*") if path.name != ".lock"] == []
    return caught.value.problems


def test_raw_gsm8k_is_prepared_whole_and_in_its_order(tmp_path: Path) -> None:
    folder = write_gsm8k(tmp_path / "raw", train=word_rows(20), test=word_rows(5, first=100))

    dataset = prepared(tmp_path)

    assert truths(dataset.train_files) == list(range(20))
    assert truths(dataset.val_files) == list(range(100, 105))
    assert (dataset.train_rows, dataset.val_rows) == (20, 5)
    assert dataset.origin == f"raw data in {folder}"
    assert dataset.describe() == f"gsm8k: 20 rows to train, 5 to validate; raw data in {folder}"


def test_raw_geometry3k_keeps_its_pictures(tmp_path: Path) -> None:
    raw = geometry_rows(4)
    write_geometry3k(tmp_path / "raw", train=raw, test=geometry_rows(2))

    dataset = prepared(tmp_path, "geometry3k")

    assert [row["images"] for row in rows_of(dataset.train_files)] == [row["images"] for row in raw]
    assert {row["data_source"] for row in rows_of(dataset.val_files)} == {"hiyouga/geometry3k"}


def test_raw_data_are_preferred_to_generated_ones(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(3), test=word_rows(1))

    assert prepared(tmp_path, generate=Difficulty.SIMPLE).origin.startswith("raw data in")


def test_size_takes_the_first_rows_after_a_shuffle_by_seed(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(50), test=word_rows(50))

    small, large, other = (prepared(tmp_path, train_size=size, val_size=9, seed=seed) for size, seed in ((8, 0), (16, 0), (8, 1)))

    assert truths(small.train_files) == truths(large.train_files)[:8]
    assert truths(small.train_files) != truths(other.train_files)
    assert truths(small.train_files) != sorted(truths(small.train_files))
    assert (small.train_rows, small.val_rows) == (8, 9)


def test_index_is_the_place_in_the_raw_split(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(50), test=word_rows(2))

    rows = rows_of(prepared(tmp_path, train_size=10).train_files)

    assert [row["extra_info"]["index"] for row in rows] == [int(row["reward_model"]["ground_truth"]) for row in rows]


@pytest.mark.parametrize("name", ["gsm8k", "geometry3k"])
def test_generated_rows_have_the_columns_and_types_of_raw_ones(tmp_path: Path, name: str) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(2), test=word_rows(2))
    write_geometry3k(tmp_path / "raw", train=geometry_rows(2), test=geometry_rows(2))
    raw = prepared(tmp_path, name)

    generated = prepare(
        name, raw_root=tmp_path / "none", cache_root=tmp_path / "cache", train_size=6, val_size=3, generate=Difficulty.FULL, seed=4
    )

    assert parquet.read_schema(generated.train_files) == parquet.read_schema(raw.train_files)
    assert (generated.train_rows, generated.val_rows) == (6, 3)
    assert generated.origin == "generated, seed 4, difficulty full"


def test_generated_rows_are_as_many_as_asked_for_and_begin_alike(tmp_path: Path) -> None:
    small, large = (prepared(tmp_path, train_size=size, val_size=1, generate=Difficulty.SIMPLE) for size in (10, 30))

    assert rows_of(small.train_files) == rows_of(large.train_files)[:10]
    assert len(rows_of(large.train_files)) == 30


def test_key_changes_with_the_content_of_the_raw_files_and_with_nothing_else(tmp_path: Path) -> None:
    folder = write_gsm8k(tmp_path / "raw", train=word_rows(3), test=word_rows(1))
    before = prepared(tmp_path).key

    (folder / "main/train-00000-of-00001.parquet").touch()
    same = prepared(tmp_path, seed=5).key
    write_gsm8k(tmp_path / "raw", train=word_rows(4), test=word_rows(1))
    after = prepared(tmp_path)

    assert same == before
    assert after.key != before
    assert after.train_rows == 4


def test_key_changes_with_the_code_of_this_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(3), test=word_rows(1))
    before = prepared(tmp_path).key
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "changed.py").write_text("x = 1")
    monkeypatch.setattr("pytest_ascend_e2e.datasets.preparation.resources.files", lambda _: sources)

    first = prepared(tmp_path).key
    (sources / "changed.py").write_text("x = 2")
    second = prepared(tmp_path).key

    assert len({before, first, second}) == 3


@pytest.mark.parametrize(("name", "repository"), [("gsm8k", "openai/gsm8k"), ("geometry3k", "hiyouga/geometry3k")])
def test_missing_raw_data_are_an_error_that_says_where_and_what(tmp_path: Path, name: str, repository: str) -> None:
    (problem,) = problems_of(tmp_path, name)

    assert f"{name}: no raw data in {tmp_path / 'raw' / repository}; put there " in problem
    assert "train-00000-of-00001.parquet" in problem


def test_half_a_raw_dataset_is_an_error_even_where_rows_may_be_generated(tmp_path: Path) -> None:
    write_parquet(tmp_path / "raw/openai/gsm8k/main/train-00000-of-00001.parquet", word_rows(1), GSM8K)

    (problem,) = problems_of(tmp_path, generate=Difficulty.SIMPLE)

    assert "no file of the split 'test'" in problem


def test_problems_of_all_files_and_rows_are_told_together_with_their_place(tmp_path: Path) -> None:
    train, test = geometry_rows(5), geometry_rows(3)
    train[1]["images"][0]["bytes"] = b"broken"
    train[3]["answer"] = ""
    test[2]["problem"] = "no picture"
    folder = write_geometry3k(tmp_path / "raw", train=train, test=test)

    problems = problems_of(tmp_path, "geometry3k")

    in_train, in_test = (folder / f"data/{split}-00000-of-00001.parquet" for split in ("train", "test"))
    assert [problem.partition(": ")[0] for problem in problems] == [f"{in_train}, row 1", f"{in_train}, row 3", f"{in_test}, row 2"]


def test_long_list_of_problems_is_cut_after_ten(tmp_path: Path) -> None:
    broken = [{"question": "q", "answer": "no mark"} for _ in range(15)]
    write_gsm8k(tmp_path / "raw", train=broken, test=word_rows(1))

    problems = problems_of(tmp_path)

    assert len(problems) == 11
    assert problems[-1] == "and 5 more"


def test_empty_splits_and_too_large_sizes_are_told_together(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(3), test=[])

    problems = problems_of(tmp_path, train_size=4)

    assert "the split 'train' has 3 rows, and 4 were asked for" in problems[0]
    assert "the split 'test' has no rows" in problems[1]


def test_missing_columns_of_both_splits_are_told_together(tmp_path: Path) -> None:
    folder = tmp_path / "raw/hiyouga/geometry3k"
    for split in ("train", "test"):
        write_parquet(folder / f"data/{split}-00000-of-00001.parquet", word_rows(1), GSM8K)

    problems = problems_of(tmp_path, "geometry3k")

    assert len(problems) == 2
    assert all("no column 'problem' and no column 'images'; found 'question', 'answer'" in problem for problem in problems)


def test_file_prepared_for_verl_in_place_of_raw_data_is_told_as_such(tmp_path: Path) -> None:
    write_gsm8k(tmp_path / "raw", train=word_rows(2), test=word_rows(1))
    dataset = prepared(tmp_path)
    again = tmp_path / "again/openai/gsm8k/main"
    again.mkdir(parents=True)
    for path in (dataset.train_files, dataset.val_files):
        (again / path.name).write_bytes(path.read_bytes())

    with pytest.raises(DatasetError, match="already prepared for verl"):
        prepare("gsm8k", raw_root=tmp_path / "again", cache_root=tmp_path / "cache")


def test_unknown_name_and_impossible_sizes_are_told_together(tmp_path: Path) -> None:
    problems = problems_of(tmp_path, "gsm9k", train_size=0, val_size=-1)

    assert problems[0] == "dataset 'gsm9k' is not known; expected one of 'geometry3k', 'gsm8k'; did you mean 'gsm8k'?"
    assert re.search("train_size=0 .* expected a positive number", problems[1])
    assert re.search("val_size=-1 .* expected a positive number", problems[2])


def test_what_keeps_raw_data_from_being_prepared_is_seen_without_reading_them(tmp_path: Path) -> None:
    folder = write_gsm8k(tmp_path / "raw", train=word_rows(2), test=word_rows(1))
    whole = raw_problems("gsm8k", tmp_path / "raw")
    (gone,) = (folder / "main").glob("test*.parquet")
    gone.unlink()
    gone.symlink_to(tmp_path / "nowhere")

    broken = raw_problems("gsm8k", tmp_path / "raw")

    assert whole == []
    assert broken == [f"{gone}: cannot be read; make it readable for this user"]


@pytest.mark.parametrize(
    ("name", "text"), [("geometry3k", "geometry3k: no raw data in "), ("gsm9k", "dataset 'gsm9k' is not known")]
)
def test_raw_data_that_are_not_there_are_a_problem(tmp_path: Path, name: str, text: str) -> None:
    (problem,) = raw_problems(name, tmp_path)

    assert problem.startswith(text)
