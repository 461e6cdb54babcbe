"""The Ray of one run: a short directory of its own, and the settings that keep it apart from every other Ray of the host.

Must not know: what Ray runs. No `ray stop` anywhere, and no fixed port: Ray chooses free ones when it is told none.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..errors import LaunchError

# Ray puts the path below into its directory; the kernel takes 107 bytes for the path of a socket.
SOCKET_PATH_LIMIT = 107
_SESSION_PATH = "/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store"


def make_ray_home(run_id: str, *, root: Path = Path("/tmp")) -> Path:  # noqa: S108  # the name is unforeseeable, the mode 0700
    """Create and return the directory for the Ray of this run, short enough for Ray's sockets.

    Raises:
        LaunchError: `root` is too long, is not there or cannot be written to.
    """
    try:
        home = Path(tempfile.mkdtemp(prefix=f"e2e-{run_id.rpartition('-')[2]}-", dir=root))
    except OSError as error:
        raise LaunchError(
            f"{str(root)!r} cannot take Ray's directory of run {run_id}: {error}; make it writable, with space left"
        ) from error
    longest = len(str(home)) + len(_SESSION_PATH)
    if longest > SOCKET_PATH_LIMIT:
        home.rmdir()
        raise LaunchError(
            f"{str(root)!r} is too long for Ray's directory: its sockets would have paths of {longest} bytes,"
            f" {SOCKET_PATH_LIMIT} are possible; choose a shorter directory, such as '/tmp'"
        )
    return home


def ray_overrides(ray_home: Path) -> dict[str, object]:
    """Return the nested overrides that give a training its own Ray, in the directory made by `make_ray_home`."""
    return {"ray_kwargs": {"ray_init": {"+_temp_dir": str(ray_home), "+include_dashboard": False}}}
