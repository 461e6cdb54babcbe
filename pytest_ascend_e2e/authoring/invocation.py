"""The command that starts one of verl's trainings, taken apart: program, configuration, overrides, environment.

Must not know: where its words come from, or what an override means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import AuthoringError

PPO_MODULE = "verl.trainer.main_ppo"
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w.@/$-]*=")
_PROCESSES = ("--nproc_per_node", "--nproc-per-node")
_CONFIG_NAME = ("--config-name", "-cn")
_CONFIG_DIRECTORY = ("--config-path", "-cp", "--config-dir", "-cd")
# verl's own, as its program names it and as a script does.
_OWN_DIRECTORY = re.compile(r"^(\./)?config/?$|verl/trainer/config/?$")
# The last name of a program of verl, and the configuration that it composes where none is named.
_PROGRAMS: Mapping[str, str] = {
    "main_ppo": "ppo_trainer",
    "main_dapo": "ppo_trainer",
    "sft_trainer": "sft_trainer_engine",
    "sft_trainer_ray": "sft_trainer_engine",
}
# Keys of verl's older programs, and where main_ppo reads the same.
_MOVED: Mapping[str, str] = {
    "reward_model.reward_manager": "reward.reward_manager.name",
    "reward_model.reward_kwargs": "reward.reward_kwargs",
    "custom_reward_function": "reward.custom_reward_function",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """One training: verl's program, the name of its configuration and the overrides of it, in Hydra's grammar.

    `processes` is the number of processes of a node where a launcher was told one; `notes` say what was read otherwise than it
    was written.
    """

    program: str
    config_name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_fine_tuning(self) -> bool:
        """Tell whether it is a supervised fine-tuning."""
        return self.config_name == "sft_trainer_engine"


def is_training(words: Sequence[str]) -> bool:
    """Tell whether the words of a command start one of verl's programs, known to a recipe or not."""
    return program_at(words) is not None


def has_recipe(words: Sequence[str]) -> bool:
    """Tell whether the words of a command start a program of verl that a recipe trains with."""
    place = program_at(words)
    return place is not None and _module_of(words[place]).rpartition(".")[2] in _PROGRAMS


def invocation_of(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Invocation:
    """Return the training that these words start; overrides alone are those of verl's main_ppo.

    Raises:
        AuthoringError: no recipe trains what the words start, or they are not overrides.
    """
    own = dict(environment or {})
    rest = list(words)
    place = program_at(rest)
    program, options, arguments = PPO_MODULE, [], rest
    if place is not None:
        program, options, arguments = _module_of(rest[place]), rest[:place], rest[place + 1 :]
        # Of a shell or of a launcher: env, docker run -e.
        own |= dict(option.partition("=")[::2] for option in options if _ASSIGNMENT.match(option))
    name = program.rpartition(".")[2]
    if name not in _PROGRAMS:
        raise AuthoringError(
            f"{program!r} is no program that a recipe trains with: expected one of verl's {', '.join(_PROGRAMS)}; verl's "
            "asynchronous trainer is main_ppo with trainer.v1.trainer_mode=separate_async"
        )
    config_name, overrides, notes = _overrides_of(arguments, _PROGRAMS[name])
    processes = _processes_text(options)
    return Invocation(
        program=program,
        config_name=config_name,
        arguments=tuple(overrides),
        environment=own,
        processes=int(processes) if processes.isdecimal() else None,
        notes=(*_launcher_notes(options), *notes),
    )


def program_at(words: Sequence[str]) -> int | None:
    """Return where the name of verl's program stands."""
    for place, word in enumerate(words):
        if _OVERRIDE.match(word) and not _ASSIGNMENT.match(word):
            return None
        is_module = place > 0 and words[place - 1] == "-m" and word.split(".")[0] in {"verl", "recipe"}
        is_file = word.endswith(".py") and word.removesuffix(".py").rpartition("/")[2] in _PROGRAMS
        if is_module or is_file:
            return place
    return None


def _module_of(word: str) -> str:
    return f"verl.trainer.{word.removesuffix('.py').rpartition('/')[2]}" if word.endswith(".py") else word


def _launcher_notes(options: Sequence[str]) -> list[str]:
    names = [option.partition("=")[0] for option in options if option.startswith("--runtime-env")]
    notes = [f"{name}: not read; give the variables that it sets with --env NAME=VALUE" for name in names]
    processes = _processes_text(options)
    if processes and not processes.isdecimal():
        notes.append(f"{_PROCESSES[0]}={processes}: read as 1, since it is no number")
    return notes


def _processes_text(options: Sequence[str]) -> str:
    for place, option in enumerate(options):
        name, equals, value = option.partition("=")
        if name in _PROCESSES:
            return value if equals else options[place + 1] if place + 1 < len(options) else ""
    return ""


def _overrides_of(arguments: Sequence[str], default: str) -> tuple[str, list[str], list[str]]:
    """Return the name of the configuration, the overrides, and what there is to say of them."""
    config_name, overrides, notes, problems = default, [], [], []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in _CONFIG_NAME:
            config_name = (value if equals else rest.pop(0) if rest else "").removesuffix(".yaml")
        elif name in _CONFIG_DIRECTORY:
            directory = value if equals else rest.pop(0) if rest else ""
            if not _OWN_DIRECTORY.search(directory):
                notes.append(
                    f"{name} {directory}: only verl's own configuration is composed; what the other YAML sets is not taken over"
                )
        elif word.startswith("hydra."):
            notes.append(f"{word}: the run directory takes the place of Hydra's")
        elif _OVERRIDE.match(word):
            overrides.append(_moved(word, notes))
        elif word.startswith("~"):
            notes.append(f"{word}: a recipe cannot delete a key")
        else:
            problems.append(
                f"{word!r} is no override: expected KEY=VALUE in verl's own key names, such as data.train_batch_size=32"
            )
    if problems:
        raise AuthoringError(*problems)
    return _known_config(config_name, notes), overrides, notes


def _known_config(name: str, notes: list[str]) -> str:
    if name in {"ppo_trainer", "ppo_megatron_trainer", "sft_trainer_engine"}:
        return name
    instead = "ppo_megatron_trainer" if "megatron" in name else "sft_trainer_engine" if "sft" in name else "ppo_trainer"
    notes.append(f"--config-name={name}: read as verl's {instead}")
    return instead


def _moved(word: str, notes: list[str]) -> str:
    mark = word[: len(word) - len(word.lstrip("+~"))]
    key, _, value = word[len(mark) :].partition("=")
    for old, new in _MOVED.items():
        if key == old or key.startswith(f"{old}."):
            moved = f"{new}{key.removeprefix(old)}"
            notes.append(f"{key}: read as {moved}, which is where main_ppo reads it")
            return f"{mark}{moved}={value}"
    return word
