"""A host on which xdist workers run cases, in virtual time: what a scheduler does to the makespan, without a process.

The workers behave as `xdist.remote` does: a test begins when the worker knows which comes next, or that none does. The devices
behave as the leases do: all or none, first come, first served.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from xdist.remote import Producer

SHUTDOWN = -1


@dataclass(eq=False)
class Node:
    """One worker, and what a scheduler may do with its controller."""

    name: str
    host: Host
    queue: deque[int] = field(default_factory=deque)
    held: int | None = None
    running: int | None = None
    shutting_down: bool = False
    is_dead: bool = False

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        self.queue.extend(indices)
        self.host.later(0.0, lambda: self.host.go_on(self))

    def send_steal(self, indices: Sequence[int]) -> None:
        stolen = list(indices) if set(indices) <= set(self.queue) else []
        self.queue = deque(index for index in self.queue if index not in stolen)
        self.host.later(0.0, lambda: self.host.scheduler.remove_pending_tests_from_node(self, stolen))

    def shutdown(self) -> None:
        self.shutting_down = True
        self.queue.append(SHUTDOWN)
        self.host.later(0.0, lambda: self.host.go_on(self))


@dataclass
class Test:
    """A test of the session: seconds, and devices, none for an ordinary one."""

    __test__ = False
    name: str
    seconds: float
    devices: int = 0


class Host:
    """Runs tests on workers in virtual time; `started` and `ended` hold the moments, `now` is the clock."""

    def __init__(self, tests: Sequence[Test], *, devices: int, workers: int, maxschedchunk: int | None = None) -> None:
        self.tests = tests
        self.idle = devices
        self.now = 0.0
        self.started: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.ran_on: dict[str, str] = {}
        self.after: dict[str, str | None] = {}
        self.nodes = [Node(f"gw{number}", self) for number in range(workers)]
        self.scheduler: Any = None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._tickets: deque[tuple[Node, Test]] = deque()
        values: Mapping[str, object] = {"tx": ["popen"] * workers, "maxschedchunk": maxschedchunk}
        self.config: Any = SimpleNamespace(getvalue=values.__getitem__, getoption=values.__getitem__, hook=None)
        self.log = Producer("fake", enabled=False)

    def run(self, scheduler: Any) -> float:
        """Run all tests under a scheduler of xdist and return the moment at which the last one with devices has ended."""
        self.scheduler = scheduler
        for node in self.nodes:
            scheduler.add_node(node)
        for node in self.nodes:
            scheduler.add_node_collection(node, [test.name for test in self.tests])
        scheduler.schedule()
        self.settle()
        return max((self.ended[test.name] for test in self.tests if test.devices and test.name in self.ended), default=0.0)

    def settle(self) -> None:
        """Let time pass until nothing happens any more."""
        while self._events:
            self.now, _, happens = heapq.heappop(self._events)
            happens()
            if self.scheduler.tests_finished:
                for node in self.nodes:
                    if not node.shutting_down:
                        node.shutdown()

    def later(self, seconds: float, happens: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, happens))

    def go_on(self, node: Node) -> None:
        """Let a worker begin a test, if it is free and knows what comes next."""
        if node.running is not None or node.is_dead:
            return
        if node.held is None and node.queue:
            node.held = node.queue.popleft()
        if node.held is None or node.held == SHUTDOWN or not node.queue:
            return
        node.running, node.held = node.held, node.queue.popleft()
        if node.running >= len(self.tests):
            self.later(0.0, lambda: self._complete(node))
            return
        test = self.tests[node.running]
        self.ran_on[test.name] = node.name
        self.after[test.name] = None if not 0 <= node.held < len(self.tests) else self.tests[node.held].name
        self._tickets.append((node, test))
        self._serve()

    def kill(self, node: Node) -> str | None:
        """Let a worker die with the test that it runs, and a new one take its place."""
        node.is_dead = node.shutting_down = True
        if node.running is not None:
            self.idle += self.tests[node.running].devices
        self.nodes.remove(node)
        crashed: str | None = self.scheduler.remove_node(node)
        clone = Node(f"{node.name}-again", self)
        self.nodes.append(clone)
        self.scheduler.add_node(clone)
        self.scheduler.add_node_collection(clone, [test.name for test in self.tests])
        self.scheduler.schedule()
        return crashed

    def _serve(self) -> None:
        while self._tickets and self._tickets[0][1].devices <= self.idle:
            node, test = self._tickets.popleft()
            self.idle -= test.devices
            self.started[test.name] = self.now
            self.later(test.seconds, lambda node=node, test=test: self._end(node, test))  # type: ignore[misc]  # mypy cannot type a lambda's default

    def _end(self, node: Node, test: Test) -> None:
        if node.is_dead:
            return
        self.idle += test.devices
        self.ended[test.name] = self.now
        self._complete(node)
        self._serve()

    def _complete(self, node: Node) -> None:
        index, node.running = node.running, None
        self.scheduler.mark_test_complete(node, index, 0.0)
        self.later(0.0, lambda: self.go_on(node))
