"""A host as the checks see it, what one of them says, and how Ascend's version files are read.

Must not know: what is demanded of a host.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The variables that CANN's set_env.sh sets, the most special first, and where its installer puts it.
CANN_VARIABLES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
CANN_ROOTS = (Path("/usr/local/Ascend/ascend-toolkit/latest"), Path("/usr/local/Ascend/cann"))
_CANN_FILES = (
    "version.cfg",
    "version.info",
    "*-linux/ascend_toolkit_install.info",
    "compiler/version.info",
    "runtime/version.info",
)
NONE = "none"


def _open_files() -> int:
    # Ray raises the soft limit of its processes to the hard one.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 2**31 if hard == resource.RLIM_INFINITY else hard


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """What the checks look at: the environment and installed versions of a training, and the places on this host.

    `versions` are those of the training's interpreter by name, "none" where a library is not installed. `places` are the
    directories that a session writes to, by what they are for. `open_files` is the hard limit of a process.
    """

    environ: Mapping[str, str] = field(repr=False)
    versions: Mapping[str, str]
    places: Mapping[str, Path]
    simulated: bool
    shared_memory: Path = Path("/dev/shm")  # noqa: S108  # where the kernel has it
    driver: Path = Path("/usr/local/Ascend/driver")
    cann_roots: tuple[Path, ...] = CANN_ROOTS
    open_files: int = field(default_factory=_open_files)


@dataclass(frozen=True, kw_only=True, slots=True)
class HostFinding:
    """What one check says of a host: the fact, and what to do, empty where the fact ends with that; a warning stops no training."""

    check: str
    text: str
    remedy: str = ""
    is_error: bool = True

    def __str__(self) -> str:
        return f"{'; '.join(filter(None, (self.text, self.remedy)))} [{self.check}]"


def cann_version(environ: Mapping[str, str], roots: tuple[Path, ...] = CANN_ROOTS) -> str:
    """Return the version of the CANN toolkit that the environment points at or that lies in `roots`, "none" where there is none."""
    named = [Path(environ[name]) for name in CANN_VARIABLES if environ.get(name)]
    for root in (*named, *roots):
        for pattern in _CANN_FILES:
            for path in sorted(root.glob(pattern)):
                version = version_in(path)
                if version:
                    return version
    return NONE


def version_in(path: Path) -> str:
    """Return what follows `Version=` or stands in brackets behind `..._running_version=`, empty if there is neither."""
    if not path.is_file():
        return ""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "version" or key.strip().endswith("running_version"):
            return value.strip().strip("[]").split(":")[-1]
    return ""
