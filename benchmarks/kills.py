"""Kill a real simulated training at random moments, again and again, and look whether anything of it is left.

    python benchmarks/kills.py 100 --out /tmp/kills

Each time a session trains the dense smoke case, and one process gets SIGKILL at a moment drawn from its first 65 seconds: the
pytest session, the trainer, or one of the trainer's workers and daemons. Then there must be no process, lock, listening port,
segment of shared memory or Ray directory left, and the record must say what happened. One line for each kill goes to
`kills.jsonl`; a series that was interrupted goes on where it stopped. The exit status is 1 if anything was ever left.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from pytest_ascend_e2e.launch import RUN_ID, UNFINISHED, sweep_dead_sessions
from pytest_ascend_e2e.launch.ray_home import HOMES
from pytest_ascend_e2e.launch.ray_remains import WEIGHT_SOCKETS, job_number
from pytest_ascend_e2e.launch.shared_memory import mapped_segments

ROOT = Path(__file__).parent.parent
CASE = "tests/e2e_npu/test_smoke.py::test_grpo_qwen3_gsm8k"
VICTIMS = ("session", "trainer", "worker")
SPAN_S = 65.0
STEPS = 3
# A session that lost a process of its training must notice by then, which is after the longest deadline of the case, 5 minutes of
# silence: Ray waits as long for a worker that died before it had reported. Nothing may be left `CLEAN_S` after the session's end.
NOTICE_S = 360.0
CLEAN_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What a run holds at the moment of the kill: processes by number and start, ports it listens on, segments it maps."""

    processes: dict[int, float] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    segments: frozenset[str] = frozenset()


@dataclass(kw_only=True)
class Kill:
    """One kill: what was drawn, what was done, and what was left."""

    number: int
    kind: str
    drawn_s: float
    victim: str = ""
    killed_s: float | None = None
    run: str = ""
    processes: int = 0
    ports: int = 0
    segments: int = 0
    clean_after_s: float | None = None
    says: str = ""
    swept: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


class Session:
    """One pytest session that trains, in a process group of its own."""

    def __init__(self, out: Path, arguments: Sequence[str]) -> None:
        self.root = out / "runs"
        self.locks = out / "locks"
        self._known = set(self._runs())
        command = [sys.executable, "-m", "pytest", CASE, "-q", "-p", "no:cacheprovider", "--runner", "sim-2"]
        places = ["--e2e-run-root", str(self.root), "--e2e-lock-dir", str(self.locks), "--e2e-history", str(out / "history.sqlite")]
        limits = ["--e2e-steps", str(STEPS), "--e2e-silence-timeout", "2m", "--e2e-run-timeout", "20m"]
        with (out / "session.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, *places, *limits, *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
            )
        self.began_at = time.monotonic()

    @property
    def age_s(self) -> float:
        """Seconds since its start."""
        return round(time.monotonic() - self.began_at, 1)

    @property
    def run(self) -> Path | None:
        """The directory of its run, None before there is one."""
        return next((self.root / name for name in self._runs() if name not in self._known), None)

    def members(self) -> list[psutil.Process]:
        """Return the processes of its run, and whatever else it has started, in the order of their start."""
        found = {process.pid: process for process in tagged(self.run.name if self.run else "")}
        with contextlib.suppress(psutil.Error):
            found |= {child.pid: child for child in psutil.Process(self.process.pid).children(recursive=True)}
        return sorted(found.values(), key=started)

    def victim(self, kind: str, rng: random.Random) -> psutil.Process | None:
        """Return the process to kill, None while there is none of this kind."""
        if kind == "session":
            return psutil.Process(self.process.pid)
        mine = tagged(self.run.name if self.run else "")
        trainers = [process for process in mine if "verl.trainer.main_ppo" in command_of(process)]
        if kind == "trainer":
            return min(trainers, key=started, default=None)
        others = [process for process in mine if process not in trainers and "room.keeper" not in command_of(process)]
        return rng.choice(others) if others else None

    def _runs(self) -> list[str]:
        return [path.name for path in self.root.iterdir() if path.is_dir()] if self.root.is_dir() else []


def started(process: psutil.Process) -> float:
    """Return when a process began, 0 if it is gone."""
    try:
        return float(process.create_time())
    except psutil.Error:
        return 0.0


def command_of(process: psutil.Process) -> str:
    """Return the command line of a process, empty if it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def tagged(run_id: str) -> list[psutil.Process]:
    """Return the live processes that carry the tag of a run, found by other means than the code that is measured."""
    found = []
    for process in psutil.process_iter() if run_id else ():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(RUN_ID) == run_id and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def traces_of(session: Session) -> Traces:
    """Return what the session and its run hold now."""
    processes = {process.pid: started(process) for process in session.members()}
    listening = [found for found in psutil.net_connections("inet") if found.status == psutil.CONN_LISTEN]
    return Traces(
        processes=processes,
        ports=frozenset(found.laddr.port for found in listening if found.pid in processes),
        segments=frozenset(mapped_segments(processes)),
    )


def remains(session: Session, traces: Traces) -> list[str]:
    """Return what is left of a session and its run, as words."""
    run_id = session.run.name if session.run else ""
    alive = {process.pid: process for process in tagged(run_id)}
    for pid, start in traces.processes.items():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if started(process) == start and process.status() != psutil.STATUS_ZOMBIE:
                alive[pid] = process
    left = [f"process {command_of(process)[:80]}[{pid}]" for pid, process in alive.items()]
    listening = (found for found in psutil.net_connections("inet") if found.status == psutil.CONN_LISTEN)
    left += [f"port {found.laddr.port}" for found in listening if found.laddr.port in traces.ports and found.pid in (None, *alive)]
    left += [f"segment {path}" for path in sorted(traces.segments) if Path(path).exists()]
    left += [f"lock {path}" for path in session.locks.rglob("*") if path.is_file() and is_locked(path)]
    if run_id:
        left += [f"directory {path}" for path in HOMES.glob(f"e2e-{run_id.rpartition('-')[2]}-*")]
        job_id = job_number(run_id).to_bytes(4, "little").hex()
        left += [f"socket {path}" for path in WEIGHT_SOCKETS.glob(f"rl-colocate-zmq-{job_id}-*")]
    return left


def is_locked(path: Path) -> bool:
    """Tell whether somebody holds the lock of this file."""
    try:
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # gone, or not to be opened: nobody's lock
        return False
    return False


def wait_until(is_so: Callable[[], object], limit_s: float) -> bool:
    """Wait until something is so; return whether it came to be in time."""
    end = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() >= end:
            return False
        time.sleep(0.2)
    return True


def verdict(run: Path | None) -> tuple[str, list[str]]:
    """Return what the record of a run says, and what is wrong with that."""
    if run is None:
        return "no run had begun", []
    try:
        record = json.loads((run / "record.json").read_text())
    except (OSError, ValueError) as error:
        return "", [f"record: {error}"]
    says = f"{record['ending']}: {record['end_reason']}"
    return says, ["record: says nothing of the end"] if record["end_reason"] == UNFINISHED else []


def kill_once(number: int, *, seed: int, out: Path, arguments: Sequence[str]) -> Kill | None:
    """Train, kill, look; return None where the session was over before there was anything to kill."""
    rng = random.Random(f"{seed}-{number}")
    kill = Kill(number=number, kind=rng.choice(VICTIMS), drawn_s=round(rng.uniform(0, SPAN_S), 1))
    session = Session(out, arguments)
    try:
        time.sleep(kill.drawn_s)
        wait_until(lambda: session.process.poll() is not None or session.victim(kill.kind, rng), NOTICE_S)
        victim = None if session.process.poll() is not None else session.victim(kill.kind, rng)
        if victim is None:
            return None
        traces = traces_of(session)
        kill.processes, kill.ports, kill.segments = len(traces.processes), len(traces.ports), len(traces.segments)
        kill.victim, kill.killed_s = f"{command_of(victim)[:60]}[{victim.pid}]", session.age_s
        victim.send_signal(signal.SIGKILL)
        killed_at = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            session.process.wait(timeout=NOTICE_S)
        wait_until(lambda: not remains(session, traces) and not verdict(session.run)[1], CLEAN_S)
        kill.clean_after_s = round(time.monotonic() - killed_at, 1)
        if remains(session, traces) or verdict(session.run)[1]:
            # Killed in the moments before there was a keeper: the next session's part.
            swept = sweep_dead_sessions()
            kill.swept = [*swept.ended, *swept.closed]
        kill.run = session.run.name if session.run else ""
        kill.says, wrong = verdict(session.run)
        kill.left = [*remains(session, traces), *wrong]
        if session.process.poll() is None:
            kill.left.append(f"the session still runs after {NOTICE_S:g} s")
    finally:
        if session.process.poll() is None:
            os.killpg(session.process.pid, signal.SIGKILL)
            session.process.wait()
    return kill


def main() -> int:
    """Kill as often as is asked, and say what was left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=100, help="how many kills the series has (default: 100)")
    parser.add_argument("--out", type=Path, default=Path("e2e-runs/kills"), help="directory of the log, the runs and the locks")
    parser.add_argument("--seed", type=int, default=1, help="of moments and victims (default: 1)")
    options, arguments = parser.parse_known_args()
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    log = out / "kills.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    number = max((kill["number"] for kill in done), default=0)
    while len(done) < options.count:
        number += 1
        kill = kill_once(number, seed=options.seed, out=out, arguments=arguments)
        if kill is None:
            print(f"{number}: the session was over before its kill; drawn anew", flush=True)
            continue
        done.append(asdict(kill))
        with log.open("a") as file:
            file.write(json.dumps(done[-1]) + "\n")
        how = f"{kill.kind} {kill.victim} at {kill.killed_s} s ({kill.processes} processes, {kill.ports} ports)"
        what = f"left to the next session: {'; '.join(kill.swept)}" if kill.swept else "nothing left"
        what = f"LEFT: {'; '.join(kill.left)}" if kill.left else what
        print(f"{len(done)}/{options.count}: {how}: {what} after {kill.clean_after_s} s; {kill.says[:120]}", flush=True)
    bad = [kill for kill in done if kill["left"]]
    print(f"{len(done)} kills, {len(bad)} of them left something; log: {log}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
