"""A recipe becomes overrides: what is written, what is refused, and what follows the actor."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.errors import RecipeError
from pytest_ascend_e2e.recipe import DAPO, FSDP2, GRPO, GSPO, PPO, Inputs, Megatron, Recipe, Sglang, Vllm, to_overrides

INPUTS = Inputs(model_path="/models/Qwen3-8B", train_files="/data/train.parquet", val_files="/data/test.parquet", n_gpus_per_node=8)
ACTOR = "actor_rollout_ref.actor"
REFERENCE = "actor_rollout_ref.ref"


def recipe_with(**given: Any) -> Recipe:
    fields: dict[str, Any] = {
        "algorithm": GRPO(),
        "model": "Qwen/Qwen3-8B",
        "dataset": "gsm8k",
        "engine": FSDP2(),
        "rollout": Vllm(n=4),
        "train_batch_size": 16,
        "max_prompt_length": 512,
        "max_response_length": 256,
        "steps": 3,
        **given,
    }
    return Recipe(**fields)


def values_of(recipe: Recipe, extra: dict[str, Any] | None = None) -> dict[str, object]:
    overrides = to_overrides(recipe, INPUTS, extra)
    assert len({override.key for override in overrides}) == len(overrides)
    return {override.key: override.value for override in overrides}


def marks_of(recipe: Recipe) -> dict[str, str]:
    return {override.key: override.mark for override in to_overrides(recipe, INPUTS)}


def problems_of(**given: Any) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        recipe_with(**given)
    return caught.value.problems


def test_inputs_say_where_model_data_and_devices_are() -> None:
    values = values_of(recipe_with())

    assert values["actor_rollout_ref.model.path"] == "/models/Qwen3-8B"
    assert values["data.train_files"] == "/data/train.parquet"
    assert values["trainer.n_gpus_per_node"] == 8


def test_metrics_go_to_console_and_file_with_log_probabilities() -> None:
    values = values_of(recipe_with())

    assert values["trainer.logger"] == ("console", "file")
    assert values["actor_rollout_ref.rollout.calculate_log_probs"] is True


def test_a_run_starts_from_nothing_and_its_epochs_suffice() -> None:
    values = values_of(recipe_with(steps=7))

    assert values["trainer.resume_mode"] == "disable"
    assert (values["trainer.total_training_steps"], values["trainer.total_epochs"]) == (7, 7)


def test_gspo_sets_its_loss_mode() -> None:
    values = values_of(recipe_with(algorithm=GSPO()))

    assert values[f"{ACTOR}.policy_loss.loss_mode"] == "gspo"
    assert values[f"{ACTOR}.clip_ratio_high"] == 4e-4


def test_nothing_is_said_of_a_reference_that_is_not_built() -> None:
    values = values_of(recipe_with(overrides={f"{ACTOR}.fsdp_config.wrap_policy.min_num_params": 5}))

    assert not [key for key in values if key.startswith(REFERENCE)]


def test_the_reference_gets_the_sizes_of_the_actor() -> None:
    engine = Megatron(tp=2, pp=2, cp=2, ep=4, etp=1, dtype="float16", param_offload=True, sequence_parallel=False)

    values = values_of(recipe_with(algorithm=GRPO(use_kl_loss=True), engine=engine))

    actor = {key.removeprefix(f"{ACTOR}."): value for key, value in values.items() if key.startswith(f"{ACTOR}.megatron.")}
    reference = {
        key.removeprefix(f"{REFERENCE}."): value for key, value in values.items() if key.startswith(f"{REFERENCE}.megatron.")
    }
    missing = {key for key in actor if key not in reference}
    assert missing == {"megatron.optimizer_offload"}
    assert all(reference[key] == actor[key] for key in actor if key in reference)


def test_the_reference_shares_the_actors_transformer_configuration() -> None:
    values = values_of(recipe_with(algorithm=GRPO(use_kl_loss=True), engine=Megatron(transformer={"moe_grouped_gemm": True})))

    assert (
        values[f"{REFERENCE}.megatron.override_transformer_config"]
        == "${actor_rollout_ref.actor.megatron.override_transformer_config}"
    )


def test_the_reference_follows_overrides_of_the_actors_engine() -> None:
    overrides = {f"{ACTOR}.fsdp_config": {"wrap_policy": {"min_num_params": 5}, "+full_determinism": True}}

    values = values_of(recipe_with(algorithm=GRPO(use_kl_loss=True), overrides=overrides))

    assert values[f"{REFERENCE}.fsdp_config.wrap_policy.min_num_params"] == 5
    assert values[f"{REFERENCE}.fsdp_config.full_determinism"] is True


def test_an_override_of_the_reference_stands_against_the_actors() -> None:
    overrides = {f"{ACTOR}.fsdp_config.use_orig_params": True, f"{REFERENCE}.fsdp_config.use_orig_params": False}

    values = values_of(recipe_with(algorithm=GRPO(use_kl_loss=True), overrides=overrides))

    assert values[f"{REFERENCE}.fsdp_config.use_orig_params"] is False


def test_a_reference_of_its_own_has_its_own_settings() -> None:
    recipe = recipe_with(algorithm=GRPO(use_kl_loss=True), engine=FSDP2(sp=2), reference=FSDP2(param_offload=True))

    values = values_of(recipe)

    assert values[f"{REFERENCE}.fsdp_config.ulysses_sequence_parallel_size"] == 1
    assert values[f"{REFERENCE}.fsdp_config.param_offload"] is True
    assert values[f"{ACTOR}.fsdp_config.param_offload"] is False


def test_the_critic_of_ppo_has_the_actors_model_and_engine() -> None:
    values = values_of(recipe_with(algorithm=PPO(critic_lr=2e-5), engine=FSDP2(sp=2, offload=True)))

    assert values["algorithm.adv_estimator"] == "gae"
    assert values["critic.optim.lr"] == 2e-5
    assert values["critic.model.path"] == "/models/Qwen3-8B"
    assert values["critic.strategy"] == "fsdp2"
    assert values["critic.fsdp.ulysses_sequence_parallel_size"] == 2
    assert values["critic.fsdp.optimizer_offload"] is True


def test_dapo_asks_for_dynamic_sampling_and_the_overlong_penalty() -> None:
    recipe = recipe_with(algorithm=DAPO(overlong_buffer_len=64, overlong_penalty_factor=0.5))

    values, marks = values_of(recipe), marks_of(recipe)

    assert values["algorithm.filter_groups.enable"] is True
    assert values["reward.reward_manager.name"] == "dapo"
    assert values["reward.reward_kwargs.overlong_buffer_cfg.len"] == 64
    assert values["reward.reward_kwargs.max_resp_len"] == 256
    assert marks["reward.reward_kwargs.overlong_buffer_cfg.len"] == "++"


def test_a_seed_goes_to_data_training_and_rollout() -> None:
    values = values_of(recipe_with(algorithm=PPO(use_kl_loss=True), seed=7))

    assert [key for key, value in values.items() if value == 7] == [
        "data.seed",
        f"{ACTOR}.data_loader_seed",
        f"{ACTOR}.fsdp_config.seed",
        "actor_rollout_ref.rollout.seed",
        f"{REFERENCE}.fsdp_config.seed",
        "critic.data_loader_seed",
        "critic.fsdp.seed",
    ]


def test_megatron_is_chosen_by_verls_own_group() -> None:
    values = values_of(recipe_with(engine=Megatron()))

    assert (values["model_engine"], values[f"{ACTOR}.strategy"]) == ("megatron", "megatron")


def test_sglang_gets_the_attention_of_the_npu() -> None:
    values = values_of(recipe_with(rollout=Sglang(n=4, engine_kwargs={"mem_fraction_static": 0.5})))

    assert values["actor_rollout_ref.rollout.engine_kwargs.sglang.attention_backend"] == "ascend"
    assert values["actor_rollout_ref.rollout.engine_kwargs.sglang.mem_fraction_static"] == 0.5


def test_nested_and_dotted_overrides_mean_the_same() -> None:
    nested = recipe_with(overrides={"actor_rollout_ref": {"actor": {"checkpoint.strict": False}}})
    dotted = recipe_with(overrides={"actor_rollout_ref.actor.checkpoint.strict": False})

    assert values_of(nested) == values_of(dotted)


@pytest.mark.parametrize(
    "overrides",
    [
        {"+data.some_field": 1},
        {"data": {"+some_field": 1}},
        {"data.+some_field": 1},
    ],
)
def test_a_plus_appends_wherever_it_stands(overrides: dict[str, Any]) -> None:
    assert marks_of(recipe_with(overrides=overrides))["data.some_field"] == "+"


def test_free_dictionaries_need_no_plus() -> None:
    marks = marks_of(
        recipe_with(overrides={"ray_kwargs.ray_init.resources": {"NPU": 2}, "actor_rollout_ref.model.override_config.x": 1})
    )

    assert marks["ray_kwargs.ray_init.resources.NPU"] == "++"
    assert marks["actor_rollout_ref.model.override_config.x"] == "++"


def test_a_derived_value_gives_way_to_an_override() -> None:
    values = values_of(recipe_with(overrides={"trainer": {"save_freq": 5, "resume_mode": "auto"}}))

    assert (values["trainer.save_freq"], values["trainer.resume_mode"]) == (5, "auto")


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (
            {"data.seed2": 1, "data": {"seed2": 2}},
            "overrides['data.seed2'] and overrides['data']['seed2'] set the same key",
        ),
        (
            {"data.a": 1, "data.a.b": 2},
            "overrides['data.a'] and overrides['data.a.b'] set keys of which one holds the other",
        ),
        (
            {f"{ACTOR}.use_kl_loss": True},
            f"overrides['{ACTOR}.use_kl_loss']: {ACTOR}.use_kl_loss is what the field algorithm.use_kl_loss sets: use the field",
        ),
        (
            {f"{ACTOR}.ppo_max_token_len_per_gpu": 3},
            f"overrides['{ACTOR}.ppo_max_token_len_per_gpu']: {ACTOR}.ppo_max_token_len_per_gpu is what the field ppo_max",
        ),
        (
            {f"{ACTOR}.ulysses_sequence_parallel_size": 2},
            f"overrides['{ACTOR}.ulysses_sequence_parallel_size']: {ACTOR}.ulysses_sequence_parallel_size is what the field eng",
        ),
        ({ACTOR: 3}, f"overrides['{ACTOR}']: {ACTOR} holds what the fields "),
        (
            {"trainer.nnodes.x": 3},
            "overrides['trainer.nnodes.x']: trainer.nnodes.x lies within what the field the case's nodes sets",
        ),
        (
            {f"{REFERENCE}.fsdp_config.param_offload": True},
            f"overrides['{REFERENCE}.fsdp_config.param_offload']: dead, since verl builds no",
        ),
        ({"critic.optim.lr": 1.0}, "overrides['critic.optim.lr']: dead, since GRPO has no critic"),
        (
            {f"{ACTOR}.megatron.tensor_model_parallel_size": 2},
            f"overrides['{ACTOR}.megatron.tensor_model_parallel_size']: dead",
        ),
        (
            {"reward_model.reward_manager": "dapo"},
            "overrides['reward_model.reward_manager']: dead, since verl.trainer.main_ppo does not",
        ),
        ({"trainer.logger": ["console", "wandb"]}, "overrides['trainer.logger']: ['console', 'wandb'] cannot be used"),
        ({"data.a b": 1}, "overrides['data.a b']: 'a b' in 'data.a b' is no name of a key"),
        ({"data.x": {1, 2}}, "overrides['data.x']: {1, 2} cannot be used: set has no form in an override"),
    ],
)
def test_an_override_that_cannot_be_meant_is_refused(overrides: dict[str, Any], text: str) -> None:
    (problem,) = problems_of(overrides=overrides)

    assert problem.startswith(text)


def test_a_value_of_a_typed_dictionary_must_have_a_form() -> None:
    (problem,) = problems_of(engine=Megatron(transformer={"a": object}))

    assert problem.startswith("engine.transformer['a']: <class 'object'> cannot be used")


def test_more_loggers_are_welcome() -> None:
    values = values_of(recipe_with(overrides={"trainer.logger": ["console", "file", "tensorboard"]}))

    assert values["trainer.logger"] == ["console", "file", "tensorboard"]


def test_what_a_simulation_adds_wins_over_fields_and_overrides() -> None:
    recipe = recipe_with(overrides={"trainer.save_freq": 5})

    values = values_of(recipe, {"trainer": {"save_freq": 1, "device": "cpu"}, "actor_rollout_ref.rollout.dtype": "float32"})

    assert (values["trainer.save_freq"], values["trainer.device"]) == (1, "cpu")
    assert values["actor_rollout_ref.rollout.dtype"] == "float32"


def test_what_a_simulation_adds_for_the_actors_engine_reaches_the_reference_too() -> None:
    recipe = recipe_with(algorithm=GRPO(use_kl_loss=True), engine=FSDP2(param_offload=True))

    values = values_of(recipe, {f"{ACTOR}.fsdp_config.param_offload": False})

    assert values[f"{REFERENCE}.fsdp_config.param_offload"] is False


def test_what_a_simulation_adds_for_an_absent_role_is_left_out() -> None:
    values = values_of(recipe_with(), {f"{REFERENCE}.fsdp_config.param_offload": False, "critic.optim.lr": 1.0})

    assert not [key for key in values if key.startswith((REFERENCE, "critic."))]


def test_a_doubled_key_of_a_simulation_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"extra\['a.b'\] and extra\['a'\]\['b'\]"):
        to_overrides(recipe_with(), INPUTS, {"a.b": 1, "a": {"b": 2}})
