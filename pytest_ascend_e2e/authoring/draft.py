"""From a command of verl to a case: what must be composed for it, the recipe, and what there is to say of it.

Must not know: who composes, or where the case is written.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import AuthoringError
from ..launch.redaction import is_secret_name
from ..preflight import Composition, Request
from ..recipe import SFT, Inputs, Recipe, to_overrides
from ..runners import Catalogue, Runner
from .fields import typed_fields
from .invocation import Invocation
from .remainder import remainder_of
from .wanted import Wanted, groups_of, said_keys

_SIZE = re.compile(r"\d+(?:[._]\d+)?[bm]")
# Names of datasets in paths, and ours.
_DATASETS: Mapping[str, str] = {"geo3k": "geometry3k"}
_SPLITS = ("train", "test", "validation")
# Variables for installing, downloading and printing, or of the shell: none of them changes a training.
_NO_SETTING = re.compile(
    r"HF_.*|PIP_.*|UV_.*|WANDB_.*|SWANLAB_.*|TRANSFORMERS_VERBOSITY|HYDRA_FULL_ERROR|VERL_(PPO_)?LOGGING_LEVEL|VERL_FILE_LOGGER_.*"
    r"|PYTHONUNBUFFERED|PATH|PYTHONPATH|LD_.*|.*_PROXY|.*_proxy|ASCEND_(RT_)?VISIBLE_DEVICES|ASCEND_(HOME|TOOLKIT_HOME|OPP)_?.*"
    r"|HCCL_(HOST|NPU)_SOCKET_PORT_RANGE|HCCL_IF_BASE_PORT|RAY_(ADDRESS|EXPERIMENTAL_NOSET_.*)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A case that says what a command says; `inputs` are those of the command, so that both compose to the same.

    `is_whole` is False where verl refuses a part of the command, which is then not taken over.
    """

    name: str
    runner: str
    nodes: int
    recipe: Recipe | SFT
    inputs: Inputs
    wanted: Wanted
    notes: tuple[str, ...]
    is_whole: bool = True

    @property
    def request(self) -> Request:
        """Return what the case would have composed."""
        return Request.of(self.recipe.config_name, to_overrides(self.recipe, self.inputs))


def requests_of(invocation: Invocation) -> tuple[Request, Request]:
    """Return what must be composed for a draft: the command itself, and verl's defaults with the same engine."""
    groups = groups_of(invocation.arguments)
    return (
        Request(config_name=invocation.config_name, arguments=invocation.arguments),
        Request(config_name=invocation.config_name, arguments=groups),
    )


def draft_of(
    invocation: Invocation, composed: Composition, base: Composition, catalogue: Catalogue, runner: str | None = None
) -> Draft:
    """Return the case of a command, for the runner of this name or the first that has its devices.

    Raises:
        AuthoringError: verl is not there or cannot compose the command, or there is no such runner.
        RecipeError: the values of the command contradict each other.
    """
    if not composed.is_checked:
        raise AuthoringError(f"{composed.reason}; --python names an interpreter that has verl")
    if composed.config is None or base.config is None:
        raise AuthoringError(*composed.problems, *base.problems)
    refused = {problem.partition(": ")[0].partition("=")[0].lstrip("+~") for problem in composed.problems}
    said = {key: mark for key, mark in said_keys(invocation.arguments).items() if key not in refused}
    wanted = Wanted(config=composed.config, defaults=base.config, said=said)
    model, dataset = _model(wanted), _dataset(_first_file(wanted, "train"))
    env, env_notes = _environment(invocation.environment)
    typed = typed_fields(invocation, wanted, model=model, dataset=dataset, env=env)
    devices = _devices(invocation, wanted, typed.recipe)
    chosen = _runner(catalogue, devices, runner)
    recipe = typed.recipe
    if isinstance(recipe, SFT) and devices != chosen.devices:
        recipe = replace(recipe, processes_per_node=devices)
    inputs = _inputs(wanted, devices)
    rest = remainder_of(recipe, typed.taken, inputs, wanted)
    notes = (
        *invocation.notes,
        *(f"not taken over: {problem}" for problem in composed.problems),
        *_dataset_notes(wanted, dataset),
        *typed.notes,
        *rest.notes,
        *env_notes,
    )
    if chosen.devices != devices and isinstance(recipe, Recipe):
        notes = (
            *notes,
            f"the command has {devices} devices on a node, {chosen.name} has {chosen.devices}, and a case uses all of them",
        )
    return Draft(
        name=_name(recipe),
        runner=chosen.name,
        nodes=inputs.nnodes,
        recipe=replace(recipe, overrides=rest.overrides),
        inputs=inputs,
        wanted=wanted,
        notes=notes,
        is_whole=not composed.problems,
    )


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return the names with a number behind each that is there already."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        found.append(next(one for one in itertools.chain([name], numbered) if one not in found))
    return found


def _inputs(wanted: Wanted, devices: int) -> Inputs:
    return Inputs(
        model_path=str(wanted.get("actor_rollout_ref.model.path") or wanted.get("model.path")),
        train_files=_first_file(wanted, "train"),
        val_files=_first_file(wanted, "val"),
        n_gpus_per_node=devices,
        nnodes=_count(wanted, "trainer.nnodes"),
    )


def _model(wanted: Wanted) -> str:
    path = str(wanted.get("actor_rollout_ref.model.path") or wanted.get("model.path") or "")
    below = path.rstrip("/").rpartition("/models/")[2] if "/models/" in path else path
    if not below or "none" in (path.lower(), path.rpartition("/")[2].lower()):
        raise AuthoringError("the command names no model: expected actor_rollout_ref.model.path=..., or model.path=... for SFT")
    return below


def _files(wanted: Wanted, split: str) -> list[str]:
    files: Any = wanted.get(f"data.{split}_files") or []
    return [str(file) for file in (files if isinstance(files, list) else [files])]


def _first_file(wanted: Wanted, split: str) -> str:
    return next(iter(_files(wanted, split)), "data.parquet")


def _dataset_notes(wanted: Wanted, dataset: str) -> Iterator[str]:
    for split in ("train", "val"):
        others = [file for file in _files(wanted, split) if _dataset(file) != dataset]
        if others and f"data.{split}_files" in wanted.said:
            yield f"data.{split}_files: {', '.join(others)} is not taken over, a case has one dataset ({dataset})"


def _dataset(path: str) -> str:
    parts = [part for part in path.split("/") if part]
    name = parts[-1].rpartition(".")[0] or parts[-1]
    if name.split("-")[0] in _SPLITS and len(parts) > 1:
        name = parts[-2]
    return _DATASETS.get(name, name)


def _devices(invocation: Invocation, wanted: Wanted, recipe: Recipe | SFT) -> int:
    if isinstance(recipe, SFT) and recipe.launcher == "torchrun":
        return invocation.processes or 1
    devices = _count(wanted, "trainer.n_gpus_per_node")
    apart = 0 if isinstance(recipe, SFT) or recipe.trainer is None else recipe.trainer.rollout_devices
    return devices + apart


def _count(wanted: Wanted, key: str) -> int:
    value = wanted.get(key)
    if value is None:
        return 1
    if not isinstance(value, int) or value < 1:
        raise AuthoringError(f"{key}={value!r} cannot be used: expected a whole number of 1 or more")
    return value


def _runner(catalogue: Catalogue, devices: int, name: str | None) -> Runner:
    if name is not None:
        return catalogue.get(name)
    real = sorted((runner for runner in catalogue if not runner.simulated), key=lambda runner: runner.devices)
    for runner in real:
        if runner.devices >= devices:
            return runner
    raise AuthoringError(f"no runner of the catalogue has {devices} devices: name one with --runner ({', '.join(catalogue.names)})")


def _environment(variables: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    secret = sorted(name for name in variables if is_secret_name(name))
    plain = {name: value for name, value in variables.items() if name not in secret and not _NO_SETTING.fullmatch(name)}
    others = sorted(set(variables) - set(plain) - set(secret))
    notes = [f"{', '.join(others)}: left out of env, they change no training or belong to the runner"] if others else []
    notes += [f"{', '.join(secret)}: left out of env, a secret does not stand in a case"] if secret else []
    return dict(sorted(plain.items())), notes


def _name(recipe: Recipe | SFT) -> str:
    words: list[str] = []
    for word in re.split(r"[-_ ]+", recipe.model.rstrip("/").rpartition("/")[2].lower()):
        words.append(re.sub(r"[^a-z0-9]+", "_", word))
        if _SIZE.fullmatch(word):
            break
    rollout: Sequence[str] = () if isinstance(recipe, SFT) else (recipe.rollout.name,)
    features = ["lora"] if recipe.lora is not None else []
    if isinstance(recipe, Recipe) and recipe.trainer is not None:
        features.append("separate_async")
    return "_".join(["test", recipe.algorithm_name, *words, recipe.engine.name, *rollout, *features])
