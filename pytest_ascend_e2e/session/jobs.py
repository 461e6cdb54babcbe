"""The jobs of a CI that run a list of cases: cases of one kind of machine and one image together, in shards of like cost.

Must not know: what a workflow looks like.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import E2EError, RunnerError
from ..runners import Catalogue, Runner
from .deadlines import run_limit
from .settings import Settings
from .suite_case import SuiteCase

# What installing, preparing data and waiting for devices may take in a job beyond the time limits of its cases.
MARGIN_S = 3600.0
_SIMULATED = "it runs on simulated NPUs, and no machine of the CI is one (a runner of your own with a ci_label may be)"
# GitHub ends a job of a runner of one's own after five days.
LONGEST_S = 5 * 24 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CiJob:
    """One job: where and in what it runs, which cases, and the time after which it is ended.

    `shard` counts from 1. `device_hours` are those that the cases are expected to take together.
    """

    runner: Runner
    image: str
    nodes: int
    cases: tuple[str, ...]
    timeout_s: float
    device_hours: float
    shard: int
    shards: int

    @property
    def name(self) -> str:
        """Return what people call it: `a3-16 vllm 1/2`, by the runner and the flavour of its image."""
        return f"{self.runner.name} {self.flavour} {self.shard}/{self.shards}"

    @property
    def flavour(self) -> str:
        """Return the rollout engine that the image of the runner is for, or the image's own name where the user gave one."""
        return next((name for name, image in self.runner.images.items() if image == self.image), self.image.rpartition("/")[2])

    def as_matrix(self) -> dict[str, object]:
        """Return it as an entry of a workflow's matrix; the cases are lines of one text, so that no shell splits a name."""
        return {
            "name": self.name if self.nodes == 1 else f"{self.name} on {self.nodes} nodes",
            "runner": self.runner.name,
            "runs_on": self.runner.ci_label,
            "image": self.image,
            "shm_size": f"{self.runner.shm_gb:g}g",
            "nodes": self.nodes,
            "shard": f"{self.shard}/{self.shards}",
            "timeout_minutes": math.ceil(self.timeout_s / 60),
            "device_hours": round(self.device_hours, 2),
            "cases": "\n".join(self.cases),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cost:
    case: SuiteCase
    timeout_s: float
    device_hours: float


def plan_jobs(
    cases: Sequence[SuiteCase],
    catalogue: Catalogue,
    *,
    most_device_hours: float,
    settings: Settings,
    image: str | None = None,
) -> list[CiJob]:
    """Return the jobs that run these cases, each case in exactly one; a case that is off is in none.

    A job gets as many cases as are expected to take `most_device_hours` together, and at least one. The time limits of cases are
    those that a session with these settings has. `image` is used instead of those of the catalogue.

    Raises:
        E2EError: a case can run on no machine of the CI, there is no image for it, or its name is several lines; all such
            cases together.
    """
    groups: dict[tuple[str, str, int], list[_Cost]] = {}
    problems: list[str] = []
    for case in cases:
        if case.off:
            continue
        if "\n" in case.case:
            problems.append(
                f"{case.case!r}: a job is given its cases as lines, and this is no line; give its parameters an id without"
            )
            continue
        try:
            runner = _runner_of(case, catalogue)
            chosen = image or _image_of(case, runner)
        except RunnerError as error:
            problems += error.problems
            continue
        timeout_s = run_limit(case, settings)[0]
        hours = case.expected_s[runner.name] / 3600
        cost = _Cost(case=case, timeout_s=timeout_s, device_hours=hours * runner.devices * case.nodes)
        groups.setdefault((runner.name, chosen, case.nodes), []).append(cost)
    if problems:
        raise E2EError(*problems)
    jobs = []
    for (name, chosen, nodes), costs in sorted(groups.items()):
        shards = _shards(costs, most_device_hours)
        jobs += [_job(catalogue.get(name), chosen, nodes, shard, number, len(shards)) for number, shard in enumerate(shards, 1)]
    return jobs


def without_simulated(cases: Sequence[SuiteCase], catalogue: Catalogue) -> list[SuiteCase]:
    """Return the cases, those off that have simulated runners alone, which are no machines of a CI."""
    return [case if case.off or not _is_simulated(case, catalogue) else replace(case, off=_SIMULATED) for case in cases]


def _is_simulated(case: SuiteCase, catalogue: Catalogue) -> bool:
    runners = [catalogue.get(name) for name in case.runners]
    return all(runner.simulated and not runner.ci_label for runner in runners)


def _runner_of(case: SuiteCase, catalogue: Catalogue) -> Runner:
    runners = [catalogue.get(name) for name in case.runners]
    for runner in runners:
        if runner.ci_label:
            return runner
    raise RunnerError(
        f"{case.case}: no CI has its runner ({' or '.join(case.runners)}): give it a ci_label and images in a file of your own "
        "(--runners-file), or leave the case out by the paths of other files"
    )


def _image_of(case: SuiteCase, runner: Runner) -> str:
    try:
        return runner.images[case.rollout]
    except KeyError:
        known: Mapping[str, str] = runner.images
        raise RunnerError(
            f"{case.case}: runner {runner.name} has no image for rollouts by {case.rollout} (it has {', '.join(known) or 'none'}); "
            f"add images: {{{case.rollout}: IMAGE}} to it in --runners-file, or give --image"
        ) from None


def _shards(costs: Sequence[_Cost], most_device_hours: float) -> list[list[_Cost]]:
    """Return the cases in as few shards as hold them: the dearest first, each into the shard that has least."""
    dearest_first = sorted(costs, key=lambda cost: (-cost.device_hours, cost.case.case))
    total = sum(cost.device_hours for cost in costs)
    limit = max(most_device_hours, dearest_first[0].device_hours)
    count = max(1, math.ceil(total / limit))
    while True:
        shards: list[list[_Cost]] = [[] for _ in range(count)]
        for cost in dearest_first:
            min(shards, key=_hours).append(cost)
        if max(map(_hours, shards)) <= limit * (1 + 1e-9):
            return shards
        count += 1


def _hours(shard: Sequence[_Cost]) -> float:
    return sum(cost.device_hours for cost in shard)


def _job(runner: Runner, image: str, nodes: int, shard: Sequence[_Cost], number: int, shards: int) -> CiJob:
    return CiJob(
        runner=runner,
        image=image,
        nodes=nodes,
        cases=tuple(sorted(cost.case.case for cost in shard)),
        timeout_s=min(sum(cost.timeout_s for cost in shard) + MARGIN_S, LONGEST_S),
        device_hours=_hours(shard),
        shard=number,
        shards=shards,
    )
