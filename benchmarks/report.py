"""The HTML report of many long runs: how long it takes to write, how large it is, how fast it opens in Chromium.

    python benchmarks/report.py [--cases 50] [--steps 1000] [--directory /tmp] [--keep report.html]

The metrics are those of recorded steps of real verl, all of them, drawn at random and spread by noise. Needs Chromium
(Debian: `apt-get install chromium`).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from pytest_ascend_e2e.records import Check, RunRecord, Verdict  # noqa: E402  # found by the path above
from pytest_ascend_e2e.report.html import write_html  # noqa: E402
from tests.fakes.browser import browser  # noqa: E402
from tests.fakes.run_directories import CONFIG, SOUND  # noqa: E402

RECORDED = Path(__file__).with_name("recorded_steps.jsonl")
ROUNDS = 5
CHECKS = 24
PAINT = """
new Promise((done) => new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint")
  .forEach((entry) => done(entry.startTime))).observe({type: "paint", buffered: true}))
"""


def main() -> None:
    """Write the runs and the report, and open it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]  # it has one
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--directory", type=Path, help="where to write (default: a temporary directory)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the report as this file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        root = Path(directory)
        records = [write_case(root, number, args.steps) for number in range(args.cases)]
        path = (args.keep or root / "report.html").absolute()
        began = time.perf_counter()
        write_html(records, path)
        print(f"{args.cases} cases x {args.steps} steps: written in {time.perf_counter() - began:.1f} s, {size_mb(path):.2f} MB")
        measure(path, records)


def write_case(root: Path, number: int, steps: int) -> RunRecord:
    """Write the directory of one run and return its record."""
    noise = random.Random(number)
    rows = [json.loads(line)["data"] for line in RECORDED.read_text().splitlines()]
    directory = root / f"test_case_{number}-1"
    directory.mkdir()
    with (directory / "metrics.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            data = {key: noised(value, noise) for key, value in noise.choice(rows).items()}
            file.write(json.dumps({"step": step, "data": {**data, "training/global_step": step}}) + "\n")
    (directory / "config.yaml").write_text(CONFIG)
    (directory / "train.log").write_text("".join(f"(TaskRunner pid=1) a line of a log, the {i}th\n" for i in range(2000)))
    sentence = "critic/rewards/mean at its worst step 17 of 1..1000 is 0.5, which keeps the limit <= 0.7"
    check = Check(
        name="rewards.level", verdict=Verdict.PASSED, message=sentence, metric="critic/rewards/mean", value=0.5,
        comparison=">=", limit=0.3, origin="given by the test", step=17, band=(0.4, 0.6),
    )  # fmt: skip
    return dataclasses.replace(
        SOUND,
        run_id=directory.name,
        case=f"tests/test_cases.py::test_case_{number}",
        run_dir=str(directory),
        steps=steps,
        last_step=steps,
        checks=(check,) * CHECKS,
    )


def noised(value: float, noise: random.Random) -> float:
    """Return a value of a real run, changed by some percent in all its digits; counts stay whole numbers."""
    return value if isinstance(value, int) else value * noise.gauss(1, 0.05)


def size_mb(path: Path) -> float:
    """Return the size of a file in 10^6 bytes."""
    return path.stat().st_size / 1e6


def measure(path: Path, records: list[RunRecord]) -> None:
    """Open the report several times and print the times."""
    paints, opened = [], []
    with browser() as page:
        for record in records[:ROUNDS]:
            page.open("about:blank")
            page.open(path.as_uri())
            paints.append(page.evaluate(PAINT))
            began = page.evaluate("performance.now()")
            page.evaluate(f"location.hash = 'run-{record.run_id}'")
            page.wait_for(f"document.getElementById('run-{record.run_id}').dataset.drawn")
            opened.append(page.evaluate("performance.now()") - began)
        print(f"first contentful paint: median {statistics.median(paints):.0f} ms, most {max(paints):.0f} ms of {len(paints)}")
        print(f"page of a run, its charts drawn: median {statistics.median(opened):.0f} ms, most {max(opened):.0f} ms")
        print(f"complaints of the console: {len(page.complaints)}, requests: {sorted(set(map(kind, page.requests)))}")
        for text in page.complaints[:5]:
            print("  ", text)


def kind(address: str) -> str:
    """Return the scheme of an address."""
    return address.partition(":")[0]


if __name__ == "__main__":
    main()
