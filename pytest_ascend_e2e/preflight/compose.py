"""The child of a preflight: composes verl's configuration with Hydra, as verl's trainers would, builds it, and says what is wrong.

Run as `python -m pytest_ascend_e2e.preflight.compose`: on stdin a JSON list of cases, each the name of one of verl's configurations
and a list of overrides (`{"config": ..., "overrides": [...]}`), on stdout one JSON object. Neither torch nor ray is loaded: it
finds verl's YAML without importing verl, and its dataclasses with stand-ins for what is heavy. Must not know: recipes.
"""

from __future__ import annotations

import copy
import difflib
import importlib.util
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias

from .building import Builder
from .dataclass_fields import DataclassFields

CONFIG_NAME = "ppo_trainer"
# What chooses a file of verl's configuration and is no key of it.
_GROUPS = ("model_engine=", "engine=", "optim=", "model=")
_NEAREST = 3
_FEWEST_IN_A_PROCESS = 4
Config: TypeAlias = dict[str, Any]


def main() -> int:
    """Read the cases from stdin and write what became of them to stdout."""
    cases = json.load(sys.stdin)
    json.dump(compose_all(cases), sys.stdout)
    return 0


def compose_all(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return, for each case, the composed configuration and the problems of its overrides."""
    for name, distribution in (("hydra", "hydra-core"), ("verl", "verl")):
        if importlib.util.find_spec(name) is None:
            return {"missing": distribution, "python": sys.executable}
    from hydra import initialize_config_dir  # noqa: PLC0415  # only this child has it

    root = _verl_root()
    directory = root / "trainer" / "config"
    if not (directory / f"{CONFIG_NAME}.yaml").is_file():
        return {"missing": f"{directory / CONFIG_NAME}.yaml", "python": sys.executable}
    builder, unbuilt = _builder()
    composer = Composer(fields=DataclassFields(root), builder=builder)
    with initialize_config_dir(version_base=None, config_dir=str(directory)):
        entries = _entries(composer, cases)
    return {"verl": _version(), "entries": entries, "unbuilt": unbuilt}


def _builder() -> tuple[Builder | None, str]:
    """Return what builds verl's dataclasses, or None and why this verl cannot be asked."""
    try:
        return Builder(), ""
    except Exception as error:  # noqa: BLE001  # another version of verl may need more of a library than a stand-in has
        return None, f"{type(error).__name__}: {error}"


def _entries(composer: Composer, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compose all cases, of many some on each core: Hydra takes a second for one, and shares nothing between two."""
    work = [(case["config"], case["overrides"]) for case in cases]
    processes = min(len(os.sched_getaffinity(0)), len(cases) // _FEWEST_IN_A_PROCESS)
    if processes < 2:  # noqa: PLR2004  # one needs no other
        return [composer.compose(*one) for one in work]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return pool.starmap(composer.compose, work, chunksize=1)


def _verl_root() -> Path:
    spec = importlib.util.find_spec("verl")
    locations = [] if spec is None else list(spec.submodule_search_locations or [])
    return Path(locations[0]) if locations else Path()


def _version() -> str:
    try:
        return metadata.version("verl")
    except metadata.PackageNotFoundError:
        return "of unknown version"


@dataclass(frozen=True, kw_only=True, slots=True)
class Composer:
    """Composes lists of overrides, and builds what can be composed whole; keeps the configuration without overrides, by the groups.

    What Hydra reads from files is the same for all lists that choose the same groups, and takes most of its time: a list's other
    overrides are applied to a copy.
    """

    fields: DataclassFields
    builder: Builder | None = None
    bases: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def compose(self, name: str, arguments: Sequence[str]) -> dict[str, Any]:
        """Return `{"config": mapping or None, "problems": [...], "unasked": [...]}` for one list of overrides."""
        from hydra.errors import HydraException  # noqa: PLC0415  # only this child has it
        from omegaconf.errors import OmegaConfBaseException  # noqa: PLC0415  # as above

        problems: list[dict[str, Any]] = []
        try:
            try:
                config = self._composed(name, arguments)
            except HydraException:
                problems = list(self._key_problems(name, arguments))
                bad = {problem["argument"] for problem in problems}
                config = self._composed(name, [argument for argument in arguments if argument not in bad])
        except (HydraException, OmegaConfBaseException) as error:
            return {"config": None, "problems": [*problems, _other(error)]}
        problems += self._appended_problems(arguments, config)
        if self.builder is None or problems:
            return {"config": config, "problems": problems}
        words = self.builder.examine(config)
        refused = [{**_problem("", part, "refused"), "text": text} for part, text in words.refused]
        return {"config": config, "problems": refused, "unasked": words.unasked}

    def _key_problems(self, name: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield every override whose key is not there, or is there although its mark appends it."""
        base = _contents(self._base(name, arguments), name)
        known = list(_keys(base))
        for argument, key, kind in _parsed(arguments):
            if kind == "CHANGE" and not _has(base, key):
                names = self.fields.of(_target_above(base, key)) or frozenset()
                is_field = key.rpartition(".")[2] in names
                yield _problem(argument, key, "appendable" if is_field else "unknown", [] if is_field else _nearest(key, known))
            elif kind == "ADD" and _has(base, key) and not isinstance(_value(base, key), (dict, NoneType)):
                yield _problem(argument, key, "exists")

    def _appended_problems(self, arguments: Sequence[str], config: Any) -> list[dict[str, Any]]:
        """Return every `+key` that appends to a dataclass of verl a field it has not: verl would raise when it is built."""
        problems = []
        for argument, key, kind in _parsed(arguments):
            head, _, leaf = key.rpartition(".")
            names = self.fields.of(_target_above(config, key)) if kind == "ADD" else None
            if names is not None and leaf not in names:
                nearest = [f"{head}.{name}" for name in difflib.get_close_matches(leaf, sorted(names), n=_NEAREST)]
                problems.append(_problem(argument, key, "no-field", nearest))
        return problems

    def _composed(self, name: str, arguments: Sequence[str]) -> Config:
        """Return what Hydra would compose, resolved; a list that cannot be applied so goes to Hydra itself, for its error."""
        from hydra import compose  # noqa: PLC0415  # only this child has it

        config = self._applied(name, arguments)
        return _contents(compose(name, overrides=list(arguments)) if config is None else config, name)

    def _applied(self, name: str, arguments: Sequence[str]) -> Any:
        """Return the base with the overrides applied as Hydra applies them, None where one of them cannot be."""
        from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: PLC0415  # only this child has it
        from omegaconf import OmegaConf  # noqa: PLC0415  # as above
        from omegaconf.errors import OmegaConfBaseException  # noqa: PLC0415  # as above

        config = copy.deepcopy(self._base(name, arguments))
        parser = OverridesParser.create()
        for argument in arguments:
            if argument.startswith(_GROUPS):
                continue
            override = parser.parse_override(argument)
            key, value, kind = override.key_or_group, override.value(), override.type.name if override.type else ""
            present = OmegaConf.select(config, key, throw_on_missing=False)
            is_addition = kind == "FORCE_ADD" or (kind == "ADD" and (present is None or isinstance(value, (dict, list))))
            # A text in the place of a whole section may choose a file.
            is_choice = override.package is not None or (OmegaConf.is_dict(present) and isinstance(value, str))
            if is_choice or not (kind == "CHANGE" or is_addition):
                return None
            try:
                OmegaConf.update(config, key, value, merge=True, force_add=is_addition)
            except OmegaConfBaseException:
                return None
        return config

    def _base(self, name: str, arguments: Sequence[str]) -> Any:
        from hydra import compose  # noqa: PLC0415  # only this child has it

        groups = tuple(argument for argument in arguments if argument.startswith(_GROUPS))
        chosen = (name, *groups)
        if chosen not in self.bases:
            self.bases[chosen] = compose(name, overrides=list(groups))
        return self.bases[chosen]


def _contents(composed: Any, name: str) -> Config:
    from omegaconf import OmegaConf  # noqa: PLC0415  # only this child has it

    config = OmegaConf.to_container(composed, resolve=True)
    if not isinstance(config, dict):
        raise TypeError(f"verl's {name} composed to a {type(config).__name__}, not to a mapping")
    return {str(key): value for key, value in config.items()}


def _parsed(arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    from hydra.core.override_parser.overrides_parser import OverridesParser  # noqa: PLC0415  # only this child has it

    parser = OverridesParser.create()
    for argument in arguments:
        override = parser.parse_override(argument)
        if not argument.startswith(_GROUPS):
            yield argument, str(override.key_or_group), override.type.name


def _keys(node: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in node.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def _value(config: Mapping[str, Any], key: str) -> Any:
    node: Any = config
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _parent(config: Mapping[str, Any], key: str) -> Any:
    head = key.rpartition(".")[0]
    return _value(config, head) if head else config


def _has(config: Mapping[str, Any], key: str) -> bool:
    parent = _parent(config, key)
    return isinstance(parent, dict) and key.rpartition(".")[2] in parent


def _target_above(config: Mapping[str, Any], key: str) -> str:
    parent = _parent(config, key)
    return str(parent.get("_target_", "")) if isinstance(parent, dict) else ""


def _nearest(key: str, known: Sequence[str]) -> list[str]:
    head, _, leaf = key.rpartition(".")
    siblings = [name for name in known if name.rpartition(".")[0] == head]
    close = difflib.get_close_matches(leaf, [name.rpartition(".")[2] for name in siblings], n=_NEAREST, cutoff=0.7)
    found = [f"{head}.{name}" if head else name for name in close]
    found += difflib.get_close_matches(key, [name for name in known if name.rpartition(".")[2] == leaf], n=_NEAREST, cutoff=0.0)
    found += difflib.get_close_matches(key, known, n=_NEAREST, cutoff=0.8)
    return list(dict.fromkeys(found))[:_NEAREST]


def _problem(argument: str, key: str, kind: str, nearest: Sequence[str] = ()) -> dict[str, Any]:
    return {"argument": argument, "key": key, "kind": kind, "nearest": list(nearest)}


def _other(error: Exception) -> dict[str, Any]:
    return {**_problem(getattr(error, "override", None) or "", "", "other"), "text": str(error).strip()}


if __name__ == "__main__":
    sys.exit(main())
