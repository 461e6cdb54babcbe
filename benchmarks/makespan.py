"""How long a suite of cases keeps a host of 16 devices, by who hands out the cases.

    python benchmarks/makespan.py [--seeds 3] [--cases 40] [--workers 8] [--unit 0.1] [--error 0.2] [--virtual]

A made-up suite: cases of 1, 2, 4, 8 or 16 devices that last 1 to 60 units. Each contender runs it in a real pytest session with
real leases of simulated devices; a case holds its devices and sleeps. The makespan lies between the first start and the last end
that the cases themselves wrote down, and is compared with a bound that no schedule can beat. `--error` is how far the estimates
that the markers give may be off, either way.

On a machine that is busy with other things the sessions' own work tells more than the schedule. `--virtual` lets the same
schedulers hand out the same suites to made-up workers in virtual time instead, hundreds of them in a minute.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScheduling, WorkStealingScheduling

from pytest_ascend_e2e.plugin.xdist_scheduler import CaseScheduling
from pytest_ascend_e2e.session import Job, lower_bound_s

DEVICES = 16
SIZES = (1, 2, 4, 8, 16)
LONGEST = 60

RUNNERS = f"""
schema: 1
runners:
  host: {{devices: {DEVICES}, chip: simulated, dies_per_card: 1, memory_gb: 1, simulated: true}}
"""
HEADER = """
import json, os, time
from pytest_ascend_e2e import npu_e2e

def hold(name, lease, seconds):
    began = time.monotonic()
    time.sleep(seconds)
    line = json.dumps({"case": name, "began": began, "ended": time.monotonic(), "devices": lease.device_ids})
    log = os.open("log.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, line.encode() + b"\\n")
    os.close(log)
"""
CASE = """
@npu_e2e(runner="host", devices={devices}, estimate={estimate})
def test_{number}(npus):
    hold("test_{number}", npus, {seconds})
"""
CONTENDERS = {
    "largest-first (ours)": (),
    "file order": ("--e2e-order", "collected", "--maxschedchunk", "1"),
    "xdist load": ("--e2e-order", "collected"),
    "xdist worksteal": ("--dist", "worksteal", "--e2e-order", "collected"),
}

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fakes.xdist_host import Host, Test  # noqa: E402  # beside this directory


@dataclass(frozen=True, slots=True)
class Held:
    """One case as it ran: seconds of the monotonic clock, and the devices it had."""

    began: float
    ended: float
    devices: tuple[int, ...]


def made_up(seed: int, *, cases: int, unit_s: float) -> list[Job]:
    """Return the suite of a seed."""
    dice = random.Random(seed)
    return [
        Job(name=f"test_{number}", devices=dice.choice(SIZES), duration_s=unit_s * dice.randint(1, LONGEST))
        for number in range(cases)
    ]


def estimated(jobs: Sequence[Job], *, error: float, seed: int) -> list[Job]:
    """Return the jobs as their markers tell of them."""
    dice = random.Random(seed)
    return [replace(job, duration_s=job.duration_s * dice.uniform(1 - error, 1 + error)) for job in jobs]


def write_suite(directory: Path, jobs: Sequence[Job], estimates: Sequence[Job]) -> None:
    """Write the test file, the runner and the settings."""
    body = "".join(
        CASE.format(devices=job.devices, estimate=estimate.duration_s, number=number, seconds=job.duration_s)
        for number, (job, estimate) in enumerate(zip(jobs, estimates, strict=True))
    )
    (directory / "test_suite.py").write_text(HEADER + body, encoding="utf-8")
    (directory / "runners.yaml").write_text(RUNNERS, encoding="utf-8")
    settings = {"runner": "host", "runners_file": "runners.yaml", "lock_dir": "locks", "history": "history.sqlite"}
    lines = ["[pytest]", *(f"e2e_{name} = {value}" for name, value in settings.items())]
    (directory / "pytest.ini").write_text("\n".join(lines), encoding="utf-8")


def run(directory: Path, flags: Sequence[str], *, workers: int) -> list[Held]:
    """Run the suite and return what the cases wrote down."""
    # Whatever this shell asks of the plugin or of pytest is not asked of the contenders.
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("ASCEND_", "PYTEST_"))}
    plugins = ("-p", "xdist", "-p", "pytest_timeout", "-p", "pytest_ascend_e2e.plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", str(workers), *plugins, *flags],
        cwd=directory,
        env={**environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"the suite failed:\n{done.stdout}{done.stderr}")
    lines = (directory / "log.jsonl").read_text(encoding="utf-8").splitlines()
    held = [json.loads(line) for line in lines]
    return [Held(one["began"], one["ended"], tuple(one["devices"])) for one in held]


def run_virtually(jobs: Sequence[Job], estimates: Sequence[Job], name: str, *, workers: int) -> float:
    """Return the makespan in virtual time."""
    tests = [Test(job.name, job.duration_s, job.devices) for job in jobs]
    host = Host(tests, devices=DEVICES, workers=workers, maxschedchunk=1 if name == "file order" else None)
    told = {job.name: job for job in estimates}
    schedulers: dict[str, Callable[[], Any]] = {
        "largest-first (ours)": lambda: CaseScheduling(
            host.config, host.log, read_jobs=lambda: told, devices=DEVICES, clock=lambda: host.now
        ),
        "xdist worksteal": lambda: WorkStealingScheduling(host.config, host.log),
    }
    return host.run(schedulers.get(name, lambda: LoadScheduling(host.config, host.log))())


def problems_of(held: Sequence[Held], jobs: Sequence[Job]) -> list[str]:
    """Return what is wrong with a run: a case that did not run, or a device that two cases had at once."""
    problems = [] if len(held) == len(jobs) else [f"{len(held)} of {len(jobs)} cases ran"]
    if sorted(len(one.devices) for one in held) != sorted(job.devices for job in jobs):
        problems.append("the cases had other numbers of devices than they asked for")
    for device in range(DEVICES):
        spans = sorted((one.began, one.ended) for one in held if device in one.devices)
        problems += [
            f"device {device}: held twice at {later[0]:.3f}"
            for earlier, later in itertools.pairwise(spans)
            if later[0] < earlier[1]
        ]
    return problems


def main() -> int:
    """Print the table; exit status 1 if ours is more than 10 % above the bound, or a device had two holders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--unit", type=float, default=0.1, help="seconds")
    parser.add_argument("--error", type=float, default=0.2)
    parser.add_argument("--virtual", action="store_true")
    args = parser.parse_args()
    ratios: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    wrong = []
    print("| seed | bound s | " + " | ".join(f"{name} s" for name in CONTENDERS) + " |")
    print("| --- | --- |" + " --- |" * len(CONTENDERS))
    for seed in range(args.seeds):
        jobs = made_up(seed, cases=args.cases, unit_s=args.unit)
        bound_s = lower_bound_s(jobs, devices=DEVICES, workers=args.workers)
        estimates = estimated(jobs, error=args.error, seed=seed)
        cells = []
        for name, flags in CONTENDERS.items():
            if args.virtual:
                took_s = run_virtually(jobs, estimates, name, workers=args.workers)
            else:
                with tempfile.TemporaryDirectory(prefix="makespan-") as directory:
                    write_suite(Path(directory), jobs, estimates)
                    held = run(Path(directory), flags, workers=args.workers)
                wrong += [f"seed {seed}, {name}: {problem}" for problem in problems_of(held, jobs)]
                took_s = max(one.ended for one in held) - min(one.began for one in held)
            ratios[name].append(took_s / bound_s)
            cells.append(f"{took_s:.1f} (+{100 * (took_s / bound_s - 1):.1f} %)")
        print(f"| {seed} | {bound_s:.1f} | {' | '.join(cells)} |", flush=True)
    for name, values in ratios.items():
        mean, most = (100 * (figure - 1) for figure in (statistics.mean(values), max(values)))
        print(f"{name}: {mean:.1f} % above the bound on average, {most:.1f} % at most")
    if not args.virtual:
        print("\n".join(wrong) or "no device had two holders")
    return 1 if wrong or max(ratios["largest-first (ours)"]) > 1.1 else 0


if __name__ == "__main__":
    sys.exit(main())
