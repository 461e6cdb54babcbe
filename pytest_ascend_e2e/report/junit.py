"""The properties of a case for JUnit XML: flat pairs of a name and a text, a number or a truth value.

Must not know: how they get into the XML file; only such pairs may cross from an xdist worker.
"""

from __future__ import annotations

from ..records import RunRecord, Verdict

PREFIX = "e2e_"
# The message of the error that stands for a test whose end nobody saw.
UNFINISHED = "unfinished"
# What such an error stands for while nobody knows the tests yet; no module has a hyphen in its name.
COLLECTION = "pytest-collection"

Property = tuple[str, str | int | float]

# Name of the property, key of `RunRecord.summary`. A figure that the run did not print is "absent", never left out.
FIGURES = (
    ("reward_first", "reward_first"),
    ("reward_last", "reward_last"),
    ("reward_mean", "reward_mean"),
    ("rollout_probs_diff_mean", "rollout_probs_diff_mean"),
    ("rollout_probs_diff_max", "rollout_probs_diff_max"),
    ("rollout_pearson", "rollout_pearson"),
    ("tokens_per_s_per_device", "tokens_per_s_per_device"),
    ("step_time_s", "step_time_s"),
    ("peak_memory_gb", "peak_memory_gb"),
)


def properties(record: RunRecord, *, run_number: int = 1) -> list[Property]:
    """Return the properties of one run; the second and later runs of a test carry their number in the name."""
    prefix = PREFIX if run_number == 1 else f"{PREFIX}run{run_number}_"
    pairs: list[Property] = [
        ("runner", record.runner),
        ("device", record.device or "unknown"),
        ("devices", record.devices),
        ("nodes", record.nodes),
        ("model", record.model),
        ("dataset", record.dataset),
        ("algorithm", record.algorithm),
        ("engine", record.engine),
        ("rollout", record.rollout),
        ("layout", record.layout),
        ("changed", "; ".join(record.changed) or "nothing"),
        ("commit", record.commit or "unknown"),
        ("steps", record.steps),
        ("last_step", "none" if record.last_step is None else record.last_step),
        ("ending", record.end_reason),
        ("duration_s", round(record.duration_s, 1)),
    ]
    pairs += [(name, record.summary.get(key, "absent")) for name, key in FIGURES]
    pairs += [(f"version_{name}", version) for name, version in sorted(record.versions.items())]
    pairs.append(("image", record.image or "none"))
    if record.diagnosis is not None:
        pairs += [("failure_kind", record.diagnosis.kind.value), ("failure_infra", str(record.diagnosis.infra).lower())]
    pairs += [
        ("checks_passed", sum(check.verdict is Verdict.PASSED for check in record.checks)),
        ("checks_failed", len(record.failed_checks)),
        ("run_dir", record.run_dir),
        ("repeat", record.rerun_command),
    ]
    return [(prefix + name, value) for name, value in pairs]
