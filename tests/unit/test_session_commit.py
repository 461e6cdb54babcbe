"""The commit of the cases, from a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pytest_ascend_e2e.session.commit import commit_of


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    command = ("git", "-C", str(directory), *identity, *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clean_tree_has_its_commit_and_a_changed_one_says_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "test_a.py").write_text("a = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")

    clean = commit_of(tmp_path)
    (tmp_path / "e2e-runs").mkdir()
    (tmp_path / "e2e-runs" / "new.log").touch()
    with_new_files = commit_of(tmp_path)
    (tmp_path / "test_a.py").write_text("a = 2\n")
    changed = commit_of(tmp_path)

    assert (clean.name, clean.is_dirty, with_new_files.is_dirty) == (head, False, False)
    assert (changed.name, changed.is_dirty) == (head, True)


def test_outside_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path).name == ""
    assert commit_of(tmp_path / "absent").name == ""


def test_a_test_that_is_not_committed_makes_the_tree_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "one", "--allow-empty")
    (tmp_path / "test_new.py").touch()

    assert commit_of(tmp_path).is_dirty
