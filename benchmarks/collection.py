"""What the plugin costs at collection, in turns: plain tests without it, the same tests with it, and as many cases.

    python benchmarks/collection.py [ROUNDS]

Prints the median of each and its ratio to the first. Bytecode is cached, as it is wherever pytest has run before.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "e2e_npu"


def seconds(*args: str, cwd: Path) -> float:
    """Return how long one collection takes, in seconds."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *args]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=cwd, env=environ)
    return time.perf_counter() - started


def main(rounds: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        bare = Path(name)
        for path in CASES.glob("test_*.py"):
            tests = [line for line in path.read_text().splitlines() if line.startswith("def test_")]
            plain = "\n".join(f"{line.partition('(')[0]}():\n    pass\n" for line in tests)
            (bare / path.name).write_text(plain)
        sorts = {
            "plain tests, without the plugin": (["-p", "no:ascend_e2e", "."], bare),
            "plain tests, with the plugin": (["."], bare),
            "cases": ([str(CASES)], ROOT),
        }
        taken: dict[str, list[float]] = {what: [] for what in sorts}
        for turn in range(rounds + 1):
            for what, (args, cwd) in sorts.items():
                spent = seconds(*args, cwd=cwd)
                if turn:  # the first one fills the caches
                    taken[what].append(spent)
    medians = {what: statistics.median(times) for what, times in taken.items()}
    least = min(medians.values())
    for what, median in medians.items():
        print(f"{what:<32} {median:.3f} s  {median / least:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
