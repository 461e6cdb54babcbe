"""Which processes belong to a run, on tables of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_ascend_e2e.launch
from pytest_ascend_e2e.launch import processes
from pytest_ascend_e2e.launch.keeper import BOOT
from pytest_ascend_e2e.launch.processes import Process, Signs, end, find, is_owner_alive, owner_text, read_process


def process(pid: int, *, parent: int = 1, session: int | None = None) -> Process:
    return Process(pid=pid, parent=parent, session=pid if session is None else session, started=pid, name=f"p{pid}")


def table(*rows: Process) -> dict[int, Process]:
    return {row.pid: row for row in rows}


def pids(found: list[Process]) -> list[int]:
    return [row.pid for row in found]


@pytest.fixture
def _tagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the process 900000 the tag A=1; the numbers are above the kernel's own."""
    monkeypatch.setattr(processes, "read_environment", lambda pid: {b"A": b"1"} if pid == 9_000_000 else {})


@pytest.mark.usefixtures("_tagged")
def test_descendants_of_a_tagged_process_are_found() -> None:
    rows = table(process(9_000_000), process(9_000_001, parent=9_000_000), process(9_000_002, parent=9_000_001), process(9_000_003))

    assert pids(find(Signs(tags=frozenset({b"A=1"})), rows)) == [9_000_000, 9_000_001, 9_000_002]


@pytest.mark.usefixtures("_tagged")
def test_the_session_of_a_tagged_process_is_found() -> None:
    rows = table(process(9_000_000, session=9_000_000), process(9_000_001, session=9_000_000), process(9_000_002, session=5))

    assert pids(find(Signs(tags=frozenset({b"A=1"})), rows)) == [9_000_000, 9_000_001]


@pytest.mark.usefixtures("_tagged")
def test_a_tag_that_only_begins_alike_is_another() -> None:
    assert find(Signs(tags=frozenset({b"A=12"})), table(process(9_000_000))) == []


@pytest.mark.usefixtures("_tagged")
def test_our_own_session_is_never_taken_for_the_runs() -> None:
    ours = os.getsid(0)
    rows = table(process(9_000_000, session=ours), process(9_000_001, session=ours))

    assert pids(find(Signs(tags=frozenset({b"A=1"})), rows)) == [9_000_000]


@pytest.mark.usefixtures("_tagged")
def test_neither_we_nor_our_parents_are_ever_found() -> None:
    rows = table(process(9_000_000), process(os.getpid(), parent=9_000_001), process(9_000_001, parent=9_000_000))

    found = pids(find(Signs(tags=frozenset({b"A=1"})), rows))

    assert os.getpid() not in found
    assert 9_000_001 not in found


def test_kernel_threads_are_never_taken_for_a_session() -> None:
    rows = table(process(9_000_001, session=0, parent=9_000_000), process(9_000_002, session=0))

    assert pids(find(Signs(roots=(9_000_000,)), rows)) == [9_000_001]


def test_a_process_that_does_not_end_is_reported() -> None:
    stuck = process(9_999_999)
    now = iter(range(100))

    told, left = end(lambda: [stuck], grace_s=0.0, sleep=lambda _: None, clock=lambda: float(next(now)))

    assert (told, left) == ([stuck], [stuck])


def test_an_owner_is_alive_while_its_process_is() -> None:
    assert is_owner_alive(owner_text(os.getpid()))


@pytest.mark.parametrize("text", ["", "x", "12", "12:", ":5"])
def test_an_owner_that_cannot_be_read_counts_as_alive(text: str) -> None:
    assert is_owner_alive(text)


def test_a_zombie_is_no_process() -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert read_process(child.pid) is None


def test_a_name_with_brackets_is_read(tmp_path: Path) -> None:
    odd = tmp_path / "a) R (b"
    odd.symlink_to(Path("/bin/sleep").resolve())
    with subprocess.Popen([str(odd), "60"]) as child:
        found = read_process(child.pid)
        child.kill()

    assert found is not None
    assert found.parent == os.getpid()


def test_the_keeper_loads_without_the_package_and_without_anything_installed() -> None:
    room = Path(pytest_ascend_e2e.launch.__file__).parent
    look = BOOT.replace(
        "sys.exit(main())", "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )

    seen = subprocess.run([sys.executable, "-I", "-S", "-c", look, str(room)], capture_output=True, text=True, check=True, cwd="/")

    assert set(seen.stdout.split()) <= {"__main__", "room"}
