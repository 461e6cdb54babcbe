"""The finished training as a test sees it: metrics to look at, and checks that collect their failures.

A failed check does not raise: all failed checks of a test appear together at its end. Must not know: pytest.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec

from ..launch import RunDirectory
from ..metrics import Metrics
from ..recipe import SFT, Recipe, flatten
from ..records import Check, RunRecord, Verdict
from ..verdict import (
    Baseline,
    LogprobLimits,
    Trend,
    check_baseline,
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_same,
    check_throughput,
    check_update_health,
)

_P = ParamSpec("_P")


def _remembered(method: Callable[Concatenate[Run, _P], None]) -> Callable[Concatenate[Run, _P], None]:
    """Let a check of a run be made again on another one, with the same limits."""

    @functools.wraps(method)
    def remembering(self: Run, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        self.asked.append(lambda run: method(run, *args, **kwargs))
        made = len(self._checks)
        method(self, *args, **kwargs)
        if self.failed_at is None and any(check.is_failed for check in self._checks[made:]):
            caller = sys._getframe(1)  # noqa: SLF001  # the line of the test that asked; `inspect` reads whole source files for it
            self.failed_at = (caller.f_code.co_filename, caller.f_lineno)

    return remembering


class Run:
    """A training that has ended, well or not.

    `metrics` are verl's own, by verl's own keys; looking at them, or calling a check, counts as judging the run. A test that
    trains and judges nothing is red. `asked` holds the checks that were made, each to be made of another run; `failed_at` is the
    file and line of the first call of one that failed.
    """

    def __init__(
        self,
        *,
        recipe: Recipe | SFT,
        record: RunRecord,
        metrics: Metrics,
        directory: RunDirectory,
        baselines: Mapping[str, Baseline],
        dtype: str,
    ) -> None:
        self.recipe = recipe
        self._record = record
        self._metrics = metrics
        self._directory = directory
        self._baselines = baselines
        self._dtype = dtype
        self._checks: list[Check] = []
        self.asked: list[Callable[[Run], None]] = []
        self.failed_at: tuple[str, int] | None = None
        self._is_judged = False
        self._is_completion_checked = False

    @property
    def metrics(self) -> Metrics:
        """The metrics of every step, e.g. `run.metrics["critic/rewards/mean"].last(5).mean()`."""
        self._is_judged = True
        return self._metrics

    @property
    def record(self) -> RunRecord:
        """What is known of the run, with the checks made so far."""
        return self._record.with_checks(self._checks)

    @property
    def directory(self) -> Path:
        """The run directory: `train.log`, `metrics.jsonl`, `config.yaml`, `environment.json`, `command.sh`, `record.json`."""
        return self._directory.path

    @_remembered
    def check_completed(self, *, first_step: int = 1) -> None:
        """Check that the process ended with exit status 0, and that exactly the steps asked for are there, every number finite.

        `first_step` is above 1 for a training that goes on from a checkpoint: one that started anew fails then.
        """
        self._is_judged = self._is_completion_checked = True
        self._checks += [
            process_check(self._record),
            *check_completed(self._metrics, steps=self.recipe.steps, first_step=first_step, required=self.recipe.required_metrics),
        ]

    @_remembered
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
        self._is_judged = True
        self._checks += check_rewards(
            self._metrics, minimum=minimum, window=window, trend=trend, confidence=confidence, max_drop=max_drop
        )

    @_remembered
    def check_logprob_consistency(
        self, *, mean_limit: float | None = None, max_limit: float | None = None, pearson_limit: float | None = None
    ) -> None:
        """Check that rollout and training agree at every step, and that actor and reference are the same at the first step.

        A limit that is not given is that of the run's number format: float32 on simulated NPUs, bfloat16 else.
        """
        self._is_judged = True
        self._checks += check_logprob_consistency(
            self._metrics,
            limits=LogprobLimits.for_dtype(self._dtype),
            mean_limit=mean_limit,
            max_limit=max_limit,
            pearson_limit=pearson_limit,
            has_reference=self.recipe.has_reference,
            updates_per_step=self.recipe.updates_per_step,
        )

    @_remembered
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
        self._is_judged = True
        self._checks += check_update_health(
            self._metrics,
            window=window,
            lr=_rate_to_reach(self.recipe, self._record.changed),
            grad_norm_max=grad_norm_max,
            entropy_min=entropy_min,
            entropy_max=entropy_max,
            clip_fraction_max=clip_fraction_max,
            aborted_max=aborted_max,
            cut_max=cut_max,
        )

    @_remembered
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
        self._is_judged = True
        given = (minimum, step_time_max_s, parts_max_s, memory_max_gb, host_memory_max_gb)
        has_limit = any(limit is not None for limit in given)
        self._checks += check_throughput(
            self._metrics,
            devices=self._record.devices,
            minimum=minimum,
            step_time_max_s=step_time_max_s,
            parts_max_s=parts_max_s,
            memory_max_gb=memory_max_gb,
            host_memory_max_gb=host_memory_max_gb,
            baselines=None if has_limit or report_only else self._baselines or None,
            warmup=warmup,
            report_only=report_only,
            device=self._record.device,
            versions=self._record.versions,
        )

    @_remembered
    def check_baseline(self, *, warmup: int = 1) -> None:
        """Check every metric that has a baseline of this case on this runner (`baselines.yaml` beside the test file).

        Without a baseline the check fails: leave it out until there is one.
        """
        self._is_judged = True
        made = {check.name for check in self._checks}
        checks = check_baseline(
            self._metrics, self._baselines, warmup=warmup, device=self._record.device, versions=self._record.versions
        )
        # check_throughput holds the baselines of speed and memory already.
        self._checks += [check for check in checks if check.name not in made]

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
        self._checks += check_same(
            self._metrics,
            other._metrics,
            metrics,
            max_limit=max_limit,
            mean_limit=mean_limit,
            is_bitwise=(is_deterministic and not has_limit) if bitwise is None else bitwise,
            steps=steps,
        )

    def judge_like(self, other: Run) -> None:
        """Make the checks that were made of another run, with the same limits; a comparison with a third run is not among them."""
        for check in tuple(other.asked):
            check(self)

    def remove_checkpoints(self) -> None:
        """Remove what the run saved in its directory: gigabytes that nobody reads once its test has passed."""
        shutil.rmtree(self._directory.checkpoints, ignore_errors=True)  # most runs save none

    def replace_by(self, attempt: Run) -> None:
        """Leave the verdict to another attempt at the same training; this one keeps its record, which names the other."""
        self._record = dataclasses.replace(self._record, retried_as=attempt.record.run_id)

    def conclude(self, *, is_body_passed: bool) -> RunRecord:
        """Return the final record and write it to the run directory.

        Whether the run completed is always checked, whatever the test asked for. A run that its test judged by nothing gets a
        failed check, unless the test failed on the way there.
        """
        if not self._is_completion_checked:
            is_judged = self._is_judged
            self.check_completed()
            self._is_judged = is_judged
        if is_body_passed and not self._is_judged and not self._record.retried_as:
            self._checks.append(_NOT_JUDGED)
        record = self.record
        self._directory.write_record(record.to_json())
        if is_body_passed and record.is_passed:
            self._directory.remove_device_logs()
        return record


def process_check(record: RunRecord) -> Check:
    """Return the check that the training process ended by itself with exit status 0."""
    how = record.end_reason if not record.is_completed else "exit status 0"
    return Check(
        name="completed.process",
        verdict=Verdict.PASSED if record.is_completed else Verdict.FAILED,
        message=f"the training process ended: {how}",
        origin="a training that does not end by itself with exit status 0 is never green",
    )


def _rate_to_reach(recipe: Recipe | SFT, changed: Sequence[str]) -> float | None:
    """Return the learning rate of a recipe, None where its overrides or the session's changes shape the rate over the steps."""
    keys = [override.key for override in flatten(recipe.overrides, "overrides")[0]]
    return None if any(".optim." in key for key in (*keys, *changed)) else recipe.lr


def _is_deterministic(recipe: Recipe | SFT) -> bool:
    overrides, _ = flatten(recipe.overrides, "overrides")
    return any(override.key.rpartition(".")[2] == "full_determinism" and override.value is True for override in overrides)


_NOT_JUDGED = Check(
    name="judged",
    verdict=Verdict.FAILED,
    message="the test trained and looked at nothing: call a check, such as run.check_rewards(), or assert on run.metrics",
    origin="a case that checks nothing is never green",
)
