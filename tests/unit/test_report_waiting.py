"""What is shown of a case that waits for devices."""

from __future__ import annotations

from pytest_ascend_e2e.report import waiting_lines
from pytest_ascend_e2e.runners import Holder, Waiting

HOLDER = Holder(owner="case A", pid=1, since="2026-01-01T00:00:00+00:00")
LATER = Holder(owner="case B", pid=1, since="2026-01-01T00:00:01+00:00", count=8, among=("sim-0",))


def test_it_is_said_who_has_and_who_wants_devices_those_of_one_holder_together() -> None:
    waiting = Waiting(count=4, pool=6, held={0: HOLDER, 1: HOLDER, 4: None}, foreign={5: "in use by pid 7"}, ahead=[LATER, None])

    assert list(waiting_lines("test_case", waiting)) == [
        "test_case waits for 4 of 6 devices: 2 free, 1 in use without a lease, 2 earlier requests waiting",
        "  devices 0, 1: held by 'case A', pid 1, since 2026-01-01T00:00:00+00:00",
        "  device 4: held by a process that left no name",
        "  device 5: in use by pid 7",
        "  waiting for 8 devices: 'case B', pid 1, since 2026-01-01T00:00:01+00:00",
        "  waiting: a process that left no name",
    ]
