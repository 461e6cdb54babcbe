"""The fault bench: how many injected faults are caught, by the right check, and how often do healthy runs alarm?

    python benchmarks/faults/run.py [--repeats 20] [--healthy 200] [--runs 20] [--seed 1] [--recordings DIR]

Every run is a console log. Each repeat has a healthy run and a baseline of its own. Beside our checks stands the rule of today's
nightly jobs, whose baseline is one earlier run. Recorded runs of real trainings (those of `recorded/`, or of a directory of runs)
are each held against the others of their case; and as many runs as healthy ones are made up from their noise. The exit status is 1
if a fault is missed or healthy runs alarm too often.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import upstream_rule
from healthy import STEPS, console_log, healthy_run
from injected import FAULTS, Fault
from judging import Baselines, Setting, judge
from recordings import RECORDED, Recordings, Template, metrics_of, read_recordings

from pytest_ascend_e2e.verdict import FEWEST_RUNS

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


def recorded_alarms(case: Recordings) -> tuple[Counter[str], int]:
    """Return the alarms of the recorded runs of a case by check, and the runs that had one; each is held against all others."""
    by_check: Counter[str] = Counter()
    red = 0
    pool = Baselines(metrics_of(case.runs), 0)
    for number, rows in enumerate(case.runs):
        failed = judge(console_log(rows), 0, pool.without(number) if len(case.runs) > FEWEST_RUNS else {}, case.setting)
        by_check.update(check.name for check in failed)
        red += bool(failed)
    return by_check, red


def resampled_alarms(case: Recordings, count: int, runs: int, seed: int) -> tuple[Counter[str], int]:
    """Return the same of `count` runs that are made up from the noise of the recorded ones."""
    by_check: Counter[str] = Counter()
    red = 0
    template = Template(case)
    pool = Baselines(metrics_of(template.make(seed * 7_368_787 + number) for number in range(max(count, 2 * runs))), seed)
    for number in range(count):
        failed = judge(console_log(template.make(-1 - seed * 15_485_867 - number)), 0, pool.draw(runs), case.setting)
        by_check.update(check.name for check in failed)
        red += bool(failed)
    return by_check, red


def alarm_table(cases: Sequence[Recordings], count: int, runs: int, seed: int) -> tuple[list[str], int]:
    """Return the lines for recorded runs and for those made up from them, and how many of the latter alarmed."""
    lines = ["| case | recorded runs | with an alarm | made up from them | with an alarm |", "| --- | --- | --- | --- | --- |"]
    all_red = 0
    for case in cases:
        by_check, red = recorded_alarms(case)
        made_by_check, made_red = resampled_alarms(case, count // len(cases), runs, seed)
        all_red += made_red
        told = f"{red} {dict(by_check) or ''}".strip()
        lines.append(
            f"| {case.case} | {len(case.runs)} | {told} | {count // len(cases)} | {made_red} {dict(made_by_check) or ''} |"
        )
    return lines, all_red


def recorded_table(cases: Sequence[Recordings]) -> tuple[list[str], int]:
    """Return the lines for the faults injected into a recorded run (those that need no baseline), and how many were missed."""
    lines = ["| recorded run | faults | caught by the right check | missed |", "| --- | --- | --- | --- |"]
    missed = 0
    for case in cases:
        rows = {step: row for step, row in case.runs[0].items() if step <= STEPS}
        setting = replace(case.setting, steps=STEPS)
        faults = [fault for fault in FAULTS if needs_no_baseline(fault, setting)]
        wrong = []
        for fault in faults:
            failed = [check.name for check in judge(fault.lines(rows, random.Random(1)), fault.exit_status, {}, setting)]
            if not right(fault, failed):
                wrong.append(fault.name)
        missed += len(wrong)
        lines.append(f"| {case.case} | {len(faults)} | {len(faults) - len(wrong)} | {', '.join(wrong) or 'none'} |")
    return lines, missed


def needs_no_baseline(fault: Fault, setting: Setting) -> bool:
    """Tell whether a fault can be seen without a baseline in a run of this setting."""
    if not setting.has_reference and any(check.startswith("logprob.reference") for check in fault.checks):
        return False
    if setting.clips_sequences and fault.name == "most tokens clipped":  # which GSPO may
        return False
    return fault.name not in NOT_IN_RECORDED and not all(check.startswith("baseline.") for check in fault.checks)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--healthy", type=int, default=200)
    parser.add_argument("--runs", type=int, default=20, help="runs of each baseline")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recordings", type=Path, default=RECORDED, metavar="DIR", help="directory of recorded runs")
    args = parser.parse_args()
    began = time.perf_counter()
    pool = Baselines.of_healthy_runs(args.seed)
    cases = read_recordings(args.recordings)
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
    alarms, red_resampled = alarm_table(cases, args.healthy, args.runs, args.seed)
    lines, missed_recorded = recorded_table(cases)
    print("\n".join((*alarms, "", *lines)))
    print(f"\n{time.perf_counter() - began:.0f} s")
    return int(bool(missed) or max(red, red_resampled) * 200 > args.healthy or missed_recorded > 0)


if __name__ == "__main__":
    sys.exit(main())
