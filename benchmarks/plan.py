"""What composing the cases costs: all of them in one child, against one start of verl for each.

    python benchmarks/plan.py [CASES [STARTS]]

CASES of verl's jobs are composed in one child (default: all that train with main_ppo); STARTS of them (default 3) by `--cfg job`
of verl's own program, which composes and stops. Prints the time of one case both ways, and how many times faster one child is.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.preflight import compose_cases
from tests.fakes.upstream import plans


def main(cases: int | None, starts: int) -> None:
    """Measure and print."""
    chosen = [plan for plan in plans().values() if plan.recipe.config_name == "ppo_trainer"][:cases]
    started = time.perf_counter()
    found = compose_cases([plan.request for plan in chosen], deadline=Deadline.after(3600, name="benchmark"))
    together_s = time.perf_counter() - started
    if not all(composition.is_checked and not composition.problems for composition in found):
        raise SystemExit("verl did not take all cases: nothing was measured")
    with tempfile.TemporaryDirectory() as directory:
        sample = chosen[:starts]
        started = time.perf_counter()
        for plan in sample:
            command = [sys.executable, "-m", "verl.trainer.main_ppo", *plan.arguments, "--cfg", "job"]
            subprocess.run(command, check=True, capture_output=True, cwd=Path(directory))
        alone_s = (time.perf_counter() - started) / len(sample)
    print(f"{len(chosen)} cases in one child: {together_s:.1f} s, {together_s / len(chosen):.2f} s each")
    print(f"one start of verl for each ({len(sample)} measured): {alone_s:.1f} s each, {alone_s * len(chosen):.0f} s for all")
    print(f"one child is {alone_s * len(chosen) / together_s:.1f} times faster")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 3)  # argv
