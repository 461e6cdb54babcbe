"""What a training on simulated NPUs needs beyond its recipe: overrides of verl's configuration, and the environment.

Must not know: recipes, or how an override or a command is written. Pure data; no process is started here.
"""

from __future__ import annotations

from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "simnpu" / "site"


def simulation_overrides(devices: int) -> dict[str, object]:
    """Return nested overrides in verl's own key names for `devices` simulated NPUs; a leading `+` is Hydra's append.

    They win over a recipe's own, as each of them is a limit of the CPU or of tiny models and none changes the algorithm.
    """
    return {
        "data": {"dataloader_num_workers": 0},
        "trainer": {"device": "cpu"},
        "reward": {"num_workers": 1},
        "transfer_queue": {"backend": {"SimpleStorage": {"num_data_storage_units": 1}}},
        "ray_kwargs": {
            "ray_init": {
                "num_cpus": 6 + 4 * devices,
                "+resources": {"NPU": devices},
                "+include_dashboard": False,
            }
        },
        "actor_rollout_ref": {
            "model": {"use_remove_padding": False, "+override_config": {"attn_implementation": "sdpa"}},
            "actor": {"use_torch_compile": False, "fsdp_config": _float32()},
            "ref": {"fsdp_config": _float32()},
            "rollout": {
                "dtype": "float32",
                "load_format": "auto",
                "enforce_eager": True,
                "gpu_memory_utilization": 0.1,
                "free_cache_engine": False,
                "+enable_sleep_mode": False,
                "agent": {"num_workers": 1},
            },
        },
        "critic": {"fsdp": _float32()},
    }


def _float32() -> dict[str, object]:
    """Return the precision of a training engine that agrees with the rollout's: verl's default computes in bfloat16."""
    return {"mixed_precision": {"+param_dtype": "fp32", "+reduce_dtype": "fp32", "+buffer_dtype": "fp32"}}


def simulation_env() -> dict[str, str]:
    """Return the environment variables of a simulated run; PYTHONPATH holds the one entry that must come first on it."""
    return {
        "PYTHONPATH": str(SITE),
        "VERL_USE_EXTERNAL_MODULES": "pytest_ascend_e2e.simnpu.activate",
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "npu",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
    }
