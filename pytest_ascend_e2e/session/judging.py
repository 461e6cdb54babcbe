"""Existing runs judged again, without a device: by the checks that their tests asked for, or by others.

What a test asked for, with every limit and baseline, stands in its record. Only where the record has nothing of a group is the
composed configuration read. Must not know: how a run is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ..errors import RecordError
from ..launch import RunDirectory
from ..records import Asked, Check
from ..verdict import Baseline
from .asking import GROUPS, make_checks, plain_baselines
from .existing import ExistingRun, load_yaml

# The groups that baselines decide, and the arguments that are no limit.
_HELD = ("throughput", "baseline")
_COUNTS = {"window", "warmup"}


def asked_again(
    run: ExistingRun,
    *,
    changes: Mapping[str, Mapping[str, Any]],
    only: Sequence[str] = (),
    baselines: Mapping[str, Baseline] | None = None,
) -> tuple[Asked, ...]:
    """Return what is asked of a run: what its test asked for, but for these arguments by group and these baselines.

    `only` names groups to ask for, whether the test did or not. A group that gets a limit is asked for in any case, with its
    defaults but for that; so are all groups of a run that was never judged.

    Raises:
        RecordError: the composed configuration of the run is needed, and not there or not to be read.
    """
    held = baselines or {}
    asked = [one for one in run.record.asked if not only or one.group in only]
    found = {one.group for one in asked}
    limited = {group for group, arguments in changes.items() if arguments.keys() - _COUNTS}
    wanted = {*only, *limited, *(("baseline",) if held and not only else ())}
    if not run.record.asked:
        wanted |= set(only or GROUPS[:5])
    asked += [_by_default(group, run) for group in GROUPS if group in wanted - found]
    return tuple(_changed(one, changes.get(one.group, {}), held) for one in asked if not only or one.group in only)


def judge_again(run: ExistingRun, asked: Sequence[Asked]) -> tuple[Check, ...]:
    """Return the checks of a run that are asked for.

    Raises:
        RecordError: a group or its arguments are of another version.
        CheckError: a limit cannot be used.
    """
    checks: dict[str, Check] = {}
    for one in asked:
        for check in make_checks(one, run.record, run.metrics):
            # The baselines of speed and memory are held by the checks of throughput and by those of the baseline.
            if one.group != "baseline" or check.name not in checks:
                checks[check.name] = check
    return tuple(checks.values())


def not_made_again(run: ExistingRun) -> tuple[Check, ...]:
    """Return the recorded checks that no record suffices for: what the test itself asserted, and comparisons with another run."""
    return tuple(check for check in run.record.checks if check.name.partition(".")[0] not in GROUPS)


def _changed(asked: Asked, changes: Mapping[str, Any], baselines: Mapping[str, Baseline]) -> Asked:
    held = {"baselines": plain_baselines(baselines)} if baselines and asked.group in _HELD else {}
    arguments = {**asked.arguments, **changes, **held}
    if asked.group == "throughput" and (changes.keys() - _COUNTS or held):
        arguments["report_only"] = False
    return Asked(group=asked.group, arguments=arguments)


def _by_default(group: str, run: ExistingRun) -> Asked:
    """Return a group of checks as a test asks for it that gives no limit; figures without a limit are reported only."""
    arguments: dict[str, Any] = {}
    if group == "completed":
        arguments = {"steps": run.record.steps}
    elif group == "logprob":
        training = configured(run.directory)
        arguments = {"has_reference": training["has_reference"], "updates_per_step": training["updates_per_step"]}
    elif group == "health":
        arguments = {"lr": configured(run.directory)["lr"]}
    elif group == "throughput":
        arguments = {"report_only": True}
    return Asked(group=group, arguments=arguments)


def configured(directory: Path) -> dict[str, Any]:
    """Return what `config.yaml` of a run says, as far as a check depends on it.

    Raises:
        RecordError: the file is not there, or has not the keys of verl's configuration.
    """
    path = RunDirectory(directory).config
    try:
        config: Any = load_yaml(path)
        actor, data = config["actor_rollout_ref"]["actor"], config["data"]
        updates = -(-int(data["train_batch_size"]) // int(actor["ppo_mini_batch_size"])) * int(actor["ppo_epochs"])
        optim = actor["optim"]
        is_shaped = (optim.get("lr_warmup_steps") or -1) > 0 or (optim.get("lr_warmup_steps_ratio") or 0) > 0
        return {
            "has_reference": bool(actor["use_kl_loss"] or config["algorithm"]["use_kl_in_reward"]),
            "updates_per_step": updates,
            "lr": None if is_shaped else float(optim["lr"]),
        }
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecordError(
            f"{path}: cannot be read: {error}; a check that the test did not ask for goes by what the run was configured to do"
        ) from error
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RecordError(f"{path}: not a composed configuration of verl: {error!r}") from error
