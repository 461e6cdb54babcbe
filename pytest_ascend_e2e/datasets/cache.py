"""Directories that are filled once, by whoever comes first, and are whole or not there.

Owns the lock, the temporary directories and the manifest. Must not know: what an entry holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..deadline import Deadline

MANIFEST = "manifest.json"
SCHEMA = 1

_LOCK = ".lock"
_TEMPORARY = ".filling-"
_BETWEEN_TRIES_S = 0.05
_CHUNK_BYTES = 1 << 20


def key_of(parameters: Mapping[str, Any]) -> str:
    """Return the key of what is made from `parameters` (JSON values): equal for equal ones."""
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()


def filled_entry(
    root: Path,
    name: str,
    *,
    parameters: Mapping[str, Any],
    fill: Callable[[Path], Mapping[str, Any]],
    deadline: Deadline,
) -> tuple[Path, Mapping[str, Any]]:
    """Return the directory of an entry and its facts, after `fill(directory)` wrote its files and returned the facts, if need be.

    Any number of processes may ask at once: one fills, the others wait for it until `deadline`. An entry whose files do not match
    its manifest is made anew. When `fill` raises, the cache is as before.

    Raises:
        DatasetError: the cache cannot be written, or another process held its lock until the deadline.
    """
    key = key_of(parameters)
    entry = root / f"{name}-{key[:16]}"
    facts = valid_facts(entry, key)
    if facts is not None:
        return entry, facts
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root, deadline):
            facts = valid_facts(entry, key)
            if facts is None:
                facts = _fill(root, entry, key=key, parameters=parameters, fill=fill)
    except OSError as error:
        raise DatasetError(
            f"{error.filename or root}: the cache of prepared datasets cannot be written ({error.strerror or error}); "
            "free the disk, make it writable, or choose another directory"
        ) from error
    return entry, facts


def valid_facts(entry: Path, key: str) -> Mapping[str, Any] | None:
    """Return the facts of an entry, None where it is absent or broken: no manifest, another key, or a file that differs from it."""
    try:
        manifest = json.loads((entry / MANIFEST).read_bytes())
        if manifest["schema"] != SCHEMA or manifest["key"] != key:
            return None
        is_whole = all(_matches(entry / name, known) for name, known in manifest["files"].items())
        facts = manifest["facts"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return facts if is_whole and isinstance(facts, dict) else None


def _fill(
    root: Path, entry: Path, *, key: str, parameters: Mapping[str, Any], fill: Callable[[Path], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Make an entry; the caller holds the lock, so every temporary directory is one of a process that was killed."""
    for left_over in root.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(left_over)
    work = tempfile.mkdtemp(prefix=_TEMPORARY, dir=root)
    try:
        content = Path(work, "entry")
        content.mkdir()
        facts = fill(content)
        files = {path.name: {"size": path.stat().st_size, "sha256": _sha256(path)} for path in sorted(content.iterdir())}
        manifest = {"schema": SCHEMA, "key": key, "parameters": parameters, "facts": facts, "files": files}
        (content / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        if entry.exists():
            entry.rename(Path(work, "broken"))
        content.rename(entry)
    finally:
        shutil.rmtree(work)
    return facts


@contextlib.contextmanager
def _locked(root: Path, deadline: Deadline) -> Iterator[None]:
    with (root / _LOCK).open("a+", encoding="ascii") as lock:
        while not _try_lock(lock.fileno()):
            if deadline.is_over():
                lock.seek(0)
                raise DatasetError(
                    f"{root / _LOCK}: held by process {lock.read().strip() or '?'} for more than {deadline.limit_s:g} s "
                    f"({deadline.name}); look what that process does, or wait longer"
                )
            time.sleep(_BETWEEN_TRIES_S)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _matches(path: Path, known: Mapping[str, Any]) -> bool:
    return bool(path.stat().st_size == known["size"] and _sha256(path) == known["sha256"])


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
