"""Which of the waiting cases start now, so that all of them are done as early as possible.

Pure arithmetic of values; must not know: workers, pytest, leases. A case takes some devices for some time, and a host of 16 with
cases of 1 to 16 devices is a packing problem: no single order is good for every suite. So a few orders are tried on paper, each by
list scheduling (Graham, 1969: whatever fits starts, in the order of the list), and the one that ends first is followed until
something ends, when it is asked again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# A case counts as long as duration x devices ** exponent: from the longest first (0) to the largest first, whatever it lasts (4).
_EXPONENTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A case as the schedule sees it: how many devices it takes, and for how many seconds it is expected to."""

    name: str
    devices: int
    duration_s: float

    @property
    def device_seconds(self) -> float:
        """What it costs the host."""
        return self.devices * self.duration_s


@dataclass(frozen=True, slots=True)
class _Outcome:
    end_s: float
    first: tuple[Job, ...]


def starts(waiting: Sequence[Job], running: Iterable[Job], *, devices: int, workers: int) -> tuple[Job, ...]:
    """Return the cases of `waiting` that start now, in the order in which they do.

    `running` are the cases that hold devices, with the seconds that they still need; `devices` is what the host has, `workers` how
    many cases it can run at once, both counted with those that run. A case that asks for more than the host has is taken for one
    that asks for all of it: it is not held back, and fails by its own words.
    """
    running = tuple(running)
    outcomes = (_follow(_by_size(waiting, exponent), running, devices=devices, workers=workers) for exponent in _EXPONENTS)
    return min(outcomes, key=lambda outcome: outcome.end_s).first


def lower_bound_s(jobs: Sequence[Job], *, devices: int, workers: int) -> float:
    """Return a time that no schedule can beat: the work over the devices, over the workers, the longest, and those side by side.

    Of the cases that take more than half of the devices no two run at once, and of those that take exactly half, two do.
    """
    halves = sum(job.duration_s * (1 if 2 * job.devices > devices else 0.5) for job in jobs if 2 * job.devices >= devices)
    work = sum(job.device_seconds for job in jobs)
    longest = max((job.duration_s for job in jobs), default=0.0)
    return max(work / devices, sum(job.duration_s for job in jobs) / workers, longest, halves)


def _by_size(jobs: Iterable[Job], exponent: float) -> list[Job]:
    return sorted(jobs, key=lambda job: -job.duration_s * job.devices**exponent)


def _follow(order: Sequence[Job], running: Sequence[Job], *, devices: int, workers: int) -> _Outcome:
    """Return what comes of starting, at each end of a case, whatever fits in this order."""
    ends = [(job.duration_s, min(job.devices, devices)) for job in running]
    heapq.heapify(ends)
    idle, idle_workers = devices - sum(taken for _, taken in ends), workers - len(ends)
    waiting = list(order)
    first: tuple[Job, ...] | None = None
    now_s = last_s = 0.0
    while True:
        started: list[Job] = []
        rest: list[Job] = []
        for job in waiting:
            taken = min(job.devices, devices)
            if idle_workers > 0 and taken <= idle:
                idle -= taken
                idle_workers -= 1
                started.append(job)
                heapq.heappush(ends, (now_s + job.duration_s, taken))
            else:
                rest.append(job)
        waiting = rest
        first = tuple(started) if first is None else first
        if not ends:
            return _Outcome(last_s, first)
        now_s, taken = heapq.heappop(ends)
        last_s = now_s
        idle += taken
        idle_workers += 1
