"""The commit of the cases: which state of their repository a run belongs to.

Must not know: what is made of it. A directory outside a repository has none.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_LIMIT_S = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """A state of a repository: its commit, empty where there is none, and whether its files, or new tests, differ from it."""

    name: str
    is_dirty: bool


def commit_of(directory: Path) -> Commit:
    """Return the commit that is checked out in a directory."""
    head = _git(directory, "rev-parse", "HEAD")
    if not head:
        return Commit(name="", is_dirty=False)
    # A git that cannot tell is no proof of a clean tree.
    changes = _git(directory, "status", "--porcelain", "--untracked-files=no")
    new_tests = _git(directory, "ls-files", "--others", "--exclude-standard", "--", "*.py")
    return Commit(name=head, is_dirty=changes != "" or new_tests != "")


def _git(directory: Path, *words: str) -> str | None:
    """Return what git prints, None where it cannot be asked or fails."""
    try:
        done = subprocess.run(
            ("git", "-C", str(directory), *words),  # noqa: S607  # the user's own git
            check=False, capture_output=True, text=True, timeout=_LIMIT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
