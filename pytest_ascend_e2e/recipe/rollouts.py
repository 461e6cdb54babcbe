"""The rollout engines a recipe can ask for.

Must not know: the training engine, or how a field becomes an override (`settings.py`). A field is checked by the Recipe that holds
the rollout. Defaults are verl's, but for `tp`: verl's is 2, here a replica has one device until a recipe says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from .arguments import told_arguments
from .checking import FieldChecks

DTYPES = ("bfloat16", "float16", "float32")


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutEngine:
    """What both rollout engines have.

    `n` is the number of responses to a prompt; a replica holds `tp * dp` devices. `calculate_log_probs` makes verl print how far
    the rollout's probabilities are from the training's. `engine_kwargs` goes to the engine as it is.
    """

    name: ClassVar[str]

    n: int = 1
    tp: int = 1
    dp: int = 1
    ep: int = 1
    gpu_memory_utilization: float = 0.5
    dtype: str = "bfloat16"
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_model_len: int | None = None
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    enforce_eager: bool = False
    enable_chunked_prefill: bool = True
    enable_prefix_caching: bool = True
    calculate_log_probs: bool = True
    engine_kwargs: Mapping[str, object] = field(default_factory=dict)

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        for name in ("n", "tp", "dp", "ep", "max_num_batched_tokens", "max_num_seqs"):
            checks.size(name, getattr(self, name))
        checks.size("max_model_len", self.max_model_len, optional=True)
        checks.number("gpu_memory_utilization", self.gpu_memory_utilization, above=0, most=1)
        checks.choice("dtype", self.dtype, DTYPES)
        checks.number("temperature", self.temperature, least=0)
        checks.number("top_p", self.top_p, above=0, most=1)
        if self.top_k != -1 or isinstance(self.top_k, bool):
            checks.size("top_k", self.top_k)
        for name in ("enforce_eager", "enable_chunked_prefill", "enable_prefix_caching", "calculate_log_probs"):
            checks.boolean(name, getattr(self, name))
        checks.mapping("engine_kwargs", self.engine_kwargs)


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class Vllm(RolloutEngine):
    """vLLM (on NPUs with vllm-ascend)."""

    name: ClassVar[str] = "vllm"


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class Sglang(RolloutEngine):
    """SGLang; on NPUs its `attention_backend` must be `ascend`, since verl picks a CUDA one where none is given."""

    name: ClassVar[str] = "sglang"

    attention_backend: str = "ascend"

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        RolloutEngine.check_into(self, checks)
        checks.text("attention_backend", self.attention_backend, "ascend")


Rollout: TypeAlias = Vllm | Sglang
