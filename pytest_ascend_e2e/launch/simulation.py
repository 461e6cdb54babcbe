"""What a training on simulated NPUs needs beyond its recipe: overrides of verl's configuration, and the environment.

Must not know: recipes, or how an override or a command is written. Pure data; no process is started here.

Where the time goes (verl 0.9.1, 2 devices, GRPO with a reference model): a tiny model computes for two seconds, a process that
imports torch, transformers, vLLM and verl for ten. verl's defaults make 36 such processes; the settings here, and two patches in
`simnpu.patches` (vLLM's engine forked from its server, its single worker run inside the engine), leave 11: driver, task runner,
two of TransferQueue, one trainer and one vLLM server per device, load balancer, reward worker, agent loop. They are forked from
one process that has most of the imports done (`simnpu.forkserver`).
"""

from __future__ import annotations

from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "simnpu" / "site"


def simulation_overrides(devices: int) -> dict[str, object]:
    """Return nested overrides in verl's own key names for `devices` simulated NPUs; a leading `+` is Hydra's append.

    They win over a recipe's own: each of them is a limit of the CPU or a cost without a use, and none changes the algorithm.
    """
    return {
        # A data loader's worker is a process with an import of its own, for rows that are already in memory.
        "data": {"dataloader_num_workers": 0},
        "trainer": {"device": "cpu"},
        # Eight by default, as are the agent's workers below: processes that import everything and then wait for one another.
        "reward": {"num_workers": 1},
        # The default, 8, is 8 processes that import torch.
        "transfer_queue": {"backend": {"SimpleStorage": {"num_data_storage_units": 1}}},
        "ray_kwargs": {
            "ray_init": {
                # Slots, not cores: a placement bundle takes 3 for a device, the other actors one each.
                "num_cpus": 6 + 4 * devices,
                "+resources": {"NPU": devices},
                "+include_dashboard": False,
            }
        },
        "actor_rollout_ref": {
            "model": {
                # The packed path needs the flash attention of a device.
                "use_remove_padding": False,
                "+override_config": {"attn_implementation": "sdpa"},
            },
            "actor": {"use_torch_compile": False, "fsdp_config": _float32()},
            "ref": {"use_torch_compile": False, "fsdp_config": _float32()},
            "rollout": {
                # As the trainer: rollout and training probabilities agree to seven digits, so that a real difference stands out.
                "dtype": "float32",
                # Weights are read from disk, not awaited as dummies: the first rollout is from the model that was given.
                "load_format": "auto",
                "enforce_eager": True,
                # A share of the host's memory; the size of the cache itself is VLLM_CPU_KVCACHE_SPACE.
                "gpu_memory_utilization": 0.1,
                # vLLM's CPU backend cannot sleep, so its cache and weights stay.
                "free_cache_engine": False,
                "+enable_sleep_mode": False,
                "agent": {"num_workers": 1},
            },
        },
        "critic": {"model": {"use_remove_padding": False}, "fsdp": _float32()},
    }


def _float32() -> dict[str, object]:
    """Return the precision of a training engine: verl's own default computes in bfloat16, whatever the weights are."""
    return {"mixed_precision": {"+param_dtype": "fp32", "+reduce_dtype": "fp32", "+buffer_dtype": "fp32"}}


def simulation_env() -> dict[str, str]:
    """Return the environment variables of a simulated run; PYTHONPATH holds the one entry that must come first on it."""
    return {
        # Patches what the CPU builds lack, in every process, before its first import.
        "PYTHONPATH": str(SITE),
        # Registers the platform with verl; `cpu` is its name there.
        "VERL_USE_EXTERNAL_MODULES": "pytest_ascend_e2e.simnpu.activate",
        "VERL_PLATFORM": "cpu",
        # The training engine that verl uses on an NPU; it has none for a CPU.
        "VERL_ENGINE_DEVICE": "npu",
        # Tiny models lie on disk: a look-up would only wait for a network.
        "HF_HUB_OFFLINE": "1",
        # In GiB, per server: far more than a tiny model fills, and touched only where it is used.
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # Several servers share the cores, so none may claim some for itself; with one thread there is also no pool of threads,
        # and vLLM's engine can be forked.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        # A compiler run for a model of a few thousand parameters costs more than all its steps.
        "TORCHDYNAMO_DISABLE": "1",
        # Ray gives its workers the lowest priority but four (15): beside anything else on the machine they starve.
        "RAY_worker_niceness": "0",
        # Ray waits 30 s for its own node to start, too short for a loaded machine.
        "RAY_raylet_start_wait_time_s": "180",
        "RAY_worker_register_timeout_seconds": "300",
        # Ray starts idle workers ahead, which verl's actors cannot use: theirs have an environment of their own.
        "RAY_prestart_worker_first_driver": "0",
        # The default since Ray 2.60, said so that it is no warning at the head of every log.
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_enable_metrics_collection": "0",
    }
