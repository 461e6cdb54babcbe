"""Our scheduler against xdist's own on a host in virtual time: makespan, ordinary tests, workers that die."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import pytest
from xdist.scheduler import LoadScheduling, WorkStealingScheduling

from pytest_ascend_e2e.plugin.xdist_scheduler import CaseScheduling
from pytest_ascend_e2e.session import Job, lower_bound_s
from tests.fakes.xdist_host import Host, Test

DEVICES, WORKERS = 16, 8


def suite(seed: int, *, cases: int = 40) -> list[Test]:
    dice = random.Random(seed)  # noqa: S311  # a test's dice
    return [Test(f"case_{number}", dice.randint(1, 60), dice.choice((1, 2, 4, 8, 16))) for number in range(cases)]


def jobs_of(tests: list[Test], *, error: float = 0.0) -> Mapping[str, Job]:
    dice = random.Random(1)  # noqa: S311  # a test's dice
    return {
        test.name: Job(name=test.name, devices=test.devices, duration_s=test.seconds * dice.uniform(1 - error, 1 + error))
        for test in tests
        if test.devices
    }


def ours(host: Host, tests: list[Test], *, error: float = 0.0) -> CaseScheduling:
    jobs = jobs_of(tests, error=error)
    return CaseScheduling(host.config, host.log, read_jobs=lambda: jobs, devices=DEVICES, clock=lambda: host.now)


def host_of(tests: list[Test], *, workers: int = WORKERS) -> Host:
    return Host(tests, devices=DEVICES, workers=workers)


def names(tests: list[Test]) -> set[str]:
    return {test.name for test in tests}


@pytest.mark.parametrize("seed", range(10))
def test_the_makespan_is_within_a_tenth_of_the_bound_and_shorter_than_that_of_xdists_own(seed: int) -> None:
    tests = suite(seed)
    bound_s = lower_bound_s(list(jobs_of(tests).values()), devices=DEVICES, workers=WORKERS)

    host, load, steal = host_of(tests), host_of(tests), host_of(tests)
    took_s = host.run(ours(host, tests, error=0.2))

    assert host.ended.keys() == names(tests)
    assert bound_s <= took_s <= 1.1 * bound_s
    assert took_s < load.run(LoadScheduling(load.config, load.log))
    assert took_s < steal.run(WorkStealingScheduling(steal.config, steal.log))


def test_no_case_waits_for_devices_on_a_worker_while_all_devices_are_our_own() -> None:
    tests = suite(3)
    host = host_of(tests, workers=4)
    waited: list[int] = []
    serve = host._serve

    def serve_and_look() -> None:
        serve()
        waited.append(len(host._tickets))

    host._serve = serve_and_look  # type: ignore[method-assign]  # to look in between

    host.run(ours(host, tests))

    assert set(waited) == {0}


def test_ordinary_tests_run_beside_the_cases_and_neighbours_mostly_on_one_worker() -> None:
    ordinary = [Test(f"plain_{number}", 0.01) for number in range(100)]
    tests = [*ordinary[:50], *suite(1, cases=10), *ordinary[50:]]
    host = host_of(tests)

    host.run(ours(host, tests))

    assert host.ended.keys() == names(tests)
    changes = sum(host.after[one.name] != other.name for one, other in itertools.pairwise(ordinary))
    assert changes <= 40
    assert max(host.ended[test.name] for test in ordinary) < max(host.ended.values())


def test_a_case_does_not_wait_for_more_than_a_few_ordinary_tests() -> None:
    tests = [*(Test(f"plain_{number}", 1.0) for number in range(400)), Test("first", 100.0, 16), Test("second", 10.0, 16)]
    host = host_of(tests, workers=2)

    host.run(ours(host, tests))

    assert host.started["first"] == 0.0
    assert host.started["second"] - host.ended["first"] <= 4.0


def test_one_worker_is_enough() -> None:
    tests = [Test("plain", 0.1), *suite(2, cases=5), Test("last", 0.1)]
    host = host_of(tests, workers=1)

    host.run(ours(host, tests))

    assert host.ended.keys() == names(tests)


def test_a_case_that_asks_for_more_devices_than_there_are_is_not_held_back() -> None:
    tests = [Test("too large", 1.0, 16), *suite(2, cases=5)]
    host = host_of(tests)
    jobs = {**jobs_of(tests), "too large": Job(name="too large", devices=64, duration_s=1.0)}

    host.run(CaseScheduling(host.config, host.log, read_jobs=lambda: jobs, devices=DEVICES, clock=lambda: host.now))

    assert host.ended.keys() == names(tests)


def test_the_test_of_a_worker_that_dies_is_named_and_all_others_run() -> None:
    tests = [*suite(4, cases=12), *(Test(f"plain_{number}", 0.5) for number in range(30))]
    host = host_of(tests, workers=3)
    crashed: list[str | None] = []
    host.later(20.0, lambda: crashed.append(host.kill(host.nodes[0])))
    host.later(21.0, lambda: crashed.append(host.kill(host.nodes[0])))

    host.run(ours(host, tests))

    assert len([name for name in crashed if name]) == 2
    assert host.ended.keys() == names(tests) - set(crashed)
    assert host.idle == DEVICES


def test_a_session_without_cases_is_left_to_xdists_load() -> None:
    tests = [Test(f"plain_{number}", 1.0) for number in range(50)]
    host, plain = host_of(tests), host_of(tests)

    host.run(ours(host, tests))
    plain.run(LoadScheduling(plain.config, plain.log))

    assert host.ran_on == plain.ran_on
    assert host.ended == plain.ended
