"""Asks megatron-core which layouts it can form: a program for a child process, as it loads torch.

On stdin a JSON list of layouts (`{"world": 16, "tp": 2, ..., "etp": null, "vpp": null}`); on stdout, for each, the data parallel
sizes of the dense part and of the experts, or the text with which megatron-core refuses it. Groups are real ones of torch's `fake`
backend, which has as many ranks as one likes and talks to none.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
import types
from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore


def parallel_state() -> Any:
    """Return `megatron.core.parallel_state` without the package around it, whose own start imports every layer it has."""
    spec = importlib.util.find_spec("megatron")
    if spec is None or spec.submodule_search_locations is None:
        sys.exit("megatron-core is not installed: requirements/install.sh puts it into the directory megatron of the environment")
    core = types.ModuleType("megatron.core")
    core.__path__ = [f"{place}/core" for place in spec.submodule_search_locations]
    sys.modules["megatron.core"] = core
    from megatron.core import parallel_state as module  # noqa: PLC0415  # needs the bare package

    # Asked for each group, and a third of all time.
    module.is_torch_min_version = functools.cache(module.is_torch_min_version)
    return module


def verdict(state: Any, layout: Mapping[str, int | None]) -> list[int] | str:
    """Return the data parallel sizes that megatron-core makes of a layout, or why it makes none."""
    dist.init_process_group("fake", rank=0, world_size=layout["world"], store=FakeStore())
    try:
        # As verl calls it; but for the gloo twins of groups, which the fake backend does not have.
        state.initialize_model_parallel(
            tensor_model_parallel_size=layout["tp"],
            pipeline_model_parallel_size=layout["pp"],
            virtual_pipeline_model_parallel_size=layout["vpp"],
            context_parallel_size=layout["cp"],
            expert_model_parallel_size=layout["ep"],
            expert_tensor_parallel_size=layout["etp"],
            create_gloo_process_groups=False,
        )
        return [state.get_data_parallel_world_size(), state.get_expert_data_parallel_world_size()]
    except (RuntimeError, AssertionError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        state.destroy_model_parallel()
        dist.destroy_process_group()


if __name__ == "__main__":
    megatron = parallel_state()
    json.dump([verdict(megatron, layout) for layout in json.load(sys.stdin)], sys.stdout)
