"""Entries of the cache are whole or not there."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ascend_e2e.datasets.cache import MANIFEST, filled_entry, key_of
from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PARAMETERS = {"a": 1}


def fill_with(content: str) -> Callable[[Path], Mapping[str, Any]]:
    def fill(directory: Path) -> Mapping[str, Any]:
        (directory / "data.txt").write_text(content)
        return {"length": len(content)}

    return fill


def unwanted(directory: Path) -> Mapping[str, Any]:
    raise AssertionError(f"{directory} is filled a second time")


def entry_of(
    root: Path, fill: Callable[[Path], Mapping[str, Any]], parameters: Mapping[str, Any] | None = None, *, wait_s: float = 30
) -> tuple[Path, Mapping[str, Any]]:
    deadline = Deadline.after(wait_s, name="test")
    return filled_entry(root, "x", parameters=parameters or PARAMETERS, fill=fill, deadline=deadline)


def names_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.name != ".lock")


def test_entry_is_filled_once(tmp_path: Path) -> None:
    first = entry_of(tmp_path, fill_with("one"))

    second = entry_of(tmp_path, unwanted)

    assert first == second
    assert second[1] == {"length": 3}
    assert names_in(tmp_path) == [first[0].name]


def test_other_parameters_are_another_entry(tmp_path: Path) -> None:
    first, _ = entry_of(tmp_path, fill_with("one"), {"a": 1})
    second, _ = entry_of(tmp_path, fill_with("two"), {"a": 2})

    assert first != second
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


def test_manifest_tells_parameters_facts_and_files(tmp_path: Path) -> None:
    entry, _ = entry_of(tmp_path, fill_with("one"))

    manifest = json.loads((entry / MANIFEST).read_text())

    assert manifest["schema"] == 1
    assert manifest["key"] == key_of(PARAMETERS)
    assert manifest["parameters"] == PARAMETERS
    assert manifest["facts"] == {"length": 3}
    assert manifest["files"] == {
        "data.txt": {"size": 3, "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}
    }


def drop_file(entry: Path) -> None:
    (entry / "data.txt").unlink()


def cut_file(entry: Path) -> None:
    (entry / "data.txt").write_text("on")


def change_byte(entry: Path) -> None:
    (entry / "data.txt").write_text("onE")


def drop_manifest(entry: Path) -> None:
    (entry / MANIFEST).unlink()


def cut_manifest(entry: Path) -> None:
    (entry / MANIFEST).write_text('{"schema": 1, "ke')


def other_schema(entry: Path) -> None:
    (entry / MANIFEST).write_text(json.dumps({**json.loads((entry / MANIFEST).read_text()), "schema": 2}))


@pytest.mark.parametrize("damage", [drop_file, cut_file, change_byte, drop_manifest, cut_manifest, other_schema])
def test_broken_entry_is_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    entry, _ = entry_of(tmp_path, fill_with("one"))
    damage(entry)

    again, facts = entry_of(tmp_path, fill_with("other"))

    assert again == entry
    assert facts == {"length": 5}
    assert (entry / "data.txt").read_text() == "other"
    assert names_in(tmp_path) == [entry.name]


@pytest.mark.parametrize("error", [DatasetError("bad row"), KeyboardInterrupt()])
def test_failed_fill_leaves_the_cache_as_it_was(tmp_path: Path, error: BaseException) -> None:
    entry, _ = entry_of(tmp_path, fill_with("one"))

    def failing(directory: Path) -> Mapping[str, Any]:
        (directory / "data.txt").write_text("half")
        raise error

    with pytest.raises(type(error)):
        entry_of(tmp_path, failing, {"a": 2})

    assert names_in(tmp_path) == [entry.name]
    assert entry_of(tmp_path, unwanted)[0] == entry


def test_directories_of_killed_fills_are_removed_by_the_next_fill(tmp_path: Path) -> None:
    left_over = tmp_path / ".filling-abc/entry"
    left_over.mkdir(parents=True)
    (left_over / "half.txt").write_text("half")

    entry, _ = entry_of(tmp_path, fill_with("one"))

    assert names_in(tmp_path) == [entry.name]


def test_lock_that_is_held_past_the_deadline_is_an_error_that_names_the_holder(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()

        with pytest.raises(DatasetError, match=r"\.lock: held by process 4711 for more than 0\.2 s \(test\)"):
            entry_of(tmp_path, unwanted, wait_s=0.2)


def test_filled_entry_is_used_while_another_fill_holds_the_lock(tmp_path: Path) -> None:
    entry, _ = entry_of(tmp_path, fill_with("one"))

    with (tmp_path / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        assert entry_of(tmp_path, unwanted, wait_s=0.2)[0] == entry


def test_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DatasetError, match="the cache of prepared datasets cannot be written"):
        entry_of(tmp_path / "file/cache", unwanted)
