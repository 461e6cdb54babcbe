"""A made-up NPU host: two devices by a fake npu-smi, one model, gsm8k, and a training environment whose trainer is a fake."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FAKES = Path(__file__).parent

RUNNERS = """
schema: 1
runners:
  toy-2:
    devices: 2
    chip: Ascend910B
    dies_per_card: 1
    memory_gb: 64
    ci_label: linux-aarch64-toy-2
    cpus: 8
    host_memory_gb: 64
  toy-4:
    devices: 4
    chip: Ascend910B
    dies_per_card: 1
    memory_gb: 64
    ci_label: linux-aarch64-toy-4
    cpus: 8
    host_memory_gb: 64
"""

# What a file of cases begins with.
HEADER = """
from pytest_ascend_e2e import FSDP2, GRPO, Recipe, Vllm, npu_e2e, npu_nightly


def recipe(steps=10, **more):
    return Recipe(
        **{
            "algorithm": GRPO(use_kl_loss=True, kl_loss_coef=0.01),
            "model": "acme/tiny",
            "dataset": "gsm8k",
            "engine": FSDP2(),
            "rollout": Vllm(tp=1, n=4),
            "train_batch_size": 8,
            "max_prompt_length": 128,
            "max_response_length": 64,
            "steps": steps,
            **more,
        }
    )

"""


@dataclass(frozen=True, kw_only=True)
class NpuHost:
    """Where it lies, the ini file of a session on it, and the variables that such a session has, or must not have."""

    root: Path
    ini: str
    variables: Mapping[str, str]
    unset: Sequence[str] = tuple(
        spelled
        for name in ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_TOOLKIT_HOME", "http_proxy", "https_proxy", "all_proxy")
        for spelled in (name, name.upper())
    )


def make_npu_host(root: Path, *, answers: Path | None = None) -> NpuHost:
    """Make the host below a directory that is there; `answers` is where hosts share what verl composed."""
    answers = answers or root / "answers"
    answers.mkdir(exist_ok=True)
    python = root / "python"
    text = (FAKES / "python_without_verl.sh").read_text()
    for word, meaning in (("REAL_PYTHON", sys.executable), ("FAKES", FAKES), ("ANSWERS", answers), ("ROOT", root)):
        text = text.replace(f"@{word}@", str(meaning))
    python.write_text(text)
    python.chmod(0o755)
    model = root / "models" / "acme" / "tiny"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}')
    (model / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    raw = root / "datasets" / "openai" / "gsm8k" / "main"
    raw.mkdir(parents=True)
    rows = [{"question": f"What is {n} plus {n}?", "answer": f"{n} + {n} = {2 * n}\n#### {2 * n}"} for n in range(64)]
    for split in ("train", "test"):
        pq.write_table(pa.Table.from_pylist(rows), raw / f"{split}-00000-of-00001.parquet")
    (root / "runners.yaml").write_text(RUNNERS)
    tools = root / "bin"
    tools.mkdir()
    shutil.copy(FAKES / "npu_smi_two_devices.sh", tools / "npu-smi")
    settings = {
        "run_root": "runs", "cache_root": root / "cache", "models_root": root / "models", "datasets_root": root / "datasets",
        "lock_dir": root / "locks", "runners_file": root / "runners.yaml", "python": python, "lease_timeout": "60s",
    }  # fmt: skip
    lines = [f"e2e_{name} = {value}" for name, value in settings.items()]
    ini = "\n".join(["[pytest]", "addopts = --strict-markers", "filterwarnings = error", *lines])
    return NpuHost(root=root, ini=ini, variables={"PATH": f"{tools}:/usr/bin:/bin", **_install_ascend(root)})


def _install_ascend(root: Path) -> dict[str, str]:
    """Let the host have what the preflight looks for: a CANN toolkit, and torch_npu of this torch as far as its metadata goes."""
    (root / "cann").mkdir()
    (root / "cann" / "version.cfg").write_text("runtime_running_version=[8.3.0.1:8.3.RC1]\n")
    version = importlib.metadata.version("torch").partition("+")[0]
    metadata = root / "site" / f"torch_npu-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch-npu\nVersion: {version}\n")
    places = [str(root / "site"), os.environ.get("PYTHONPATH", "")]
    return {"ASCEND_HOME_PATH": str(root / "cann"), "PYTHONPATH": os.pathsep.join(filter(None, places))}
