"""How much faster a plan is than composing each case with a start of verl of its own.

    python benchmarks/plan.py [STARTS [PYTEST ARGUMENTS...]]

Measures `pytest tests/e2e_npu --e2e-plan` (or with the arguments given), which composes all cases in one child; then, for STARTS of
the planned cases (default 3), spread over them, `--cfg job` of verl's own program: it imports what it imports for a training,
composes, prints the configuration and stops. A start takes as long for one case as for another: the measured ones stand for all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # a script finds only what lies beside it

from pytest_ascend_e2e.launch import simulation_env  # as above
from pytest_ascend_e2e.preflight import Plan
from pytest_ascend_e2e.report import Suite
from tests.fakes.upstream import ROOT, plans

WANTED = 15


def plan_all(arguments: Sequence[str], directory: Path) -> tuple[float, Suite]:
    """Return the seconds that a plan of the suite took, and what was planned."""
    file = directory / "suite.json"
    command = [sys.executable, "-m", "pytest", *arguments, "--e2e-plan", "-q", "-p", "no:cacheprovider", "--e2e-export", str(file)]
    started = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"the plan ended with status {done.returncode}: nothing was measured\n{done.stdout}{done.stderr}")
    return seconds, Suite.read(file)


def start_alone(plan: Plan, directory: Path, environment: Mapping[str, str]) -> float:
    """Return the seconds that a start of verl took which composed one case and printed it."""
    module = "verl.trainer.main_ppo" if plan.recipe.config_name == "ppo_trainer" else "verl.trainer.sft_trainer"
    command = [sys.executable, "-m", module, *plan.arguments, "--cfg", "job"]
    started = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=directory, env=dict(environment))
    seconds = time.perf_counter() - started
    if done.returncode != 0 or "trainer:" not in done.stdout:
        sys.exit(f"{module} --cfg job ended with status {done.returncode}: nothing was measured\n{done.stderr[-2000:]}")
    return seconds


def main(starts: int, arguments: Sequence[str]) -> None:
    """Measure and print."""
    # Without the patches of the simulation, verl cannot be imported beside a torch for CPUs; its fork server only adds a start.
    environment = {**os.environ, **simulation_env(), "SIMNPU_FORK_SERVER": ""}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment["PYTHONPATH"], os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        together_s, suite = plan_all(arguments, directory)
        planned = list(dict.fromkeys(row.case for row in suite.rows if row.is_composed))
        known = [plans()[case] for case in planned if case in plans()]
        if not known:
            sys.exit("no case was planned that verl composed: nothing was measured")
        sample = known[:: max(1, len(known) // starts)][:starts]
        alone_s = [start_alone(plan, directory, environment) for plan in sample]
    each_s = sum(alone_s) / len(alone_s)
    all_s = each_s * len(planned)
    print(f"plan of {len(planned)} cases: {together_s:.1f} s, collection, rules and report included")
    print(f"one start of verl each: {', '.join(f'{seconds:.1f}' for seconds in alone_s)} s; {each_s:.1f} s on average")
    print(f"times {len(planned)} cases, of which {len(alone_s)} were measured: {all_s:.0f} s")
    print(f"ratio: {all_s / together_s:.1f} (wanted: {WANTED})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:] or ["tests/e2e_npu"])
