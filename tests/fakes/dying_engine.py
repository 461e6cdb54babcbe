"""Makes vLLM's workers fail in the middle of a training: verl loads it as one of VERL_USE_EXTERNAL_MODULES.

An engine whose worker raised is dead, and verl's trainer waits for its answers for ever.
"""

from __future__ import annotations

import itertools
import sys
from types import ModuleType
from typing import Any

from pytest_ascend_e2e.simnpu.imports import act_after_imports

MODULE = "vllm.v1.worker.gpu_worker"
MESSAGE = "the attention kernel lost its workspace"
# One call generates one token of every response: the third step or so of the recipe of the tests.
CALLS = 120


def break_worker(module: ModuleType) -> None:
    """Let the worker fail after `CALLS` calls."""
    worker: Any = module.__dict__["Worker"]
    original = worker.execute_model
    calls = itertools.count(1)

    def execute_model(self: Any, *args: Any, **kwargs: Any) -> Any:
        if next(calls) > CALLS:
            raise RuntimeError(MESSAGE)
        return original(self, *args, **kwargs)

    worker.execute_model = execute_model


if MODULE in sys.modules:
    break_worker(sys.modules[MODULE])
else:
    act_after_imports({MODULE: break_worker})
