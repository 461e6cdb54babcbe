"""The catalogue of runners: which kinds of machine exist, from the shipped YAML and a file of the user's own.

Must not know: the machine it runs on. Which of these runners this host is, `devices.py` tells.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import RunnerError, did_you_mean

SCHEMA = 1
# What the largest of verl's own jobs ask for; a container's own 64 MB end Ray's object store.
DEFAULT_SHM_GB = 64.0
SHIPPED = Path(__file__).with_name("catalogue.yaml")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """A kind of machine; `memory_gb` is per device, None stands for a figure that is not known.

    `devices` counts dies: a two-die card is two devices. `ci_label` is empty where no CI offers such a machine. `images` are the
    containers in which a CI runs cases there, by rollout engine, with shared memory of `shm_gb`.
    """

    name: str
    devices: int
    chip: str
    dies_per_card: int
    memory_gb: float
    ci_label: str = ""
    cpus: int | None = None
    host_memory_gb: float | None = None
    simulated: bool = False
    images: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    shm_gb: float = DEFAULT_SHM_GB


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The runners that a case can name, in the order of their files."""

    runners: tuple[Runner, ...]

    def __iter__(self) -> Iterator[Runner]:
        return iter(self.runners)

    def __len__(self) -> int:
        return len(self.runners)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all runners."""
        return tuple(runner.name for runner in self.runners)

    def get(self, name: str) -> Runner:
        """Return the runner of this name.

        Raises:
            RunnerError: there is none; the message names the nearest ones and all others.
        """
        for runner in self.runners:
            if runner.name == name:
                return runner
        near = difflib.get_close_matches(name, self.names, n=3, cutoff=0.5)
        hint = did_you_mean(near, before="; ", otherwise=".")
        raise RunnerError(f"runner {name!r} is not in the catalogue{hint} It holds {', '.join(self.names)}")


def load_catalogue(extra: Path | None = None) -> Catalogue:
    """Return the shipped runners, with those of the file `extra` added or changed.

    Raises:
        RunnerError: a file cannot be read or holds entries that cannot be used; all problems of the file at once.
    """
    shipped = _read(SHIPPED)
    runners = _build(shipped, given=shipped, origin=SHIPPED)
    if extra is not None:
        given = _read(extra)
        whole = {name: {**shipped.get(name, {}), **entry} if isinstance(entry, dict) else entry for name, entry in given.items()}
        runners |= _build(whole, given=given, origin=extra)
    return Catalogue(tuple(runners.values()))


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe loader that refuses a key given twice, where YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _read(path: Path) -> dict[Any, Any]:
    """Return the entries of a catalogue file by name, not yet judged."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506  # a subclass of SafeLoader
    except (OSError, UnicodeDecodeError) as error:
        raise RunnerError(f"{path}: the catalogue of runners cannot be read: {error}") from error
    except (yaml.YAMLError, TypeError) as error:
        raise RunnerError(f"{path}: not a catalogue in YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict) or set(data) != {"schema", "runners"} or not isinstance(data["runners"], dict):
        raise RunnerError(f"{path}: expected a mapping with the keys schema and runners, runners being a mapping by name")
    if data["schema"] != SCHEMA:
        raise RunnerError(f"{path}: catalogue of schema {data['schema']!r}; this version reads schema {SCHEMA}")
    return data["runners"]


def _build(entries: Mapping[Any, Any], *, given: Mapping[Any, Any], origin: Path) -> dict[str, Runner]:
    problems: list[str] = []
    runners: dict[str, Runner] = {}
    for name, entry in entries.items():
        where = f"{origin}: runner {name!r}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(f"{where}: expected a name of letters, digits, '.', '_' and '-'")
        elif not isinstance(entry, dict):
            problems.append(f"{where}: expected a mapping of fields, found {entry!r}")
        elif found := _problems(entry, unknown=set(given[name]) - set(_FIELDS)):
            problems += [f"{where}: {problem}" for problem in found]
        else:
            runners[name] = Runner(name=name, **entry)
    if problems:
        raise RunnerError(*problems)
    return runners


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_size(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_images(value: object) -> bool:
    return isinstance(value, dict) and all(_is_text(item) for pair in value.items() for item in pair)


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "devices": (_is_count, "a number of devices such as 8"),
    "chip": (_is_text, "the name of a chip such as Ascend910B3"),
    "dies_per_card": (_is_count, "1 or 2"),
    "memory_gb": (_is_size, "gigabytes of one device such as 64"),
    "ci_label": (lambda value: isinstance(value, str), "the label of a CI runner such as linux-aarch64-a3-16"),
    "cpus": (lambda value: value is None or _is_count(value), "a number of processors such as 192"),
    "host_memory_gb": (lambda value: value is None or _is_size(value), "gigabytes of the host such as 1500"),
    "simulated": (lambda value: isinstance(value, bool), "true or false"),
    "images": (_is_images, "a mapping of a rollout engine to an image, such as {vllm: quay.io/ascend/verl:latest-vllm-a3-ubuntu}"),
    "shm_gb": (_is_size, "gigabytes of shared memory of a container such as 64"),
}


def _problems(entry: Mapping[str, Any], *, unknown: set[str]) -> list[str]:
    found = [
        f"unknown field {key!r}{_suggestion(str(key))} The fields are {', '.join(_FIELDS)}" for key in sorted(unknown, key=str)
    ]
    for field in dataclasses.fields(Runner):
        if field.name not in _FIELDS:
            continue
        is_valid, expected = _FIELDS[field.name]
        if field.name not in entry:
            if field.default is field.default_factory is dataclasses.MISSING:
                found.append(f"field {field.name!r} is missing: expected {expected}")
        elif not is_valid(entry[field.name]):
            found.append(f"{field.name}: {entry[field.name]!r} cannot be used: expected {expected}")
    if not found and entry["devices"] % entry["dies_per_card"]:
        found.append(f"devices: {entry['devices']} are no whole cards of {entry['dies_per_card']} dies (dies_per_card)")
    return found


def _suggestion(key: str) -> str:
    return did_you_mean(difflib.get_close_matches(key, _FIELDS, n=1), before="; ", otherwise=".")
