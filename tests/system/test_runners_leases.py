"""Leases between real processes: nobody gets a device that another holds, also when holders are killed."""

from __future__ import annotations

import fcntl
import os
import queue
import random
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import LeaseError
from pytest_ascend_e2e.runners import DevicePool, LockDirectory, Slot, simulated_slots
from pytest_ascend_e2e.runners.locks import free
from tests.fakes.lease_holder import ROOT, pool, start

Starter = Callable[..., "subprocess.Popen[str]"]


def soon(limit_s: float = 20.0) -> Deadline:
    return Deadline.after(limit_s, name="lease")


def wait_until(is_so: Callable[[], bool], limit_s: float = 120.0) -> None:
    deadline = Deadline.after(limit_s, name="test")
    while not is_so():
        assert not deadline.is_over()
        time.sleep(0.01)


def tickets(directory: Path) -> int:
    return len(list(directory.glob("ticket-*")))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Starter]:
    """Starts holders on tmp_path, and ends them with the test."""
    children: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        children.append(start(tmp_path, *words))
        return children[-1]

    yield begin
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def waiter() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Runs functions in threads, and joins them at the end of the test."""
    threads: list[threading.Thread] = []

    def begin(work: Callable[[], object]) -> None:
        threads.append(threading.Thread(target=work))
        threads[-1].start()

    yield begin
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_no_device_has_two_holders_while_holders_are_killed(tmp_path: Path, holder: Starter) -> None:
    log = tmp_path / "log"
    log.touch()
    running = [holder("cycle", "--devices", "4", "--most", "3", "--seed", str(seed)) for seed in range(8)]
    dice = random.Random(20261130)  # noqa: S311  # a test's dice
    kills = 0

    def lines() -> list[str]:
        return log.read_text(encoding="ascii").splitlines()

    wait_until(lambda: len(lines()) >= 30)
    while len(lines()) < 300:
        seen = len(lines())
        victim = dice.randrange(len(running))
        running[victim].send_signal(signal.SIGKILL)
        running[victim].wait(10)
        kills += 1
        running[victim] = holder("cycle", "--devices", "4", "--most", "3", "--seed", str(100 + kills))
        wait_until(lambda seen=seen: len(lines()) >= seen + 30)  # type: ignore[misc]  # mypy cannot type a lambda's default

    assert [line for line in lines() if line.startswith("DOUBLE")] == []
    assert kills >= 5


def test_all_devices_are_free_again_after_their_holder_was_killed(tmp_path: Path, holder: Starter) -> None:
    first = holder("hold", "--devices", "2")
    assert first.stdout is not None
    orphan = int(first.stdout.readline())

    first.kill()
    first.wait(10)

    try:
        with pool(tmp_path / "locks", 2).lease(2, deadline=soon(), owner="the second run") as lease:
            assert lease.device_ids == (0, 1)
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_a_training_process_keeps_the_devices_of_its_killed_starter(tmp_path: Path, holder: Starter) -> None:
    first = holder("hold", "--devices", "2", "--inherit")
    assert first.stdout is not None
    training = int(first.stdout.readline())
    first.kill()
    first.wait(10)

    try:
        with pytest.raises(LeaseError, match=rf"device 0: held by 'the first run', pid {first.pid} \(not seen here") as caught:
            pool(tmp_path / "locks", 2).lease(1, deadline=soon(0.1), owner="the second run")
    finally:
        os.kill(training, signal.SIGKILL)

    assert len(caught.value.problems) == 3
    with pool(tmp_path / "locks", 2).lease(2, deadline=soon(), owner="the second run") as lease:
        assert lease.device_ids == (0, 1)


def test_the_descriptors_of_a_lease_reach_a_child_only_by_pass_fds(tmp_path: Path) -> None:
    with pool(tmp_path, 2).lease(2, deadline=soon(), owner="run") as lease:
        inheritable = [os.get_inheritable(descriptor) for descriptor in lease.fds]

    assert inheritable == [False, False]


def test_a_device_given_back_under_a_living_child_stays_held(tmp_path: Path) -> None:
    lease = pool(tmp_path, 1).lease(1, deadline=soon(), owner="run")
    with subprocess.Popen(["/bin/sleep", "300"], pass_fds=lease.fds) as child:
        try:
            lease.release()

            with pytest.raises(LeaseError, match="device 0: held by 'run'"):
                pool(tmp_path, 1).lease(1, deadline=soon(0), owner="next")
        finally:
            child.kill()


def test_a_large_request_gets_its_turn_among_small_ones(tmp_path: Path, holder: Starter) -> None:
    for seed in range(3):
        holder("cycle", "--devices", "4", "--seed", str(seed))
    log = tmp_path / "log"
    wait_until(lambda: log.exists() and len(log.read_text().splitlines()) >= 30)

    with pool(tmp_path / "locks", 4).lease(4, deadline=soon(), owner="large") as lease:
        assert lease.device_ids == (0, 1, 2, 3)


def test_a_later_request_does_not_overtake_one_that_waits(tmp_path: Path, waiter: Callable[[Callable[[], object]], None]) -> None:
    devices = pool(tmp_path, 2)
    order: queue.Queue[str] = queue.Queue()

    def lease(count: int, owner: str) -> None:
        with devices.lease(count, deadline=soon(), owner=owner):
            order.put(owner)

    with devices.lease(1, deadline=soon(), owner="first"):
        waiter(lambda: lease(2, "large"))
        wait_until(lambda: tickets(tmp_path) == 1)
        waiter(lambda: lease(1, "small"))
        wait_until(lambda: tickets(tmp_path) == 2)
        time.sleep(0.1)  # ten polls, in which the small request could overtake: one device is free
        order.put("first given back")

    assert [order.get(timeout=20) for _ in range(3)] == ["first given back", "large", "small"]


def test_a_request_for_other_devices_does_not_wait(tmp_path: Path, waiter: Callable[[Callable[[], object]], None]) -> None:
    locks = LockDirectory(tmp_path)
    slots = simulated_slots(4)
    left, right = (DevicePool(slots=part, locks=locks, poll_s=0.01) for part in (slots[:2], slots[2:]))

    with left.lease(2, deadline=soon(), owner="first"):
        waiter(lambda: left.lease(2, deadline=soon(), owner="waits").release())
        wait_until(lambda: tickets(tmp_path) == 1)

        with right.lease(2, deadline=soon(0), owner="elsewhere") as lease:
            assert lease.device_ids == (2, 3)


def test_a_request_that_may_not_wait_does_not_fail_by_the_moment_of_another(tmp_path: Path) -> None:
    others = LockDirectory(tmp_path)
    moment = [others.try_lock("devices.mutex")]

    def sleep(_seconds: float) -> None:
        for descriptor in filter(None, moment):
            free(descriptor)
        moment.clear()

    devices = DevicePool(slots=simulated_slots(1), locks=LockDirectory(tmp_path, sleep=sleep))

    with devices.lease(1, deadline=soon(0), owner="at once") as lease:
        assert lease.device_ids == (0,)


def test_a_process_that_stopped_among_the_locks_is_named_after_half_a_minute(tmp_path: Path) -> None:
    stopped = LockDirectory(tmp_path).try_lock("devices.mutex")
    assert stopped is not None
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    devices = DevicePool(slots=simulated_slots(1), locks=LockDirectory(tmp_path, sleep=sleep))

    with pytest.raises(LeaseError, match=r"another process has not let go of it \(lease\); see .* fuser -v .*devices.mutex"):
        devices.lease(1, deadline=Deadline.after(1.0, name="lease", clock=lambda: now[0]), owner="waits")

    assert now[0] == pytest.approx(30, abs=0.1)
    free(stopped)


def test_the_ticket_of_a_killed_waiter_stops_nobody(tmp_path: Path, holder: Starter) -> None:
    devices = pool(tmp_path / "locks", 2)
    with devices.lease(1, deadline=soon(), owner="first"):
        waiting = holder("hold", "--devices", "2")
        wait_until(lambda: tickets(tmp_path / "locks") == 1)
        waiting.kill()
        waiting.wait(10)

        with devices.lease(1, deadline=soon(), owner="second") as lease:
            assert lease.device_ids == (1,)

    assert tickets(tmp_path / "locks") == 0


def test_a_deadline_names_who_holds_what_and_who_waits(tmp_path: Path, waiter: Callable[[Callable[[], object]], None]) -> None:
    devices = DevicePool(slots=simulated_slots(3), locks=LockDirectory(tmp_path, now=lambda: 1767225600.0), poll_s=0.01)

    with devices.lease(2, deadline=soon(), owner="case A on gw0"):
        waiter(lambda: devices.lease(3, deadline=soon(), owner="case B").release())
        wait_until(lambda: tickets(tmp_path) == 1)
        with pytest.raises(LeaseError) as caught:
            devices.lease(2, deadline=soon(0.1), owner="case C")

    who = f"pid {os.getpid()}, since 2026-01-01T00:00:00+00:00"
    first, *others = caught.value.problems
    assert first.startswith(
        "2 of 3 devices could not be leased for 'case C' within 0.1s (lease): 1 free, 1 earlier requests waiting;"
    )
    assert others == [
        f"device 0: held by 'case A on gw0', {who}",
        f"device 1: held by 'case A on gw0', {who}",
        f"waiting for 3 devices: 'case B', {who}",
    ]


def test_a_request_that_gave_up_holds_no_place(tmp_path: Path) -> None:
    devices = pool(tmp_path, 1)

    with devices.lease(1, deadline=soon(), owner="first"), pytest.raises(LeaseError):
        devices.lease(1, deadline=soon(0), owner="second")

    assert tickets(tmp_path) == 0


@pytest.mark.parametrize("count", [0, -1, 3])
def test_more_or_fewer_devices_than_there_can_be_are_refused_at_once(tmp_path: Path, count: int) -> None:
    with pytest.raises(LeaseError, match=rf"{count} devices cannot be leased for 'run': the pool has 2 \(devices: 0, 1\)"):
        pool(tmp_path, 2).lease(count, deadline=soon(), owner="run")

    assert list(tmp_path.iterdir()) == []


def test_an_error_inside_the_lease_gives_the_devices_back(tmp_path: Path) -> None:
    devices = pool(tmp_path, 1)

    with pytest.raises(ZeroDivisionError), devices.lease(1, deadline=soon(), owner="first"):
        raise ZeroDivisionError

    devices.lease(1, deadline=soon(0), owner="second").release()


def test_a_lease_given_back_twice_harms_nobody(tmp_path: Path) -> None:
    devices = pool(tmp_path, 1)
    lease = devices.lease(1, deadline=soon(), owner="first")

    lease.release()
    with devices.lease(1, deadline=soon(), owner="second"):
        lease.release()

        with pytest.raises(LeaseError, match="'second'"):
            devices.lease(1, deadline=soon(0), owner="third")


def test_a_lock_file_that_a_cleaner_removed_is_made_anew(tmp_path: Path) -> None:
    devices = pool(tmp_path, 1)
    devices.lease(1, deadline=soon(), owner="first").release()
    (tmp_path / "sim-0").unlink()

    with devices.lease(1, deadline=soon(0), owner="second"):
        assert (tmp_path / "sim-0").exists()


def test_a_lock_on_a_file_that_was_just_removed_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks = LockDirectory(tmp_path)
    flock = fcntl.flock

    def flock_after_the_cleaner(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        (tmp_path / "sim-0").unlink()
        flock(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", flock_after_the_cleaner)
    descriptor = locks.try_lock("sim-0")

    assert descriptor is not None
    assert locks.try_lock("sim-0") is None
    free(descriptor)


def test_the_lock_directory_and_its_files_are_for_all_users(tmp_path: Path) -> None:
    script = "import os, sys; os.umask(0o077)\n" + SNIPPET
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "locks")], cwd=ROOT, check=True)

    assert stat.S_IMODE((tmp_path / "locks").stat().st_mode) == 0o1777
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "locks").iterdir()} == {0o666}


SNIPPET = """
import os, sys
from pathlib import Path
from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.runners import DevicePool, LockDirectory, simulated_slots
if len(sys.argv) > 2:
    os.setuid(int(sys.argv[2]))
pool = DevicePool(slots=simulated_slots(1), locks=LockDirectory(Path(sys.argv[1])))
pool.lease(1, deadline=Deadline.after(0, name="lease"), owner="another user").release()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: only root can act as two users; runs as another user")
def test_two_users_share_the_lock_directory() -> None:
    # Not tmp_path: its parents are closed to other users.
    with tempfile.TemporaryDirectory(prefix="e2e-two-users-") as name:
        Path(name).chmod(0o755)
        locks = Path(name) / "locks"
        pool(locks, 1).lease(1, deadline=soon(), owner="root").release()

        done = subprocess.run(
            [sys.executable, "-c", SNIPPET, str(locks), "65534"], cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True
        )

        assert (done.returncode, done.stderr) == (0, "")
        with pool(locks, 1).lease(1, deadline=soon(0), owner="root"):
            pass


def test_a_link_in_place_of_a_lock_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("text", encoding="utf-8")
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "sim-0").symlink_to(target)

    with pytest.raises(LeaseError, match="sim-0: the lock file cannot be opened"):
        pool(tmp_path / "locks", 1).lease(1, deadline=soon(0), owner="run")

    assert target.read_text(encoding="utf-8") == "text"


def test_a_link_in_place_of_the_lock_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(LeaseError, match="locks: not a directory that this user can write"):
        pool(tmp_path / "locks", 1).lease(1, deadline=soon(0), owner="run")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"owner": 1}', "\x00\xff"])
def test_a_holder_that_left_no_readable_name_is_reported_as_such(tmp_path: Path, text: str) -> None:
    devices = pool(tmp_path, 1)

    with devices.lease(1, deadline=soon(), owner="first"):
        (tmp_path / "sim-0").write_text(text, encoding="utf-8")

        with pytest.raises(LeaseError, match="device 0: held by a process that left no name"):
            devices.lease(1, deadline=soon(0), owner="second")


def test_the_dies_of_one_card_are_leased_together(tmp_path: Path) -> None:
    slots = [Slot(id=number, card=number // 2, lock_name=f"npu-{number}") for number in range(4)]
    devices = DevicePool(slots=slots, locks=LockDirectory(tmp_path))

    with devices.lease(1, deadline=soon(), owner="one die"), devices.lease(2, deadline=soon(), owner="one card") as lease:
        assert lease.device_ids == (2, 3)
