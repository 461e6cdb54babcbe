"""Lock files that several processes, sessions and users of one host share: a directory, its files, and one mutex.

Must not know: what is being locked. A lock here is an flock: the kernel frees it when the last descriptor of it is closed, also
when its holder was killed, so nothing here ever has to guess whether a lock is stale.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

import psutil

from ..deadline import Deadline
from ..errors import LeaseError

if TYPE_CHECKING:
    from typing_extensions import Self  # in Python's own typing as of 3.11; no dependency for a name

T = TypeVar("T")

# One place per host for all users, so that the sessions of two users do not take one device at the same time.
DEFAULT_LOCK_DIR = Path("/tmp/ascend-e2e-locks")  # noqa: S108  # shared on purpose; sticky, no link is followed

_MODE_DIR = 0o1777
_MODE_FILE = 0o666
_MUTEX_POLL_S = 0.01
# Whoever holds a mutex longer than this was stopped in the middle of a few file operations.
_MUTEX_S = 30.0
_HOLDER_LIMIT = 1 << 16  # bytes; the file is anybody's


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """Who holds a lock: a text for people, the process that took it, and the time (UTC, ISO 8601).

    Of somebody who still waits, `count` is how many locks he wants and `among` the names of those that will do.
    """

    owner: str
    pid: int
    since: str
    count: int = 0
    among: tuple[str, ...] = ()

    def __str__(self) -> str:
        gone = "" if psutil.pid_exists(self.pid) else " (not seen here: ended, with a child that lives on, or in a container)"
        return f"{self.owner!r}, pid {self.pid}{gone}, since {self.since}"


@dataclass(frozen=True, slots=True)
class LockDirectory:
    """The directory of the lock files, made on first use with mode 1777; its files have mode 0666.

    `sleep` and `now` are what a test replaces.
    """

    path: Path = DEFAULT_LOCK_DIR
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False, repr=False)
    now: Callable[[], float] = field(default=time.time, compare=False, repr=False)

    def prepare(self) -> None:
        """Make the directory if it is not there.

        Raises:
            LeaseError: it cannot be made or used, or a link or another user's plain file stands in its place.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # the usual case: somebody made it before
                self.path.mkdir()
                self.path.chmod(_MODE_DIR)
            is_directory = stat.S_ISDIR(self.path.lstat().st_mode)
        except OSError as error:
            raise LeaseError(f"{self.path}: the lock directory cannot be made: {error.strerror}; choose another one") from error
        if not is_directory or not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise LeaseError(
                f"{self.path}: not a directory that this user can write, so no device can be leased;"
                f" expected one of mode 1777 (its owner can run: chmod 1777 {self.path}), or choose another one"
            )

    def is_there(self) -> bool:
        """Tell whether somebody has made it, as far as this user can see."""
        return os.path.isdir(self.path)  # noqa: PTH112  # Path.is_dir() raises where a directory above cannot be entered

    def try_lock(self, name: str) -> int | None:
        """Return a descriptor that holds the lock `name`, or None while somebody else holds it."""
        while True:
            descriptor = self._open(name)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A cleaner of /tmp may have removed the file in between: a lock on a file without a name excludes nobody.
                if self._is_named(descriptor, name):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def lock_new(self, name: str) -> int:
        """Return a descriptor that holds the lock `name`, which nobody has used before."""
        descriptor = self.try_lock(name)
        if descriptor is None:
            raise LeaseError(f"{self.path / name}: a new lock file is held by somebody else: another program writes here")
        return descriptor

    def remove(self, name: str) -> None:
        """Remove a lock file that is of no further use; another user's stays, since the directory is sticky."""
        with contextlib.suppress(FileNotFoundError, PermissionError):
            (self.path / name).unlink()

    @contextlib.contextmanager
    def mutex(self, name: str, deadline: Deadline) -> Iterator[None]:
        """Hold the short lock `name` for a few file operations.

        A deadline that is over refuses nobody who would only wait for another's few operations.

        Raises:
            LeaseError: the deadline passed before the lock was free, and so did half a minute.
        """
        patience = Deadline.after(_MUTEX_S, name=deadline.name, clock=deadline.clock)
        while (descriptor := self.try_lock(name)) is None:
            if deadline.is_over() and patience.is_over():
                raise LeaseError(
                    f"{self.path / name}: another process has not let go of it ({deadline.name});"
                    f" see who stopped in between: fuser -v {self.path / name}"
                )
            self.sleep(_MUTEX_POLL_S)
        try:
            yield
        finally:
            free(descriptor)

    def write_holder(self, descriptor: int, owner: str, *, count: int = 0, among: Sequence[str] = ()) -> None:
        """Write into a held lock file who holds it, for those who wait."""
        since = datetime.fromtimestamp(self.now(), tz=timezone.utc).isoformat(timespec="seconds")
        text = json.dumps({"owner": owner, "pid": os.getpid(), "since": since, "count": count, "among": list(among)})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)

    def read_holder(self, name: str) -> Holder | None:
        """Return who wrote itself into the lock file `name`; None if nobody did. It says nothing once the lock is free."""
        try:
            with os.fdopen(os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                data = json.loads(file.read(_HOLDER_LIMIT))
            return Holder(
                owner=str(data["owner"]),
                pid=int(data["pid"]),
                since=str(data["since"]),
                count=int(data["count"]),
                among=tuple(map(str, data["among"])),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _open(self, name: str) -> int:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        path = self.path / name
        while True:
            try:
                # Without O_CREAT first: fs.protected_regular refuses it for another user's file in a sticky directory.
                descriptor = os.open(path, flags)
            except FileNotFoundError:
                try:
                    descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, _MODE_FILE)
                except FileExistsError:
                    continue
                os.fchmod(descriptor, _MODE_FILE)
            except OSError as error:
                raise LeaseError(
                    f"{path}: the lock file cannot be opened: {error.strerror}; remove it if nobody needs it"
                ) from error
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise LeaseError(f"{path}: not a plain file, so it cannot be a lock; remove it")
            return descriptor

    def _is_named(self, descriptor: int, name: str) -> bool:
        held = os.fstat(descriptor)
        try:
            named = (self.path / name).lstat()
        except FileNotFoundError:
            return False
        return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)


@dataclass(kw_only=True, slots=True)
class Held:
    """Locks held for one run; a context manager that gives them up.

    `fds` go into `pass_fds` of the training process, which then keeps what is locked if it outlives its starter; no other program
    inherits them.
    """

    fds: tuple[int, ...] = field(repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        """Give up what is held; a training process that still runs with the descriptors keeps it until its end."""
        # Closed, not unlocked: unlocking would free the devices under a training process that outlived us.
        fds, self.fds = self.fds, ()
        for descriptor in fds:
            os.close(descriptor)


def free(descriptor: int) -> None:
    """Give a lock up for good, also where a fork has copied the descriptor, and close it."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
