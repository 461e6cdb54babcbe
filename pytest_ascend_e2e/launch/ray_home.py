"""The Ray of one run: a short directory of its own, and the settings that keep the run apart from every other of the host.

Whatever else a run needs only while it lives is in that directory too: temporary files, sockets, compiled kernels. Must not know:
what Ray runs. No `ray stop` anywhere, and no fixed port: Ray chooses free ones when it is told none.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from ..errors import LaunchError
from .closing import Book
from .processes import owner_text

# Ray puts the path below into its directory; the kernel takes 107 bytes for the path of a socket.
SOCKET_PATH_LIMIT = 107
HOMES = Path("/tmp")  # noqa: S108  # the names are unforeseeable, the mode is 0700
_MARK = "run.json"
_TEMPORARY = "tmp"
_SESSION_PATH = "/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store"


def name_ray_home(run_id: str, *, root: Path = HOMES) -> Path:
    """Return a path for the Ray of this run, short enough for Ray's sockets. It is made by `make_ray_home` when the run begins.

    Raises:
        LaunchError: `root` is too long, is not there or cannot be written to.
    """
    if not (root.is_dir() and os.access(root, os.W_OK | os.X_OK)):
        raise LaunchError(f"{str(root)!r} cannot take Ray's directory of run {run_id}: make it a directory that can be written to")
    home = root / f"e2e-{run_id.rpartition('-')[2]}-{secrets.token_hex(4)}"
    longest = len(str(home)) + len(_SESSION_PATH)
    if longest > SOCKET_PATH_LIMIT:
        raise LaunchError(
            f"{str(root)!r} is too long for Ray's directory: its sockets would have paths of {longest} bytes,"
            f" {SOCKET_PATH_LIMIT} are possible; choose a shorter directory, such as '/tmp'"
        )
    return home


def make_ray_home(home: Path, *, book: Book | None = None) -> None:
    """Create the directory, for this user alone; whoever keeps the run removes it.

    With `book`, what is left of a run whose keeper is killed too can be told and tidied up by a later session.

    Raises:
        LaunchError: it cannot be created.
    """
    try:
        home.mkdir(mode=0o700)
        (home / _TEMPORARY).mkdir()
        if book is not None:
            mark = {"run_id": book.run_id, "run_dir": book.run_dir, "owner": owner_text(os.getpid()), "processes": _namespace()}
            (home / _MARK).write_text(json.dumps({"schema": 1, **mark}), encoding="utf-8")
    except OSError as error:
        raise LaunchError(
            f"Ray's directory cannot be made: {error}; make {str(home.parent)!r} writable, with space left"
        ) from error


def home_variables(home: Path) -> dict[str, str]:
    """Return the variables that keep what a run writes beside its results in this directory: it goes with the run."""
    temporary, cache = str(home / _TEMPORARY), home / "cache"
    return {
        "TMPDIR": temporary,
        # Where vLLM makes its sockets: a caller's own value would lead out of here.
        "VLLM_RPC_BASE_PATH": temporary,
        "VLLM_CACHE_ROOT": str(cache / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(cache / "extensions"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        # CANN: kernels compiled at run time, and the files of a process (HCCL's among them).
        "ASCEND_CACHE_PATH": str(cache / "ascend"),
        "ASCEND_WORK_PATH": str(home / "ascend"),
    }


def orphaned_homes(root: Path = HOMES) -> Iterator[tuple[Book, str]]:
    """Yield what runs of this user have left here, with the owner (`owner_text`) of each, where we can tell whether it lives."""
    for path in root.glob(f"e2e-*/{_MARK}"):
        try:
            mark = json.loads(path.read_text(encoding="utf-8"))
            if path.parent.lstat().st_uid == os.geteuid() and mark["processes"] == _namespace():
                book = Book(run_id=mark["run_id"], run_dir=mark["run_dir"], ray_home=str(path.parent))
                yield book, str(mark["owner"])
        except (OSError, ValueError, KeyError):  # going at this very moment, or another version's
            continue


def _namespace() -> str:
    """Return the name of the space in which our processes are numbered: those of another container mean nothing here."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def ray_overrides(ray_home: Path) -> dict[str, object]:
    """Return the nested overrides that give a training its own Ray, in the directory named by `name_ray_home`."""
    return {"ray_kwargs": {"ray_init": {"+_temp_dir": str(ray_home), "+include_dashboard": False}}}
