"""Finds the weights of a model on a host and proves that they are whole, before any device is asked for.

Must not know: what the weights are used for; it reads names, one index and one configuration, never a tensor.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..errors import ModelError

_WEIGHTS = ("*.safetensors", "*.bin")
_INDEXES = ("*.safetensors.index.json", "*.bin.index.json")


def find_model(model_id: str, root: Path) -> Path:
    """Return the directory that holds the whole weights of a model.

    `model_id` is a hub name below `root` (`Qwen/Qwen3-8B`, with the usual root `~/.cache/models`) or an absolute path.

    Raises:
        ModelError: no such directory, or it is not whole; all that is wrong at once, and what to do.
    """
    given = Path(model_id)
    if not given.is_absolute() and (not given.parts or ".." in given.parts):
        raise ModelError(f"model {model_id!r}: expected a hub name such as 'Qwen/Qwen3-8B', or an absolute path")
    directory = given if given.is_absolute() else root.expanduser() / given
    try:
        is_there = directory.is_dir()
    except OSError as error:
        raise ModelError(f"model {model_id!r}: {directory} {_unread(error)}") from error
    if not is_there:
        raise ModelError(_missing(model_id, directory, given_absolute=given.is_absolute()))
    problems = problems_of(directory)
    if problems:
        raise ModelError(*(f"model {model_id!r}: {problem}" for problem in problems))
    return directory


def problems_of(directory: Path) -> list[str]:
    """Return what keeps a directory from being a whole model, one sentence each; nothing when it is one."""
    try:
        names = sorted(entry.name for entry in os.scandir(directory))
    except OSError as error:
        return [f"{directory} {_unread(error)}"]
    problems = _problems_of_config(directory / "config.json")
    weights = [name for name in names if any(Path(name).match(pattern) for pattern in _WEIGHTS)]
    indexes = [name for name in names if any(Path(name).match(pattern) for pattern in _INDEXES)]
    if not weights and not indexes:
        problems.append(f"{directory} holds no weight file ({', '.join(_WEIGHTS)}); download the model again")
    problems += [problem for name in weights for problem in _problems_of_weight(directory / name)]
    problems += [problem for name in indexes for problem in _problems_of_index(directory / name)]
    return problems


def _unread(error: OSError) -> str:
    return f"cannot be read ({error.strerror}); give the user of this process read access"


def _missing(model_id: str, directory: Path, *, given_absolute: bool) -> str:
    if given_absolute:
        return f"model {model_id!r}: {directory} is no directory; give the directory that holds config.json"
    owner = directory.parent
    beside = (
        sorted(entry.name for entry in owner.iterdir() if entry.is_dir()) if owner.is_dir() and os.access(owner, os.R_OK) else []
    )
    found = f"; {owner} holds {', '.join(beside)}" if beside else ""
    return (
        f"model {model_id!r}: {directory} is no directory{found}. Download it there "
        f"(hf download {model_id} --local-dir {directory}), or point the option for the root of the models elsewhere"
    )


def _problems_of_config(path: Path) -> list[str]:
    config, problems = _read_object(path, advice="download the model again")
    if config is not None and not isinstance(config.get("model_type"), str):
        problems.append(f"{path} names no model_type; it is not the configuration of a model")
    return problems


def _problems_of_weight(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except FileNotFoundError:
        return [f"{path} is a link to a file that is gone; download the model again"]
    except OSError as error:
        return [f"{path} cannot be read ({error.strerror}); give the user of this process read access"]
    if not start:
        return [f"{path} is empty; download the model again"]
    if start.startswith(b"version https://git-lfs"):
        return [f"{path} is a pointer of Git LFS, not the weights; run `git lfs pull` in {path.parent}"]
    return []


def _problems_of_index(path: Path) -> list[str]:
    index, problems = _read_object(path, advice="download the model again")
    if index is None:
        return problems
    shards = index.get("weight_map")
    if not isinstance(shards, dict) or not shards or not all(isinstance(shard, str) for shard in shards.values()):
        return [f"{path} has no weight_map from tensors to files; download the model again"]
    named = sorted(set(shards.values()))
    missing = [name for name in named if not (path.parent / name).exists()]
    if missing:
        return [
            (
                f"{path} names {len(named)} weight files, of which {len(missing)} are missing: {', '.join(missing)}; "
                "download the model again"
            )
        ]
    return []


def _read_object(path: Path, *, advice: str) -> tuple[dict[str, Any] | None, list[str]]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None, [f"{path} is missing; {advice}"]
    except OSError as error:
        return None, [f"{path} cannot be read ({error.strerror}); give the user of this process read access"]
    except ValueError as error:
        return None, [f"{path} is not JSON ({error}); {advice}"]
    if not isinstance(value, dict):
        return None, [f"{path} holds no JSON object; {advice}"]
    return value, []
