"""The Ray of one run: a short directory of its own, and the settings that keep it apart from every other Ray of the host.

Must not know: what Ray runs. No `ray stop` anywhere, and no fixed port: Ray chooses free ones when it is told none.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ..errors import LaunchError

# Ray puts the path below into its directory; the kernel takes 107 bytes for the path of a socket.
SOCKET_PATH_LIMIT = 107
_SESSION_PATH = "/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store"


def name_ray_home(run_id: str, *, root: Path = Path("/tmp")) -> Path:  # noqa: S108  # the name is unforeseeable, the mode 0700
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


def make_ray_home(home: Path) -> None:
    """Create the directory, for this user alone; whoever keeps the run removes it.

    Raises:
        LaunchError: it cannot be created.
    """
    try:
        home.mkdir(mode=0o700)
    except OSError as error:
        raise LaunchError(
            f"Ray's directory cannot be made: {error}; make {str(home.parent)!r} writable, with space left"
        ) from error


def ray_overrides(ray_home: Path) -> dict[str, object]:
    """Return the nested overrides that give a training its own Ray, in the directory named by `name_ray_home`."""
    return {"ray_kwargs": {"ray_init": {"+_temp_dir": str(ray_home), "+include_dashboard": False}}}
