"""A file that others read is whole or as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import ReportError
from pytest_ascend_e2e.files import write_whole


def test_the_directory_is_made_and_nothing_is_left_beside(tmp_path: Path) -> None:
    write_whole(tmp_path / "new" / "file.txt", "one\n")
    write_whole(tmp_path / "new" / "file.txt", "two\n")

    assert (tmp_path / "new" / "file.txt").read_text() == "two\n"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file.txt"]


def test_what_utf_8_cannot_hold_is_an_escape_that_json_reads_back(tmp_path: Path) -> None:
    write_whole(tmp_path / "file.json", json.dumps("a\udcffb", ensure_ascii=False))

    assert json.loads((tmp_path / "file.json").read_bytes()) == "a\udcffb"


@pytest.mark.parametrize("place", ["taken/file.txt", "directory"])
def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").touch()
    (tmp_path / "directory").mkdir()

    with pytest.raises(ReportError, match=rf"{place}: cannot be written: .*; choose another place"):
        write_whole(tmp_path / place, "text", ReportError)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "taken"]


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_a_place_without_a_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ReportError, match="cannot be written: "):
        write_whole(Path(place), "text", ReportError)

    assert not list(tmp_path.iterdir())
