"""The smoke suite many times in a row, and a table of what came out: is it green each time, does the reward rise each time?

    python benchmarks/repeat_smoke.py [ROUNDS] [--run-root DIR] [pytest's own arguments]

Every round is a session of its own. The table is made from the records of the runs, so an interrupted series still gives one:
`--table-only` makes it from the records that are there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_ascend_e2e.metrics import read_jsonl
from pytest_ascend_e2e.nodeids import own_name
from pytest_ascend_e2e.records import RunRecord
from pytest_ascend_e2e.verdict import mann_kendall

ROOT = Path(__file__).parent.parent
COLUMNS = (
    "case", "run", "verdict", "reward, first 5 steps", "reward, last 5 steps", "p of the rise", "least Pearson",
    "largest mean difference", "KL at step 1", "s/step", "seconds",
)  # fmt: skip


def line(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def row(directory: Path) -> str:
    """Return the line of one run."""
    record = RunRecord.from_json((directory / "record.json").read_text(), origin=str(directory))
    metrics = read_jsonl((directory / "metrics.jsonl").read_bytes().splitlines(keepends=True))
    rewards = metrics["critic/rewards/mean"]
    rise = mann_kendall(rewards.steps, rewards.values)
    start_kl = f"{metrics['actor/kl_loss'].at(1):.1e}" if "actor/kl_loss" in metrics else "-"
    cells = [
        own_name(record.case),
        record.run_id.rpartition("-")[2],
        "green" if record.is_passed else "RED",
        f"{rewards.first(5).mean():.3f}",
        f"{rewards.last(5).mean():.3f}",
        f"{rise.p_rise:.1e}",
        f"{metrics['training/rollout_actor_probs_pearson_corr'].min():.5f}",
        f"{metrics['training/rollout_probs_diff_mean'].max():.1e}",
        start_kl,
        f"{record.summary['step_time_s']:.1f}",
        f"{record.duration_s:.0f}",
    ]
    return line(cells)


def main() -> int:
    """Run the rounds and print the table; the exit status is the number of rounds that were not green."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", nargs="?", type=int, default=10)
    parser.add_argument("--run-root", type=Path, default=ROOT / "e2e-runs" / "repeat")
    parser.add_argument("--table-only", action="store_true")
    args, more = parser.parse_known_args()
    red = 0
    for number in range(0 if args.table_only else args.rounds):
        command = [sys.executable, "-m", "pytest", "tests/e2e_npu/test_smoke.py", "--runner", "sim-2"]
        command += ["--e2e-run-root", str(args.run_root), *more]
        status = subprocess.run(command, check=False, cwd=ROOT).returncode
        red += status != 0
        print(f"round {number + 1} of {args.rounds}: exit status {status}", flush=True)
    lines = sorted(row(path.parent) for path in args.run_root.glob("*/record.json"))
    print("\n".join([line(COLUMNS), line(["---"] * len(COLUMNS)), *lines]))
    return red


if __name__ == "__main__":
    sys.exit(main())
