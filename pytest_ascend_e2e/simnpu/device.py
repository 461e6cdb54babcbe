"""The identifier of the one device of a process.

Must not know: torch.
"""

from __future__ import annotations


class DeviceId(str):
    """The text `cpu`, which formats as `0`.

    verl takes a device's index and uses it in two ways: `tensor.to(index)`, which must mean the CPU and not device 0 of an
    accelerator that torch cannot find, and `f"cpu:{index}"`, which must stay a device string that torch accepts.
    """

    __slots__ = ()

    def __format__(self, _spec: str) -> str:
        return "0"

    def __int__(self) -> int:
        return 0

    def __index__(self) -> int:
        return 0


CURRENT = DeviceId("cpu")
