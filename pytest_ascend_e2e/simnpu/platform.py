"""verl's platform of the simulated NPU.

To verl it is a device named `cpu` whose workers Ray places by its resource NPU, as on Ascend. Source of the interface:
`verl/plugin/platform/platform_base.py`, verl 0.9.1.

Must not know: who registers it, or what is patched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from verl.plugin.platform import PlatformBase

from .accelerator import Accelerator
from .device import CURRENT, DeviceId

NAME = "cpu"


class SimulatedNpu(PlatformBase):  # type: ignore[misc]  # verl carries no types
    """One simulated NPU in each process; collectives go over gloo."""

    def __init__(self) -> None:
        self._accelerator = Accelerator("simulated_npu")

    @property
    def device_name(self) -> str:
        """`cpu`: where torch puts the tensors."""
        return "cpu"

    @property
    def vendor_name(self) -> str:
        """`cpu`: no vendor's engine is to be chosen by it."""
        return "cpu"

    @property
    def device_module(self) -> Accelerator:
        """What stands for `torch.npu`."""
        return self._accelerator

    def is_available(self) -> bool:
        """Tell that the device is usable: it always is."""
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:  # noqa: ARG002  # verl's signature
        """Refuse auto-detection: a simulation is asked for by VERL_PLATFORM, never found."""
        return False

    def current_device(self) -> DeviceId:
        """Return the one device."""
        return CURRENT

    def device_count(self) -> int:
        """Return 1: Ray gives each worker one device."""
        return self._accelerator.device_count()

    def set_device(self, device_index: int) -> None:
        """Do nothing: there is one device."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Do nothing: a CPU's work is done when the call returns."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Do nothing: the host's allocator has no segments to expand."""

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:  # noqa: ARG002  # verl's signature
        """Return no capability, as verl's platform for NPUs does."""
        return (None, None)

    def communication_backend_name(self) -> str:
        """`gloo`, in the place of HCCL."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """Return the variable by which Ray tells a worker its NPUs."""
        return "ASCEND_RT_VISIBLE_DEVICES"

    def ray_resource_name(self) -> str:
        """`NPU`, so that placement is the one of Ascend."""
        return "NPU"

    def ray_noset_envvars(self) -> list[str]:
        """Return the variable by which Ray is asked to leave the visible devices alone."""
        return ["RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        """Refuse device handles: weights go to the rollout through shared memory, as on most NPUs."""
        return False

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # noqa: ARG002  # verl's signature
        """Do nothing around the block: there is no profiler of a device."""
        yield

    def profiler_start(self) -> None:
        """Do nothing: there is no profiler of a device."""

    def profiler_stop(self) -> None:
        """Do nothing: there is no profiler of a device."""

    def cudart(self) -> None:
        """Return None: there is no CUDA runtime."""
