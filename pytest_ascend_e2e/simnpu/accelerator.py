"""The module that stands where `torch.npu` stands: torch.cpu, plus the calls verl makes on a device's module.

The device's memory is the process's memory: allocated and reserved are its resident set, the peak is the kernel's own
high-water mark since the last reset, free and total are the host's. So memory metrics of a simulated run are real figures.

Must not know: verl.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import torch

DEVICE_NAME = "simulated NPU (CPU)"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceProperties:
    """What `get_device_properties` tells about the one device of a process: its name, and its memory in bytes."""

    name: str
    total_memory: int


class Accelerator(ModuleType):
    """A device module in the sense of torch (`torch.cuda`, `torch.npu`); what is not defined here is asked of `torch.cpu`.

    The optional `device` of every call is accepted and ignored, as there is one device in a process.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(torch.cpu, name)

    def is_available(self) -> bool:
        """Tell that the device is there: it always is."""
        return True

    def device_count(self) -> int:
        """Return 1: Ray gives each worker one device, as on NPUs."""
        return 1

    def memory_allocated(self, _device: object = None) -> int:
        """Return the resident set of this process in bytes."""
        return int(psutil.Process().memory_info().rss)

    def memory_reserved(self, _device: object = None) -> int:
        """Return the resident set of this process in bytes: no cache of ours stands between the process and the host."""
        return self.memory_allocated()

    def max_memory_allocated(self, _device: object = None) -> int:
        """Return the largest resident set of this process in bytes since the last reset, or since its start."""
        return max(_peak_resident_bytes(), self.memory_allocated())

    def max_memory_reserved(self, _device: object = None) -> int:
        """Return the same as `max_memory_allocated`."""
        return self.max_memory_allocated()

    def reset_peak_memory_stats(self, _device: object = None) -> None:
        """Let the kernel count the peak from now on."""
        # A container may forbid it; the peak then counts from the start of the process, still a true figure.
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def reset_accumulated_memory_stats(self, _device: object = None) -> None:
        """Do nothing: no accumulated figure is kept."""

    def mem_get_info(self, _device: object = None) -> tuple[int, int]:
        """Return the free and the total memory of the host in bytes."""
        memory = psutil.virtual_memory()
        return int(memory.available), int(memory.total)

    def empty_cache(self) -> None:
        """Do nothing: there is no cache."""

    def ipc_collect(self) -> None:
        """Do nothing: no memory is shared by device handles."""

    def set_per_process_memory_fraction(self, _fraction: float, _device: object = None) -> None:
        """Do nothing: the host's memory has no share per process."""

    def get_device_name(self, _device: object = None) -> str:
        """Return a name that no real device has."""
        return DEVICE_NAME

    def get_device_properties(self, _device: object = None) -> DeviceProperties:
        """Return name and total memory."""
        return DeviceProperties(name=DEVICE_NAME, total_memory=self.mem_get_info()[1])

    def manual_seed(self, seed: int) -> None:
        """Seed the generator of torch."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generator of torch."""
        torch.manual_seed(seed)

    def get_rng_state(self, _device: object = None) -> torch.Tensor:
        """Return the state of torch's generator."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, _device: object = None) -> None:
        """Set the state of torch's generator."""
        torch.set_rng_state(state)


def _peak_resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
