"""KILL at random moments of a session of twelve cases: is the JUnit file valid each time, with every case in it exactly once?

    python benchmarks/junit_kills.py [KILLS] [--seed N] [--workers N]

Each session trains with the fake trainer of the tests on a made-up host of two devices, and is killed, with all it started, at a
moment drawn from the end of its collection to the end of a session that was left alone first. Of the cases five fail, six pass, one
is skipped. A file of an earlier session lies in the place; half as many sessions more are killed at any moment before the end of
their collection: that file may be there until pytest has started, and then one that says that its cases are not known.
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
EARLIER = b'<testsuites><testsuite name="pytest"><testcase classname="x" name="earlier"/></testsuite></testsuites>'
SCHEMA = ROOT / "tests" / "data" / "xunit2.xsd"


def start(host: NpuHost, directory: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start a session in a directory of its own, in which the file of an earlier one lies."""
    directory.mkdir()
    (directory / "pytest.ini").write_text(host.ini)
    (directory / "test_cases.py").write_text(HEADER + BODY)
    (directory / "junit.xml").write_bytes(EARLIER)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--runner", "toy-2", "--junitxml=junit.xml"]
    if workers:
        command.append(f"-n{workers}")
    kept = {name: value for name, value in os.environ.items() if name not in host.unset}
    environment = {**kept, **host.variables, "PYTHONPATH": os.pathsep.join([str(ROOT), host.variables["PYTHONPATH"]])}
    with (directory / "session.log").open("wb") as log:
        return subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log, start_new_session=True)


def wait_until_collected(session: subprocess.Popen[bytes], directory: Path) -> None:
    """Return as soon as the session knows its cases."""
    while b"test_many" not in (directory / "junit.xml").read_bytes():
        if session.poll() is not None:
            raise RuntimeError(f"{directory}: the session ended before it had collected; see its session.log")
        time.sleep(0.005)


def kill(session: subprocess.Popen[bytes]) -> None:
    """Kill a session with all that it started."""
    os.killpg(session.pid, signal.SIGKILL)
    session.wait()
    sweep_dead_sessions()


def outcomes(directory: Path, schema: xmlschema.XMLSchema) -> Counter[str]:
    """Return how many cases the file has of each outcome; it must be valid and have each case exactly once."""
    path = directory / "junit.xml"
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


def before_its_cases(directory: Path, schema: xmlschema.XMLSchema) -> str:
    """Return what the file of a session holds that was killed before the end of its collection; it must be valid."""
    path = directory / "junit.xml"
    if path.read_bytes() == EARLIER:
        return "the file of the earlier session: pytest had not started"
    schema.validate(str(path))
    cases = read_junit(path.read_bytes(), origin=str(path))
    if [case.outcome for case in cases if case.is_collection] == [Outcome.UNFINISHED] and len(cases) == 1:
        return "one error: the cases are not known"
    outcomes(directory, schema)
    return "every case"


def main() -> int:
    """Kill as often as was asked for, print a table, and return 1 if one file was not whole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="xdist workers (default: none)")
    args = parser.parse_args()
    schema = xmlschema.XMLSchema(str(SCHEMA))
    moments = random.Random(args.seed)
    bad = 0
    ended: Counter[int] = Counter()
    early: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="junit-kills-") as temporary:
        root = Path(temporary)
        (root / "host").mkdir()
        host = make_npu_host(root / "host")
        began = time.monotonic()
        session = start(host, root / "whole", args.workers)
        wait_until_collected(session, root / "whole")
        collected_s = time.monotonic() - began
        session.wait()
        whole_s = time.monotonic() - began
        found = dict(outcomes(root / "whole", schema))
        print(f"a whole session: {whole_s:.1f} s, of which {collected_s:.1f} s until its cases are known; {found}", flush=True)
        for number in range(args.kills + args.kills // 2):
            directory = root / f"kill-{number}"
            session = start(host, directory, args.workers)
            try:
                if number < args.kills:
                    wait_until_collected(session, directory)
                    time.sleep(moments.uniform(0, whole_s - collected_s))
                    kill(session)
                    ended[CASES - outcomes(directory, schema)["unfinished"]] += 1
                else:
                    time.sleep(moments.uniform(0, collected_s))
                    kill(session)
                    early[before_its_cases(directory, schema)] += 1
            except (AssertionError, xmlschema.XMLSchemaException) as error:
                bad += 1
                print(f"kill {number}: {error}", flush=True)
    print(f"kills: {args.kills} after the collection, and {args.kills // 2} before its end; seed {args.seed}")
    print("cases that had ended: sessions")
    for count, sessions in sorted(ended.items()):
        print(f"{count:>21}: {sessions}")
    print("killed before the end of the collection, the file holds")
    for what, sessions in sorted(early.items()):
        print(f"{sessions:>5} times {what}")
    print(f"files that are not whole: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
