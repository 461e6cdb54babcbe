"""The simulated NPU in a real Python process: its start by sitecustomize, and verl's platform with the real verl and torch."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.launch.simulation import simulation_env

needs_verl = pytest.mark.skipif(
    importlib.util.find_spec("verl") is None,
    reason="needs verl: install requirements/sim.txt with pip install --no-deps -r",
)


def run_child(code: str, *, env: dict[str, str] | None = None, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python with the environment of a simulated run; `path` goes behind its entry on PYTHONPATH."""
    simulated = simulation_env()
    if path:
        simulated["PYTHONPATH"] += os.pathsep + path
    command = [sys.executable, "-c", code]
    full = {**os.environ, **simulated, **(env or {})}
    return subprocess.run(command, env=full, capture_output=True, text=True, timeout=300, check=False)


def told_by_child(code: str, **options: Any) -> dict[str, Any]:
    child = run_child(f"import json\n{code}\nprint(json.dumps(told))", **options)
    assert child.returncode == 0, child.stderr
    told: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return told


def test_every_process_starts_with_the_patches_and_without_anything_heavy() -> None:
    told = told_by_child(
        "import sys\n"
        "from pytest_ascend_e2e.simnpu.patches import is_installed\n"
        "told = {'installed': is_installed(), 'heavy': [n for n in ('torch', 'ray', 'verl', 'vllm', 'pytest') if n in sys.modules]}"
    )

    assert told == {"installed": True, "heavy": []}


def test_a_sitecustomize_further_down_the_path_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['HIDDEN_ONE'] = 'ran'\n", encoding="utf-8")

    told = told_by_child("import os\ntold = {'hidden': os.environ.get('HIDDEN_ONE')}", path=str(tmp_path))

    assert told == {"hidden": "ran"}


@needs_verl
def test_verl_without_the_patches_is_refused_with_what_to_do() -> None:
    child = run_child("import verl", env={"PYTHONPATH": str(Path(__file__).parents[2])})

    assert child.returncode == 1
    assert "simnpu/site must stand first on PYTHONPATH" in child.stderr


@needs_verl
def test_verl_sees_one_npu_that_is_the_cpu() -> None:
    told = told_by_child(
        "import torch\n"
        "from verl.utils import device\n"
        "from verl.plugin.platform import get_platform\n"
        "index = device.get_device_id()\n"
        "told = {'name': device.get_device_name(), 'resource': device.get_resource_name(), 'backend': device.get_nccl_backend(),\n"
        "        'options': get_platform().ray_resource_options(1), 'moved': str(torch.zeros(1).to(index).device),\n"
        "        'named': torch.zeros(1, device=f'{device.get_device_name()}:{index}').device.type}"
    )

    assert told == {
        "name": "cpu",
        "resource": "NPU",
        "backend": "gloo",
        "options": {"resources": {"NPU": 1}},
        "moved": "cpu",
        "named": "cpu",
    }


@needs_verl
def test_memory_figures_follow_the_process() -> None:
    told = told_by_child(
        "import torch\n"
        "from verl.utils.device import get_torch_device\n"
        "npu = get_torch_device()\n"
        "before = npu.memory_allocated()\n"
        "block = torch.ones(32, 1024, 1024)\n"
        "held = npu.memory_allocated()\n"
        "del block\n"
        "told = {'growth_mb': (held - before) >> 20, 'peak_below_mb': (held - npu.max_memory_allocated()) / 2**20,\n"
        "        'total_is_more': npu.mem_get_info()[1] > held}"
    )

    assert told["growth_mb"] >= 120
    assert told["peak_below_mb"] <= 1  # the kernel notes a peak when memory is given back, some pages late
    assert told["total_is_more"]


@needs_verl
def test_what_the_cpu_builds_lack_is_there() -> None:
    told = told_by_child(
        "import importlib.metadata, torch, torchvision\n"
        "from torch.distributed import destroy_process_group, init_process_group\n"
        "init_process_group('cpu:gloo,cpu:gloo', store=torch.distributed.HashStore(), rank=0, world_size=1)\n"
        "destroy_process_group()\n"
        "tensor = torch.zeros(1)\n"
        "told = {'pinned': tensor.pin_memory() is tensor, 'vllm': importlib.metadata.version('vllm').endswith('+cpu')}"
    )

    assert told == {"pinned": True, "vllm": True}


@needs_verl
def test_vllm_keeps_weights_and_forks_its_engine() -> None:
    told = told_by_child(
        "import torch\n"
        "from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm\n"
        "from vllm.utils.system_utils import get_mp_context\n"
        "layer = torch.nn.Linear(64, 64, bias=False)\n"
        "weight = layer.weight\n"
        "dispatch_cpu_unquantized_gemm(layer, remove_weight=True)\n"
        "x = torch.ones(1, 64)\n"
        "told = {'kept': layer.weight is weight, 'same': bool(torch.equal(layer.cpu_linear(x, layer.weight, None), layer(x))),\n"
        "        'method': get_mp_context().get_start_method()}"
    )

    assert told == {"kept": True, "same": True, "method": "fork"}
