"""Cases into jobs: each in exactly one, shards of like cost, and what no CI can run is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import E2EError
from pytest_ascend_e2e.runners import Catalogue, load_catalogue
from pytest_ascend_e2e.session import CiJob, Settings, SuiteCase, plan_jobs
from pytest_ascend_e2e.session.jobs import MARGIN_S

CASE = SuiteCase(
    case="test_a.py::test_one", tier="npu_nightly", runners=("a3-16",), nodes=1, model="", dataset="", rollout="vllm",
    timeout_s=7200.0, expected_s={"a3-16": 3600.0, "a3-8": 3600.0, "a2b3-8": 3600.0, "sim-2": 60.0},
)  # fmt: skip
SETTINGS = Settings(
    runner=None, runners_file=None, run_root=Path(), cache_root=Path(), models_root=Path(), datasets_root=Path(), lock_dir=Path(),
    python="python", run_timeout_s=10800.0, silence_timeout_s=1200.0, lease_timeout_s=7200.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


def cases(*hours: float) -> list[SuiteCase]:
    return [replace(CASE, case=f"test_a.py::test_{number}", expected_s={"a3-16": hour * 3600}) for number, hour in enumerate(hours)]


def jobs(given: list[SuiteCase], catalogue: Catalogue, *, most: float = 32.0, image: str | None = None) -> list[CiJob]:
    return plan_jobs(given, catalogue, most_device_hours=most, settings=SETTINGS, image=image)


def test_each_case_is_in_exactly_one_job(catalogue: Catalogue) -> None:
    given = cases(3, 1, 2, 1, 0.5, 1, 2.5)

    planned = jobs(given, catalogue)

    assert sorted(name for job in planned for name in job.cases) == sorted(case.case for case in given)
    assert [job.shard for job in planned] == list(range(1, len(planned) + 1))


def test_a_shard_has_no_more_device_hours_than_one_job_may(catalogue: Catalogue) -> None:
    planned = jobs(cases(1, 1, 1, 1), catalogue)

    assert [job.device_hours for job in planned] == [32.0, 32.0]
    assert {job.shards for job in planned} == {2}


def test_a_case_that_is_dearer_than_a_job_may_be_has_its_own(catalogue: Catalogue) -> None:
    planned = jobs(cases(4, 1, 1), catalogue)

    assert sorted(len(job.cases) for job in planned) == [1, 2]


def test_cases_of_another_runner_image_or_number_of_nodes_are_another_job(catalogue: Catalogue) -> None:
    given = [
        CASE,
        replace(CASE, case="b", rollout="sglang"),
        replace(CASE, case="c", runners=("a2b3-8",)),
        replace(CASE, case="d", nodes=2),
    ]

    planned = jobs(given, catalogue, most=1000)

    assert sorted(job.name for job in planned) == ["a2b3-8 vllm 1/1", "a3-16 sglang 1/1", "a3-16 vllm 1/1", "a3-16 vllm 1/1"]
    assert "a3-16 vllm 1/1 on 2 nodes" in [job.as_matrix()["name"] for job in planned]


def test_a_case_that_is_removed_is_in_no_job(catalogue: Catalogue) -> None:
    given = cases(1, 1, 1)

    planned = jobs(given[1:], catalogue)

    assert given[0].case not in [name for job in planned for name in job.cases]


def test_a_case_that_is_off_is_in_no_job(catalogue: Catalogue) -> None:
    assert jobs([replace(CASE, off="quarantined until 2027-01-31")], catalogue) == []


def test_an_entry_of_the_matrix_has_what_a_workflow_asks_for(catalogue: Catalogue) -> None:
    (job,) = jobs([CASE, replace(CASE, case="test_a.py::test_two[a b]")], catalogue)

    assert job.as_matrix() == {
        "name": "a3-16 vllm 1/1",
        "runner": "a3-16",
        "runs_on": "linux-aarch64-a3-16",
        "image": "quay.io/ascend/verl:latest-vllm-a3-ubuntu",
        "shm_size": "64g",
        "nodes": 1,
        "shard": "1/1",
        "timeout_minutes": 300,
        "device_hours": 32.0,
        "cases": "test_a.py::test_one\ntest_a.py::test_two[a b]",
    }


def test_an_image_that_is_given_is_used_for_all(catalogue: Catalogue) -> None:
    planned = jobs([CASE, replace(CASE, case="b", rollout="sglang")], catalogue, image="verl@sha256:0a1b")

    assert [job.image for job in planned] == ["verl@sha256:0a1b"]


def test_a_case_costs_what_is_expected_of_it_on_the_runner_of_its_job(catalogue: Catalogue) -> None:
    (job,) = jobs([replace(CASE, runners=("sim-2", "a3-16"), expected_s={"sim-2": 60.0, "a3-16": 1800.0})], catalogue)

    assert job.device_hours == 8.0


def test_a_case_without_a_time_limit_has_that_of_the_session(catalogue: Catalogue) -> None:
    (job,) = jobs([replace(CASE, timeout_s=None)], catalogue)

    assert job.timeout_s == 10800.0 + MARGIN_S


def test_a_case_with_an_estimate_alone_has_the_time_limit_that_its_session_gives_it(catalogue: Catalogue) -> None:
    case = replace(CASE, timeout_s=None, estimate_s=6 * 3600.0)

    (job,) = jobs([case], catalogue)
    (given,) = plan_jobs([case], catalogue, most_device_hours=32, settings=replace(SETTINGS, origins={"run-timeout": "pytest.ini"}))

    assert job.timeout_s == 3 * 6 * 3600.0 + MARGIN_S
    assert given.timeout_s == 10800.0 + MARGIN_S


def test_no_job_is_given_more_time_than_a_ci_has(catalogue: Catalogue) -> None:
    cases = [replace(CASE, case=f"t::{number}", timeout_s=86400.0) for number in range(9)]

    (job,) = plan_jobs(cases, catalogue, most_device_hours=1e6, settings=SETTINGS)

    assert job.timeout_s == 5 * 86400


def test_what_no_ci_can_run_is_told_together(catalogue: Catalogue) -> None:
    given = [replace(CASE, case="a", runners=("sim-2",)), replace(CASE, case="b", rollout="hf"), replace(CASE, case="c[d\n]")]

    with pytest.raises(E2EError) as error:
        jobs(given, catalogue)

    assert error.value.problems[0].startswith("a: no CI has its runner (sim-2): give it a ci_label")
    assert error.value.problems[1].startswith("b: runner a3-16 has no image for rollouts by hf (it has vllm, sglang)")
    assert error.value.problems[2].startswith("'c[d\\n]': a job is given its cases as lines")


def test_of_several_runners_the_first_that_a_ci_has_is_taken(catalogue: Catalogue) -> None:
    (job,) = jobs([replace(CASE, runners=("sim-2", "a3-8", "a3-16"))], catalogue)

    assert job.runner.name == "a3-8"
