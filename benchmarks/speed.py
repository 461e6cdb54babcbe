"""How fast, and in how much memory: a console log of a million lines, and fifty records of a thousand steps.

    python benchmarks/speed.py [--lines 1000000] [--directory /tmp]

The log has about 1 kB a line and a step line in each thousand. Each contender is a process of its own; its processor time, elapsed
time and peak memory are the system's own figures. A plain loop of regular expressions, which reads what upstream's rule reads, and
`grep -c` stand beside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "faults"))

from healthy import RATE, console_log, healthy_run  # type: ignore[import-not-found,unused-ignore]  # beside this script

from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.verdict import (
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_throughput,
    check_update_health,
)

STEP_EVERY = 1000
RECORDS, STEPS = 50, 1000

# The peak of this process alone: what wait4 tells includes that of the process it was forked from.
PEAK = r"""
with open("/proc/self/status") as status:
    sys.stderr.write(re.search(r"VmHWM:\s+(\d+)", status.read())[1])
"""
COMMAND = """
import re, sys
from pytest_ascend_e2e.cli import main
main(["metrics", sys.argv[1], "--json"])
"""
OURS = """
import re, sys
from pytest_ascend_e2e.metrics import bounded_lines, read_console
with open(sys.argv[1], "rb") as stream:
    metrics = read_console(bounded_lines(stream))
print(len(metrics.steps), "steps,", len(metrics), "metrics,", len(metrics.problems), "problems")
"""
LOOP = r"""
import re, sys
step, pair = re.compile(rb"step:(\d+) - "), re.compile(rb"([\w/@-]+):(-?\d+(?:\.\d+)?(?:e-?\d+)?)")
steps = {}
with open(sys.argv[1], "rb") as stream:
    for line in stream:
        found = step.search(line)
        if found:
            steps[int(found[1])] = {key: float(value) for key, value in pair.findall(line)}
print(len(steps), "steps")
"""


def write_log(path: Path, lines: int) -> None:
    """Write the log: step lines as verl prints them, the rest what workers, engines and progress bars print."""
    rows = healthy_run(1, steps=lines // STEP_EVERY)
    steps = [line for line in console_log(rows) if b" step:" in line]
    text = (
        b"INFO 11-30 10:00:00 [scheduler.py:231] running 48 requests, waiting 0, KV cache 41.7 %, "
        + b"prompt and response tokens " * 38
    )
    with path.open("wb") as file:
        for number in range(lines):
            if number % STEP_EVERY == STEP_EVERY - 1 and steps:
                file.write(steps.pop(0))
            else:
                file.write(b"(WorkerDict pid=%d) %s %d\n" % (5000 + number % 16, text, number))


def measured(name: str, argv: Sequence[str]) -> str:
    """Run a command and return its line of the table."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as peak:
        process = subprocess.Popen(argv, stdout=out, stderr=peak)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        elapsed = time.perf_counter() - began
        out.seek(0)
        said = out.read(40).decode().strip().partition("\n")[0]
        peak.seek(0)
        text = peak.read().decode().strip()
    memory = f"{int(text) / 1024:.0f}" if text.isdigit() else text or "-"
    return f"| {name} | {used.ru_utime + used.ru_stime:.1f} | {elapsed:.1f} | {memory} | {said} |"


def judged() -> str:
    """Judge the records by all checks and return the line of what it took."""
    runs = [Metrics(healthy_run(number, steps=STEPS)) for number in range(RECORDS)]
    began, began_cpu = time.perf_counter(), time.process_time()
    checks = 0
    for metrics in runs:
        checks += len(check_completed(metrics, steps=STEPS))
        checks += len(check_rewards(metrics))
        checks += len(check_logprob_consistency(metrics, has_reference=True))
        checks += len(check_update_health(metrics, lr=RATE))
        checks += len(check_throughput(metrics, devices=16, minimum=1))
    cpu, elapsed = time.process_time() - began_cpu, time.perf_counter() - began
    return f"{RECORDS} records of {STEPS} steps: {checks} checks in {cpu:.2f} s of processor time, {elapsed:.2f} s elapsed"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    print(judged(), flush=True)
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        log = Path(directory) / "train.log"
        write_log(log, args.lines)
        print(f"\n{args.lines} lines, {log.stat().st_size / 1e9:.2f} GB")
        print("| contender | processor s | elapsed s | peak MB | found |\n| --- | --- | --- | --- | --- |")
        for name, argv in (
            ("grep -c", ["grep", "-c", "step:", str(log)]),
            ("plain Python regex loop", [sys.executable, "-c", LOOP + PEAK, str(log)]),
            ("read_console", [sys.executable, "-c", OURS + PEAK, str(log)]),
            ("ascend-e2e metrics --json", [sys.executable, "-c", COMMAND + PEAK, str(log)]),
        ):
            print(measured(name, argv), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
