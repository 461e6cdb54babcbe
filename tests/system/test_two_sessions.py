"""Two sessions of different users on one host at once, each with four workers: neither disturbs the other."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534
DEVICES, CASES = 4, 12

RUNNERS = f"""
schema: 1
runners:
  host: {{devices: {DEVICES}, chip: simulated, dies_per_card: 1, memory_gb: 1, simulated: true}}
"""
SUITE = """
import json, os, pytest, time
from pytest_ascend_e2e import npu_e2e

def hold(lease):
    began = time.monotonic()
    time.sleep(0.05)
    line = {"uid": os.getuid(), "devices": lease.device_ids, "began": began, "ended": time.monotonic()}
    with open("../log.jsonl", "a") as log:
        log.write(json.dumps(line) + "\\n")
"""
CASE = """
@npu_e2e(runner="host", devices={devices}, estimate=1)
def test_{number}(npus): hold(npus)
"""


def as_user(uid: int) -> list[str] | None:
    """Return what stands before the command of a user, None where nobody can run this interpreter as that user."""
    if uid == os.getuid():
        return []
    identity = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return None
    program = "import os, pytest, sys; os.stat(sys.executable)"
    done = subprocess.run([*identity, sys.executable, "-c", program], check=False, capture_output=True)
    return identity if done.returncode == 0 else None


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that both users can write to; the parents of tmp_path are closed to others."""
    with tempfile.TemporaryDirectory(prefix="e2e-two-sessions-") as name:
        directory = Path(name)
        directory.chmod(0o1777)
        log = directory / "log.jsonl"
        log.touch()
        log.chmod(0o666)
        (directory / "runners.yaml").write_text(RUNNERS, encoding="utf-8")
        yield directory


def start(shared: Path, uid: int, before: Sequence[str]) -> subprocess.Popen[str]:
    """Start the session of a user in a home of his own."""
    home = shared / f"home-{uid}"
    home.mkdir()
    sizes = itertools.islice(itertools.cycle((1, 2, 4, 1)), CASES)
    body = "".join(CASE.format(devices=devices, number=number) for number, devices in enumerate(sizes))
    (home / "test_suite.py").write_text(SUITE + body, encoding="utf-8")
    (home / "pytest.ini").write_text(
        "[pytest]\ne2e_runner = host\ne2e_runners_file = ../runners.yaml\n"
        f"e2e_lock_dir = {shared / 'locks'}\ne2e_lease_timeout = 5m\ne2e_history = history.sqlite\n",
        encoding="utf-8",
    )
    os.chown(home, uid, -1)
    plugins = ["-p", "xdist", "-p", "pytest_timeout", "-p", "pytest_ascend_e2e.plugin", "-p", "no:cacheprovider"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("ASCEND_", "PYTEST_"))}
    own = {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.Popen(
        [*before, sys.executable, "-m", "pytest", "-q", "-n4", *plugins],
        cwd=home,
        env={**environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_users_with_four_workers_each_share_the_devices(shared: Path) -> None:
    users = {uid: as_user(uid) for uid in (os.getuid(), NOBODY)}
    before = users[NOBODY]
    if before is None:
        pytest.skip(f"needs root and setpriv, and an interpreter that the user {NOBODY} can run; runs as user {os.getuid()}")

    sessions = [start(shared, os.getuid(), []), start(shared, NOBODY, before)]
    said = [session.communicate(timeout=900)[0] for session in sessions]

    assert [session.returncode for session in sessions] == [0, 0], "\n".join(said)
    held = [json.loads(line) for line in (shared / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(one["uid"] for one in held) == [0] * CASES + [NOBODY] * CASES
    for device in range(DEVICES):
        spans = sorted((one["began"], one["ended"]) for one in held if device in one["devices"])
        assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(spans))
    locks = [path.stat() for path in (shared / "locks").iterdir()]
    assert {stat.S_IMODE(one.st_mode) for one in locks} == {0o666}
    assert not list((shared / "locks").glob("ticket-*"))
