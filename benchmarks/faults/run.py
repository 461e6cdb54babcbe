"""The fault bench: how many injected faults are caught, by the right check, and how often do healthy runs alarm?

    python benchmarks/faults/run.py [--repeats 20] [--healthy 200] [--runs 20] [--seed 1]

Every run is a console log. Each repeat has a healthy run and a baseline of its own. Beside our checks stands the rule of today's
nightly jobs, whose baseline is one earlier run. The exit status is 1 if a fault is missed or healthy runs alarm too often.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

import upstream_rule
from healthy import RECORDINGS, console_log, healthy_run, recorded_run
from injected import FAULTS, Fault
from judging import Baselines, Setting, judge

SIMULATED = {name: Setting(dtype="float32", devices=2, lr=5e-4, has_reference=has) for name, has in RECORDINGS.items()}


# Without a baseline, report_only claims nothing of single steps and memory; a multiple of float32's rounding is no drift; and a
# recorded run has another learning rate than the one to break.
NOT_IN_RECORDED = {"one step stalls", "memory leak", "log-prob drift, slow", "number broken in one line"}


def right(fault: Fault, names: list[str]) -> bool:
    """Tell whether one of the failed checks is one that this fault is for."""
    return any(name.startswith(fault.checks) for name in names)


def healthy_alarms(count: int, runs: int, seed: int, pool: Baselines) -> tuple[Counter[str], int, int]:
    """Return the alarms of our checks by name, the runs that had one, and the runs that the upstream rule failed."""
    by_check: Counter[str] = Counter()
    red = upstream_red = 0
    for number in range(count):
        lines = console_log(healthy_run(seed * 7919 + number))
        failed = judge(lines, 0, pool.draw(runs), Setting())
        by_check.update(check.name for check in failed)
        red += bool(failed)
        upstream_red += bool(upstream_rule.failures(lines, upstream_rule.figures(console_log(healthy_run(-1 - number)))))
    return by_check, red, upstream_red


def caught(fault: Fault, repeats: int, runs: int, seed: int, pool: Baselines) -> tuple[int, int, Counter[str]]:
    """Return how often a fault was caught by the right check, how often upstream's rule caught it, and the checks that failed."""
    ours = upstream = 0
    names: Counter[str] = Counter()
    for number in range(repeats):
        lines = fault.lines(healthy_run(seed * 104_729 + number), random.Random(number))
        failed = [check.name for check in judge(lines, fault.exit_status, pool.draw(runs), Setting())]
        ours += right(fault, failed)
        names.update(set(failed))
        upstream += bool(upstream_rule.failures(lines, upstream_rule.figures(console_log(healthy_run(-1 - number)))))
    return ours, upstream, names


def recorded_table() -> tuple[list[str], int]:
    """Return the lines for the faults injected into recorded runs (those that need no baseline), and how many were missed."""
    lines, missed = (
        [
            "| recorded run | healthy: failed checks | faults | caught by the right check | missed |",
            "| --- | --- | --- | --- | --- |",
        ],
        0,
    )
    for name, setting in SIMULATED.items():
        rows = recorded_run(name)
        alarms = [check.name for check in judge(console_log(rows), 0, {}, setting)]
        faults = [fault for fault in FAULTS if needs_no_baseline(fault, setting)]
        wrong = []
        for fault in faults:
            failed = [check.name for check in judge(fault.lines(rows, random.Random(1)), fault.exit_status, {}, setting)]
            if not right(fault, failed):
                wrong.append(fault.name)
        missed += len(wrong) + len(alarms)
        shown = ", ".join(wrong) or "none"
        lines.append(f"| {name} | {', '.join(alarms) or 'none'} | {len(faults)} | {len(faults) - len(wrong)} | {shown} |")
    return lines, missed


def needs_no_baseline(fault: Fault, setting: Setting) -> bool:
    """Tell whether a fault can be seen without a baseline in a run of this setting."""
    if not setting.has_reference and any(check.startswith("logprob.reference") for check in fault.checks):
        return False
    return fault.name not in NOT_IN_RECORDED and not all(check.startswith("baseline.") for check in fault.checks)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--healthy", type=int, default=200)
    parser.add_argument("--runs", type=int, default=20, help="runs of each baseline")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.perf_counter()
    pool = Baselines(args.seed)
    by_check, red, upstream_red = healthy_alarms(args.healthy, args.runs, args.seed, pool)
    print(
        f"{args.healthy} healthy runs: {red} with an alarm of ours ({dict(by_check)}), {upstream_red} failed by upstream's rule\n"
    )
    print(f"| fault | caught by the right check | checks that fail in every repeat | upstream's rule |\n{'| --- ' * 4}|")
    missed, upstream_all = [], 0
    for fault in FAULTS:
        ours, upstream, names = caught(fault, args.repeats, args.runs, args.seed, pool)
        every = sorted((name for name in names if names[name] == args.repeats), key=lambda name: (not right(fault, [name]), name))
        always = ", ".join(f"`{name}`" for name in every[:3]) + (f" and {len(every) - 3} more" if len(every) > 3 else "")
        print(f"| {fault.name} | {ours} of {args.repeats} | {always} | {upstream} of {args.repeats} |", flush=True)
        upstream_all += upstream == args.repeats
        if ours < args.repeats:
            missed.append(f"{fault.name} ({ours})")
    print(f"\n{len(FAULTS)} faults: {len(FAULTS) - len(missed)} caught in every repeat, upstream's rule {upstream_all}")
    print(f"not always caught: {', '.join(missed) or 'none'}\n")
    lines, missed_recorded = recorded_table()
    print("\n".join(lines))
    print(f"\n{time.perf_counter() - began:.0f} s")
    return int(bool(missed) or red * 200 > args.healthy or missed_recorded > 0)


if __name__ == "__main__":
    sys.exit(main())
