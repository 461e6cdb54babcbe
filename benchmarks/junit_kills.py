"""KILL at random moments of a session of twelve cases: is the JUnit file valid each time, with every case in it exactly once?

    python benchmarks/junit_kills.py [KILLS] [--seed N] [--workers N]

Each session trains with the fake trainer of the tests on a made-up host of two devices, and is killed, with all it started, at a
moment drawn from the whole length of a session that was left alone first. Of the cases five fail, six pass, one is skipped.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import xmlschema

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from pytest_ascend_e2e.launch import sweep_dead_sessions  # noqa: E402  # the repository is on the path from here on
from pytest_ascend_e2e.report import Outcome, read_junit  # noqa: E402
from tests.fakes.npu_host import HEADER, NpuHost, make_npu_host  # noqa: E402

CASES = 12
BODY = """
import pytest

@pytest.mark.parametrize('number', range(11))
@npu_nightly(runner='toy-2')
def test_many(train, number):
    train(recipe(steps=2, env={'FAKE_TRAINER': 'nan@2'} if number % 2 else {})).check_completed()

@npu_nightly(runner='toy-4', recipe=recipe(steps=2))
def test_of_another_runner(run): run.check_completed()
"""
EXPECTED = {
    **{f"test_many[{number}]": Outcome.FAILED if number % 2 else Outcome.PASSED for number in range(CASES - 1)},
    "test_of_another_runner": Outcome.SKIPPED,
}
SCHEMA = ROOT / "tests" / "data" / "xunit2.xsd"


def start(host: NpuHost, directory: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start a session in a directory of its own."""
    directory.mkdir()
    (directory / "pytest.ini").write_text(host.ini)
    (directory / "test_cases.py").write_text(HEADER + BODY)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--runner", "toy-2", "--junitxml=junit.xml"]
    if workers:
        command.append(f"-n{workers}")
    kept = {name: value for name, value in os.environ.items() if name not in host.unset}
    environment = {**kept, **host.variables, "PYTHONPATH": os.pathsep.join([str(ROOT), host.variables["PYTHONPATH"]])}
    with (directory / "session.log").open("wb") as log:
        return subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log, start_new_session=True)


def outcomes(path: Path, schema: xmlschema.XMLSchema) -> Counter[str]:
    """Return how many cases the file has of each outcome; it must be valid and have each case exactly once."""
    schema.validate(str(path))
    cases = read_junit(path.read_bytes(), origin=str(path))
    names = Counter(case.name for case in cases)
    if set(names) != set(EXPECTED) or set(names.values()) != {1}:
        raise AssertionError(f"{path}: holds {dict(names)}; expected each of {CASES} cases once")
    if strange := [case for case in cases if case.outcome not in (EXPECTED[case.name], Outcome.UNFINISHED)]:
        raise AssertionError(
            f"{path}: {strange[0]} is {strange[0].outcome.value}; it can only be {EXPECTED[strange[0].name].value}"
        )
    return Counter(case.outcome.value for case in cases)


def main() -> int:
    """Kill as often as was asked for, print a table, and return 1 if one file was not whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="xdist workers (default: none)")
    args = parser.parse_args()
    schema = xmlschema.XMLSchema(str(SCHEMA))
    moments = random.Random(args.seed)
    with tempfile.TemporaryDirectory(prefix="junit-kills-") as temporary:
        root = Path(temporary)
        (root / "host").mkdir()
        host = make_npu_host(root / "host")
        began = time.monotonic()
        start(host, root / "whole", args.workers).wait()
        whole_s = time.monotonic() - began
        print(f"a whole session: {whole_s:.1f} s, {dict(outcomes(root / 'whole' / 'junit.xml', schema))}")
        before = bad = 0
        ended: Counter[int] = Counter()
        for number in range(args.kills):
            directory = root / f"kill-{number}"
            session = start(host, directory, args.workers)
            time.sleep(moments.uniform(0, whole_s))
            os.killpg(session.pid, signal.SIGKILL)
            session.wait()
            sweep_dead_sessions()
            xml = directory / "junit.xml"
            if not xml.exists():  # killed before it had collected
                before += 1
                continue
            try:
                found = outcomes(xml, schema)
            except (AssertionError, xmlschema.XMLSchemaException) as error:
                bad += 1
                print(f"kill {number}: {error}")
                continue
            ended[CASES - found["unfinished"]] += 1
    print(f"kills: {args.kills}, seed {args.seed}; before the collection had ended, so without a file: {before}")
    print("cases that had ended: sessions")
    for count, sessions in sorted(ended.items()):
        print(f"{count:>21}: {sessions}")
    print(f"files that are not whole: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
