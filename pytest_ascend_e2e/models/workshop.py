"""Makes tiny models, each once: a cache that whoever comes first fills, by a child process, under a lock.

Owns the keys, the lock, the child and the moment at which an entry appears. Must not know: torch, or how a model is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..deadline import Deadline, format_duration
from ..errors import ModelError
from .architectures import Architecture, architecture_of
from .weights import problems_of

_BETWEEN_TRIES_S = 0.1
_GRACE_S = 2.0
_LOG_LINES = 12
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Warmup:
    """How long a tiny model is trained before RL, and between which rewards it must then stand.

    Below `least_reward` RL has nothing to hold on to, above `most_reward` nothing to gain; both are means from 0 to 1 at
    sampling temperature 1.
    """

    steps: int
    batch_size: int = 8
    least_reward: float = 0.05
    most_reward: float = 0.6


WARMUPS: Mapping[Architecture, Warmup] = {
    "qwen3": Warmup(steps=1200),
    "qwen3_moe": Warmup(steps=1200),
    "qwen3_vl": Warmup(steps=1000),
}
"""The warm-up of each architecture: as short as leaves a clear rise to twenty steps of RL on generated data."""


def make_tiny(
    model_id: str,
    *,
    cache_root: Path,
    train_files: Path,
    python: str,
    seed: int = 0,
    deadline: Deadline,
    warmup: Warmup | None = None,
) -> Path:
    """Return the directory of a tiny model of the same architecture as `model_id`, trained a little on `train_files`.

    It is a whole model in Transformers' format, float32, with tokenizer, chat template and, for images, processors. A child process
    of the interpreter `python` (with torch and transformers) makes it on one core of the CPU in 30 to 60 s; it is kept under
    `cache_root` by architecture, seed, content of the training file and code of this room. Any number of processes may ask at once.

    Raises:
        ModelError: there is no tiny model of this architecture, the training file cannot be read or learned, the child failed,
            or `deadline` passed; the cache is then as before.
    """
    architecture = architecture_of(model_id)
    plan = warmup or WARMUPS[architecture]
    name = f"tiny-{architecture}-{_key(architecture, train_files, seed, plan)}"
    entry = cache_root / name
    if not _is_whole(entry):
        try:
            cache_root.mkdir(parents=True, exist_ok=True)
            with _locked(cache_root / f"{name}.lock", deadline) as lock:
                if not _is_whole(entry):
                    arguments = _arguments(architecture, train_files, seed, plan)
                    _fill(entry, [python, "-m", f"{__package__}.tiny", *arguments], lock=lock, deadline=deadline)
        except OSError as error:
            raise ModelError(
                f"{error.filename or cache_root}: a tiny model cannot be made there ({error.strerror or error}); "
                "free the disk, make it writable, or choose another cache directory"
            ) from error
    return entry


def _key(architecture: Architecture, train_files: Path, seed: int, plan: Warmup) -> str:
    digest = hashlib.sha256(json.dumps([architecture, seed, asdict(plan)]).encode())
    try:
        digest.update(train_files.read_bytes())
    except OSError as error:
        raise ModelError(f"{train_files} cannot be read ({error.strerror}); prepare the dataset first") from error
    for source in sorted(Path(__file__).parent.iterdir()):
        if source.suffix in {".py", ".jinja"}:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _arguments(architecture: Architecture, train_files: Path, seed: int, plan: Warmup) -> list[str]:
    values = {"architecture": architecture, "train-files": train_files.absolute(), "seed": seed}
    options = {**values, **{name.replace("_", "-"): value for name, value in asdict(plan).items()}}
    return [f"--{name}={value}" for name, value in options.items()]


def _is_whole(entry: Path) -> bool:
    return entry.is_dir() and not problems_of(entry)


@contextlib.contextmanager
def _locked(path: Path, deadline: Deadline) -> Iterator[int]:
    with path.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if deadline.is_over():
                    raise ModelError(
                        f"{path}: another process was still making this tiny model after {format_duration(deadline.limit_s)} "
                        f"({deadline.name}); see `fuser {path}` for which, or wait longer"
                    ) from None
            time.sleep(_BETWEEN_TRIES_S)
        yield lock.fileno()


def _fill(entry: Path, command: Sequence[str], *, lock: int, deadline: Deadline) -> None:
    """Make an entry; the caller holds the lock, so that what lies in the way is of a process that was killed."""
    work, log = entry.with_suffix(".making"), entry.with_suffix(".log")
    for left_over in (work, entry):
        if left_over.exists():
            shutil.rmtree(left_over)
    try:
        _run([*command, f"--out={work}"], log=log, lock=lock, deadline=deadline)
        problems = problems_of(work)
        if problems:
            raise ModelError(*(f"the tiny model is not whole: {problem}" for problem in problems))
        work.rename(entry)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(command: Sequence[str], *, log: Path, lock: int, deadline: Deadline) -> None:
    with log.open("wb") as output:
        try:
            # The child holds the lock too: should this process be killed, no other begins before the child has ended.
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,
                pass_fds=(lock,),
            )
        except OSError as error:
            raise ModelError(
                f"{command[0]!r} cannot be started ({error.strerror}); give a Python that has torch and transformers"
            ) from error
        try:
            status = child.wait(timeout=deadline.remaining_s())
        except subprocess.TimeoutExpired:
            raise ModelError(
                f"no tiny model after {format_duration(deadline.limit_s)} ({deadline.name}); the child was ended, its log is {log}"
            ) from None
        finally:
            _end(child)
    if status != 0:
        raise ModelError(f"no tiny model: {_how(status)}. The end of {log}:\n{_last_lines(log)}")


def _environment() -> dict[str, str]:
    found = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(_PACKAGE_ROOT), *([found] if found else [])])
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def _end(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended between the two lines
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=_GRACE_S)


def _how(status: int) -> str:
    return f"the child was ended by {signal.Signals(-status).name}" if status < 0 else f"the child ended with exit status {status}"


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:])
