"""The scheduler of an xdist session with cases: it hands a worker a case when devices for it are free, and other tests meanwhile.

Imported only where xdist is in use. Must not know: which case is best (`session/schedule.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, final

from xdist.scheduler import LoadScheduling

from ..session import Job, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

# Of tests that are no cases, a worker gets so many at once: neighbours share fixtures, and a case waits for no more than these.
_CHUNK = 8
# The running one and the one behind it: with fewer, a worker waits for us.
_ENOUGH = 3


@final
class CaseScheduling(LoadScheduling):  # type: ignore[misc]  # xdist does not say that it is typed
    """Starts cases by size and duration on workers that are free, as far as devices go; a session without cases is xdist's own.

    A worker is *open* when its last test waits for what comes next, see `scheduling.Standby`. `read_jobs` gives the cases by id,
    once they are collected.
    """

    collection: list[str] | None
    pending: list[int]
    node2pending: dict[WorkerController, list[int]]
    node2collection: dict[WorkerController, list[str]]

    def __init__(
        self,
        config: pytest.Config,
        log: Producer,
        *,
        read_jobs: Callable[[], Mapping[str, Job]],
        devices: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config, log)
        self._read_jobs = read_jobs
        self._devices = devices
        self._clock = clock
        self._jobs: dict[int, Job] = {}
        self._running: dict[WorkerController, tuple[Job, float]] = {}
        self._open: set[WorkerController] = set()

    def schedule(self) -> None:
        """Hand out tests for the first time, or after a worker was replaced."""
        if self.collection is None:
            first, *others = self.node2collection.values()
            told = self._read_jobs()
            jobs = {index: told[name] for index, name in enumerate(first) if name in told}
            if not jobs or any(other != first for other in others):
                super().schedule()  # which tells of the difference
                return
            self.collection, self._jobs = first, jobs
            self.pending[:] = range(len(first))
        if self._jobs:
            self._hand_out()
        else:
            super().schedule()

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Hand out tests after something changed."""
        if self._jobs:
            self._hand_out()
        else:
            super().check_schedule(node, duration)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Take note of a test that ended."""
        if self._jobs and item_index == self._standby:
            return
        self._running.pop(node, None)
        super().mark_test_complete(node, item_index, duration)

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker out; what it had not begun is handed out again."""
        self._running.pop(node, None)
        self._open.discard(node)
        crashed: str | None = super().remove_node(node)
        return crashed

    @property
    def _standby(self) -> int:
        """The index of the worker's own item that stands for the next test: the one behind all that were collected."""
        return len(self.collection or ())

    def _hand_out(self) -> None:
        nodes = [node for node in self.node2pending if not node.shutting_down]
        if not self.pending:
            for node in nodes:
                node.shutdown()
            return
        chosen = self._cases_to_start(nodes)
        idle = [node for node in nodes if not self.node2pending[node]]
        for index, node in zip(chosen, idle, strict=False):
            self._start_case(node, index)
        others = [index for index in self.pending if index not in self._jobs]
        for node in self._topped_up(nodes, kept_free=len(chosen) - len(idle)):
            self._send_others(node, others)
        for node in nodes:
            # Nothing follows for now: let the worker begin the test that it holds.
            if node in self._open and len(self.node2pending[node]) == 1:
                self._send(node, [])

    def _cases_to_start(self, nodes: Sequence[WorkerController]) -> list[int]:
        """Return the cases whose turn it is, also those that no worker is free for yet."""
        index_of = {self._jobs[index].name: index for index in self.pending if index in self._jobs}
        now = self._clock()
        running = [_rest_of(job, now - since) for job, since in self._running.values()]
        waiting = [self._jobs[index] for index in index_of.values()]
        found = starts(waiting, running, devices=self._devices, workers=len(nodes))
        return [index_of[job.name] for job in found]

    def _topped_up(self, nodes: Sequence[WorkerController], *, kept_free: int) -> list[WorkerController]:
        """Return the workers that get more of the other tests, but for as many as have cases waiting for them."""
        able = [node for node in nodes if node not in self._running and len(self.node2pending[node]) < _ENOUGH]
        able.sort(key=lambda node: len(self.node2pending[node]))
        return able[max(0, kept_free) :]

    def _start_case(self, node: WorkerController, index: int) -> None:
        self._running[node] = (self._jobs[index], self._clock())
        self.pending.remove(index)
        self._send(node, [index])

    def _send_others(self, node: WorkerController, others: list[int]) -> None:
        share = -(-len(others) // (2 * len(self.node2pending)))  # the last ones are spread over all workers
        chunk, others[:] = others[: min(share, _CHUNK)], others[min(share, _CHUNK) :]
        if chunk:
            for index in chunk:
                self.pending.remove(index)
            self.node2pending[node].extend(chunk)
            node.send_runtest_some(chunk)
            self._open.add(node)

    def _send(self, node: WorkerController, indices: Sequence[int]) -> None:
        """Send tests, and the standby behind them, so that the last of them begins without what comes next."""
        self.node2pending[node].extend(indices)
        node.send_runtest_some([*indices, self._standby])
        self._open.discard(node)


def _rest_of(job: Job, elapsed_s: float) -> Job:
    """Return what is left of a job that runs; one that is late may end at any time."""
    return Job(name=job.name, devices=job.devices, duration_s=max(0.0, job.duration_s - elapsed_s))
