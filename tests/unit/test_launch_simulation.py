"""The overrides and the environment of a simulated run: their shape, and the rules that other rooms rely on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pytest_ascend_e2e.launch import simulation
from pytest_ascend_e2e.launch.simulation import simulation_env, simulation_overrides


def leaves(tree: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_ray_offers_as_many_npus_as_the_runner_has(devices: int) -> None:
    found = dict(leaves(simulation_overrides(devices)))

    assert found["ray_kwargs", "ray_init", "+resources", "NPU"] == devices


@pytest.mark.parametrize("devices", [1, 2, 4, 16])
def test_ray_has_slots_for_every_placement_bundle_and_the_other_actors(devices: int) -> None:
    bundle = 3  # verl's ResourcePoolManager: max_colocate_count
    others = 4  # task runner, TransferQueue's controller, its storage unit, one to spare for what Ray starts itself

    found = dict(leaves(simulation_overrides(devices)))
    slots = found["ray_kwargs", "ray_init", "num_cpus"]

    assert isinstance(slots, int)
    assert slots >= bundle * devices + others


def test_every_value_is_plain() -> None:
    plain = (str, int, float, bool)

    assert all(isinstance(value, plain) for _, value in leaves(simulation_overrides(2)))


def test_rollout_and_training_compute_in_the_same_type() -> None:
    found = dict(leaves(simulation_overrides(2)))

    assert found["actor_rollout_ref", "rollout", "dtype"] == "float32"


def test_each_call_returns_data_of_its_own() -> None:
    changed = simulation_overrides(2)
    changed["trainer"] = {"device": "npu"}

    assert simulation_overrides(2)["trainer"] == {"device": "cpu"}


def test_the_path_entry_holds_nothing_but_sitecustomize() -> None:
    entry = Path(simulation_env()["PYTHONPATH"])

    assert [path.name for path in entry.iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]


def test_the_module_that_verl_is_told_to_import_exists() -> None:
    package, _, module = simulation_env()["VERL_USE_EXTERNAL_MODULES"].rpartition(".")
    root = Path(simulation.__file__).parents[2]

    assert (root / package.replace(".", "/") / f"{module}.py").is_file()


def test_no_variable_is_empty() -> None:
    assert all(simulation_env().values())
