"""What counts as a secret, and what does not."""

from __future__ import annotations

import json

import pytest

from pytest_ascend_e2e.launch import Redactor

SECRET = "correct-horse"  # noqa: S105  # the subject of the tests


def written(redactor: Redactor, argument: str) -> str:
    (pieces,) = redactor.arguments((argument,))
    return "".join("***" if piece.secret_of else piece.text for piece in pieces)


@pytest.mark.parametrize("name", ["HF_TOKEN", "VLLM_API_KEY", "HF_SECRET", "VERL_DB_PASSWORD", "hf_token"])
def test_a_variable_named_like_a_secret_is_redacted(name: str) -> None:
    assert Redactor().variable(name, SECRET) == "<redacted>"


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "HF_HOME", "PYTHONPATH", "MONKEY_PATCH"])
def test_another_variable_is_not_redacted(name: str) -> None:
    assert Redactor().variable(name, SECRET) == SECRET


def test_an_empty_secret_shows_that_it_is_empty() -> None:
    assert Redactor().variable("HF_TOKEN", "") == ""


@pytest.mark.parametrize(
    "argument",
    [
        *("data.image_key=images", "data.prompt_key=prompt", "reward.reward_fn_key=data_source", "data.return_raw_token=True"),
        *("actor_rollout_ref.actor.loss_agg_mode=token-mean", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=1024"),
        *("+model.pad_token=x", "trainer.api_key=null", "data.train_files=s3://bucket/train.parquet", "mail@example.org"),
    ],
)
def test_the_settings_of_a_training_are_no_secrets(argument: str) -> None:
    assert written(Redactor(), argument) == argument


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (f"trainer.wandb_api_key={SECRET}", "trainer.wandb_api_key=***"),
        (f"+trainer.password={SECRET}", "+trainer.password=***"),
        (f"--token={SECRET}", "--token=***"),
        (f"x=https://me:{SECRET}@host/path", "x=https://***@host/path"),
        ("x=hf_" + "a" * 30, "x=***"),
        ("x=[sk-" + "a" * 30 + ",1]", "x=[***,1]"),
    ],
)
def test_a_secret_in_an_argument_is_cut_out(argument: str, expected: str) -> None:
    assert written(Redactor(), argument) == expected


def test_the_argument_after_a_secret_flag_is_a_secret() -> None:
    pieces = Redactor().arguments(("--api-key", SECRET, "next"))

    assert [[bool(piece.secret_of) for piece in argument] for argument in pieces] == [[False], [True], [False]]


def test_the_value_of_a_secret_variable_is_found_anywhere() -> None:
    redactor = Redactor({"HF_TOKEN": SECRET})

    assert redactor.text(f"download with {SECRET}!") == "download with <redacted>!"


def test_a_short_value_is_not_searched_for() -> None:
    redactor = Redactor({"HF_TOKEN": "1"})

    assert redactor.text("step 1 of 15") == "step 1 of 15"


def test_a_secret_with_quotes_is_found_in_json() -> None:
    secret = SECRET + '"quoted\\'
    redactor = Redactor({"HF_TOKEN": secret})

    text = redactor.text(json.dumps({"line": f"with {secret}"}))

    assert json.loads(text) == {"line": "with <redacted>"}


def test_the_secret_settings_of_a_configuration_are_redacted() -> None:
    text = f"trainer:\n  wandb_api_key: {SECRET}\n  image_key: images\n  token: null\nurl: http://a:{SECRET}@h\n"

    assert (
        Redactor().yaml(text)
        == "trainer:\n  wandb_api_key: <redacted>\n  image_key: images\n  token: null\nurl: http://<redacted>@h\n"
    )
