"""The reviewed differences between verl's own Ascend jobs and ours: whether one of them says why a key differs.

They stand, each with its reason, in tests/data/upstream_differences.yaml.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.upstream import differences

ABSENT = "absent"
Config = Mapping[str, Any]
# A condition on a case: of their configuration and ours, both flat.
CONDITIONS: Mapping[str, Callable[[Config, Config], bool]] = {
    "ours never validates": lambda _, ours: ours["trainer.test_freq"] == -1 and not ours.get("trainer.val_before_train"),
    "ours never saves": lambda _, ours: ours["trainer.save_freq"] == -1,
    "no reference": lambda theirs, _: (
        not theirs.get("actor_rollout_ref.actor.use_kl_loss") and not theirs.get("algorithm.use_kl_in_reward")
    ),
    "no critic": lambda theirs, _: theirs.get("algorithm.adv_estimator") != "gae",
    "batches by tokens": lambda theirs, _: theirs.get("actor_rollout_ref.actor.use_dynamic_bsz") is True,
    "batches by number": lambda theirs, _: theirs.get("actor_rollout_ref.actor.use_dynamic_bsz") is False,
    # What ours gives the engine is what theirs gives the deprecated field.
    "deprecated field": lambda theirs, ours: (
        theirs.get("actor_rollout_ref.actor.ulysses_sequence_parallel_size")
        == ours.get("actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size")
    ),
    "torchrun": lambda theirs, ours: "engine.strategy" in theirs or "engine.use_mbridge" in ours,
    "offload policy": lambda _, ours: ours.get("actor_rollout_ref.actor.fsdp_config.offload_policy") is True,
    "nothing is profiled": lambda theirs, _: not _is_profiled(theirs),
    "profiled": lambda theirs, _: _is_profiled(theirs),
    "no adapters": lambda theirs, _: (
        not theirs.get("actor_rollout_ref.model.lora_rank") and not theirs.get("actor_rollout_ref.model.lora.rank")
    ),
    "no converted weights": lambda theirs, _: not theirs.get("actor_rollout_ref.actor.megatron.use_dist_checkpointing"),
    "no filter of groups": lambda theirs, ours: (
        not theirs.get("algorithm.filter_groups.enable") and not ours.get("algorithm.filter_groups.enable")
    ),
    "no reward of its own": lambda theirs, _: theirs.get("reward.custom_reward_function.path") is None,
}


def _is_profiled(config: Config) -> bool:
    enabled = any(value is True for key, value in config.items() if key.endswith(".profiler.enable"))
    return enabled and bool(config.get("global_profiler.steps"))


def short(test: str) -> str:
    return test.partition("::")[2]


def explained(
    section: str, test: str, key: str, ours: object, *, configs: tuple[Config, Config] | None = None
) -> list[tuple[int, str]]:
    """Return the entries, by number and pattern, that say of a case why this key differs."""
    found = []
    for number, entry in enumerate(differences()[section]):
        if "cases" in entry and short(test) not in entry["cases"]:
            continue
        if "ours" in entry and entry["ours"] != ours:
            continue
        if "when" in entry and configs is not None and not CONDITIONS[entry["when"]](*configs):
            continue
        found += [(number, pattern) for pattern in entry["keys"] if fnmatch.fnmatchcase(key, pattern)]
    return found
