"""The finished training as a test sees it: metrics to look at, and checks that collect their failures.

A failed check does not raise: all failed checks of a test appear together at its end. Must not know: pytest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..launch import RunDirectory
from ..metrics import Metrics
from ..recipe import SFT, Recipe
from ..records import Check, RunRecord, Verdict
from ..verdict import Baseline, LogprobLimits, Trend, check_completed, check_logprob_consistency, check_rewards, check_throughput


class Run:
    """A training that has ended, well or not.

    `metrics` are verl's own, by verl's own keys; looking at them, or calling a check, counts as judging the run. A test that
    trains and judges nothing is red.
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

    def check_completed(self, *, first_step: int = 1) -> None:
        """Check that the process ended with exit status 0, and that exactly the steps asked for are there, every number finite.

        `first_step` is above 1 for a training that goes on from a checkpoint: one that started anew fails then.
        """
        self._is_judged = self._is_completion_checked = True
        self._checks += [
            self._process_check(),
            *check_completed(self._metrics, steps=self.recipe.steps, first_step=first_step, required=self.recipe.required_metrics),
        ]

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

    def check_throughput(
        self,
        *,
        minimum: float | None = None,
        step_time_max_s: float | None = None,
        memory_max_gb: float | None = None,
        warmup: int = 1,
        report_only: bool = False,
    ) -> None:
        """Check tokens/s per device (`minimum`), seconds of a step, and peak memory of a training process: medians after warm-up.

        Without any limit, the baseline of this case on this runner decides (`baselines.yaml` beside the test file); where there is
        none the check fails, unless `report_only` says that the case has none yet.
        """
        self._is_judged = True
        has_limit = (minimum, step_time_max_s, memory_max_gb) != (None, None, None)
        self._checks += check_throughput(
            self._metrics,
            devices=self._record.devices,
            minimum=minimum,
            step_time_max_s=step_time_max_s,
            memory_max_gb=memory_max_gb,
            baselines=None if has_limit or report_only else self._baselines or None,
            warmup=warmup,
            report_only=report_only,
            versions=self._record.versions,
        )

    def conclude(self, *, is_body_passed: bool) -> RunRecord:
        """Return the final record and write it to the run directory.

        Whether the run completed is always checked, whatever the test asked for. A run that its test judged by nothing gets a
        failed check, unless the test failed on the way there.
        """
        if not self._is_completion_checked:
            is_judged = self._is_judged
            self.check_completed()
            self._is_judged = is_judged
        if is_body_passed and not self._is_judged:
            self._checks.append(_NOT_JUDGED)
        record = self.record
        self._directory.write_record(record.to_json())
        return record

    def _process_check(self) -> Check:
        record = self._record
        how = record.end_reason if not record.is_completed else "exit status 0"
        return Check(
            name="completed.process",
            verdict=Verdict.PASSED if record.is_completed else Verdict.FAILED,
            message=f"the training process ended: {how}",
            origin="a training that does not end by itself with exit status 0 is never green",
        )


_NOT_JUDGED = Check(
    name="judged",
    verdict=Verdict.FAILED,
    message="the test trained and looked at nothing: call a check, such as run.check_rewards(), or assert on run.metrics",
    origin="a case that checks nothing is never green",
)
