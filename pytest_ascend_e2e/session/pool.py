"""The devices of this host as a training leases them: simulated ones, or those that npu-smi shows and nobody uses.

Must not know: who asks, or for how many.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from ..runners import DevicePool, LockDirectory, find_devices, occupied_devices, simulated_slots


def device_pool(environ: Mapping[str, str], lock_dir: Path, *, simulated: int | None) -> DevicePool:
    """Return the pool of this host; `simulated` is how many devices a simulated host has, None for a real one.

    Raises:
        RunnerError: the devices of a real host cannot be found.
    """
    locks = LockDirectory(lock_dir)
    if simulated is not None:
        return DevicePool(slots=simulated_slots(simulated), locks=locks, occupied=None)
    return DevicePool(slots=find_devices(environ).slots, locks=locks, occupied=functools.partial(occupied_devices, environ))
