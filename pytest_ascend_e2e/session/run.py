"""The finished training as a test sees it: metrics to look at, and checks that collect their failures.

A failed check does not raise: all failed checks of a test appear together at its end. Must not know: pytest.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..launch import RunDirectory
from ..metrics import Metrics
from ..recipe import PPO, SFT, Recipe, flatten
from ..records import BODY, INTERRUPTED, Asked, Check, RunRecord, Verdict
from ..verdict import Baseline, Trend, check_same
from .asking import has_limit_of_speed, make_checks, plain_baselines


class Run:
    """A training that has ended, well or not.

    `metrics` are verl's own, by verl's own keys; looking at them, or calling a check, counts as judging the run. A test that
    trains and judges nothing is red. `failed_at` is the file and line of the first call of a check that failed.
    """

    def __init__(
        self,
        *,
        recipe: Recipe | SFT,
        record: RunRecord,
        metrics: Metrics,
        directory: RunDirectory,
        baselines: Mapping[str, Baseline],
    ) -> None:
        self.recipe = recipe
        self._record = record
        self._metrics = metrics
        self._directory = directory
        self._baselines = baselines
        self._checks: list[Check] = []
        self._asked: list[Asked] = []
        self.failed_at: tuple[str, int] | None = None
        self._is_judged = False

    @property
    def metrics(self) -> Metrics:
        """The metrics of every step, e.g. `run.metrics["critic/rewards/mean"].last(5).mean()`."""
        self._is_judged = True
        return self._metrics

    @property
    def record(self) -> RunRecord:
        """What is known of the run, with the checks made so far."""
        return dataclasses.replace(self._record, checks=tuple(self._checks), asked=tuple(self._asked))

    @property
    def directory(self) -> Path:
        """The run directory: `train.log`, `metrics.jsonl`, `config.yaml`, `environment.json`, `command.sh`, `record.json`."""
        return self._directory.path

    def check_completed(self, *, first_step: int = 1) -> None:
        """Check that the process ended with exit status 0, and that exactly the steps asked for are there, every number finite.

        `first_step` is above 1 for a training that goes on from a checkpoint: one that started anew fails then.
        """
        required = list(self.recipe.required_metrics)
        self._ask("completed", steps=self.recipe.steps, first_step=first_step, required=required)

    def check_rewards(
        self,
        *,
        minimum: float | None = None,
        window: int = 5,
        trend: Trend | None = "rises",
        confidence: float = 0.99,
        max_drop: float | None = None,
    ) -> None:
        """Check the rewards: their level in the last `window` steps, and their trend over the run.

        `trend` is "rises" (the rise is no chance, with this `confidence`), "not-falling" (no significant fall), or None; `max_drop`
        is how far the last window may lie below the best one, by default as far as the noise explains.
        """
        self._ask("rewards", minimum=minimum, window=window, trend=trend, confidence=confidence, max_drop=max_drop)

    def check_logprob_consistency(
        self, *, mean_limit: float | None = None, max_limit: float | None = None, pearson_limit: float | None = None
    ) -> None:
        """Check that rollout and training agree at every step, and that actor and reference are the same at the first step.

        A limit that is not given is that of the run's number format: float32 on simulated NPUs, bfloat16 else.
        """
        self._ask(
            "logprob",
            mean_limit=mean_limit,
            max_limit=max_limit,
            pearson_limit=pearson_limit,
            has_reference=self.recipe.has_reference,
            updates_per_step=self.recipe.updates_per_step,
        )

    def check_update_health(
        self,
        *,
        window: int = 5,
        grad_norm_max: float | None = None,
        entropy_min: float | None = None,
        entropy_max: float | None = None,
        clip_fraction_max: float | None = None,
        aborted_max: float = 0.0,
        cut_max: float | None = None,
    ) -> None:
        """Check gradients, learning rate, entropy, clipping and responses: can the updates have taught the policy something?

        Limits that are not given are wide ones that hold for any run; `cut_max` limits the part of responses that
        `max_response_length` cuts, and is judged only if it is given.
        """
        self._ask(
            "health",
            window=window,
            lr=_rate_to_reach(self.recipe.lr, self.recipe, self._record.changed),
            critic_lr=_critic_rate(self.recipe, self._record.changed),
            grad_norm_max=grad_norm_max,
            entropy_min=entropy_min,
            entropy_max=entropy_max,
            clip_fraction_max=clip_fraction_max,
            aborted_max=aborted_max,
            cut_max=cut_max,
        )

    def check_throughput(
        self,
        *,
        minimum: float | None = None,
        step_time_max_s: float | None = None,
        parts_max_s: Mapping[str, float] | None = None,
        memory_max_gb: float | None = None,
        host_memory_max_gb: float | None = None,
        warmup: int = 1,
        report_only: bool = False,
    ) -> None:
        """Check tokens/s per device (`minimum`), seconds of a step and its parts, and memory: medians after warm-up.

        Without any limit, the baseline of this case on this runner decides (`baselines.yaml` beside the test file); where there is
        none the check fails, unless `report_only` says that the case has none yet.
        """
        limits = {
            "minimum": minimum,
            "step_time_max_s": step_time_max_s,
            "parts_max_s": None if parts_max_s is None else dict(parts_max_s),
            "memory_max_gb": memory_max_gb,
            "host_memory_max_gb": host_memory_max_gb,
        }
        held = {} if has_limit_of_speed(limits) or report_only else plain_baselines(self._baselines)
        self._ask("throughput", **limits, warmup=warmup, report_only=report_only, baselines=held)

    def check_baseline(self, *, warmup: int = 1) -> None:
        """Check every metric that has a baseline of this case on this runner (`baselines.yaml` beside the test file).

        Without a baseline the check fails: leave it out until there is one.
        """
        self._ask("baseline", warmup=warmup, baselines=plain_baselines(self._baselines))

    def same_as(
        self,
        other: Run,
        *metrics: str,
        max_limit: float | None = None,
        mean_limit: float | None = None,
        bitwise: bool | None = None,
        steps: Sequence[int] | None = None,
    ) -> None:
        """Check that another run has the same values of these metrics: at each step within `max_limit`, on average in `mean_limit`.

        Without a limit the values must be equal where both recipes ask for determinism (`full_determinism` in their overrides), by
        default those of every metric but times, speed and memory; `bitwise` says so, or not, whatever the recipes ask for. `steps`
        are those to compare where the runs have different ones, as a resumed run has.
        """
        self._is_judged = other._is_judged = True
        has_limit = max_limit is not None or mean_limit is not None
        is_deterministic = _is_deterministic(self.recipe) and _is_deterministic(other.recipe)
        checks = check_same(
            self._metrics,
            other._metrics,
            metrics,
            max_limit=max_limit,
            mean_limit=mean_limit,
            is_bitwise=(is_deterministic and not has_limit) if bitwise is None else bitwise,
            steps=steps,
        )
        self._add(checks)

    def judge_like(self, other: Run) -> None:
        """Make the checks that were made of another run, with the same limits; a comparison with a third run is not among them."""
        for asked in other._asked:
            self._ask(asked.group, **asked.arguments)

    def remove_checkpoints(self) -> None:
        """Remove what the run saved in its directory: gigabytes that nobody reads once its test has passed."""
        shutil.rmtree(self._directory.checkpoints, ignore_errors=True)  # most runs save none

    def replace_by(self, attempt: Run) -> None:
        """Leave the verdict to another attempt at the same training; this one keeps its record, which names the other."""
        self._record = dataclasses.replace(self._record, retried_as=attempt.record.run_id)

    def conclude(self, *, is_body_passed: bool, failure: str = "", is_interrupted: bool = False) -> RunRecord:
        """Return the final record and write it to the run directory.

        Whether the run completed is always checked, whatever the test asked for. A run that its test judged by nothing gets a
        failed check, unless the test failed on the way there; so does one whose test failed by itself, by `failure`, or was
        interrupted before its end.
        """
        if not any(asked.group == "completed" for asked in self._asked):
            is_judged = self._is_judged
            self.check_completed()
            self._is_judged = is_judged
        if not self._record.retried_as:
            if is_body_passed and not self._is_judged:
                self._checks.append(_NOT_JUDGED)
            if failure:
                self._checks.append(_of_body(failure, is_interrupted=is_interrupted))
        record = self.record
        self._directory.write_record(record.to_json())
        if is_body_passed and record.is_passed:
            self._directory.remove_device_logs()
        return record

    def _ask(self, group: str, **arguments: Any) -> None:
        self._is_judged = True
        asked = Asked(group=group, arguments=arguments)
        self._asked.append(asked)
        # check_throughput holds the baselines of speed and memory already.
        made = {check.name for check in self._checks} if group == "baseline" else set()
        self._add([check for check in make_checks(asked, self._record, self._metrics) if check.name not in made])

    def _add(self, checks: Sequence[Check]) -> None:
        self._checks += checks
        if self.failed_at is None and any(check.is_failed for check in checks):
            self.failed_at = _caller()


def _caller() -> tuple[str, int]:
    """Return the file and line that called into this module: `inspect` would read whole source files for it."""
    frame = sys._getframe(1)  # noqa: SLF001  # the interpreter has no other way
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _rate_to_reach(rate: float, recipe: Recipe | SFT, changed: Sequence[str]) -> float | None:
    """Return a learning rate of a recipe, None where its overrides or the session's changes shape the rate over the steps."""
    keys = [override.key for override in flatten(recipe.overrides, "overrides")[0]]
    return None if any(".optim." in key for key in (*keys, *changed)) else rate


def _critic_rate(recipe: Recipe | SFT, changed: Sequence[str]) -> float | None:
    if not (isinstance(recipe, Recipe) and isinstance(recipe.algorithm, PPO)):
        return None
    return _rate_to_reach(recipe.algorithm.critic_lr, recipe, changed)


def _is_deterministic(recipe: Recipe | SFT) -> bool:
    overrides, _ = flatten(recipe.overrides, "overrides")
    return any(override.key.rpartition(".")[2] == "full_determinism" and override.value is True for override in overrides)


def _of_body(failure: str, *, is_interrupted: bool) -> Check:
    how = "was interrupted before its end" if is_interrupted else "failed by itself"
    return Check(
        name=INTERRUPTED if is_interrupted else BODY,
        verdict=Verdict.FAILED,
        message=f"the test {how}: {failure}",
        origin="what a test asserts is a check too, and cannot be made again from a record",
    )


_NOT_JUDGED = Check(
    name="judged",
    verdict=Verdict.FAILED,
    message="the test trained and looked at nothing: call a check, such as run.check_rewards(), or assert on run.metrics",
    origin="a case that checks nothing is never green",
)
