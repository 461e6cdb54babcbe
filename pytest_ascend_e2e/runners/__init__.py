"""Runners: which kinds of machine there are, which devices this host has, and who holds them."""

from .catalogue import Catalogue, Runner, load_catalogue
from .devices import MASK, Device, FoundDevices, devices_of, find_devices, pick_runner, read_npu_smi
from .leases import DevicePool, Lease, Slot, Survey, simulated_slots, survey
from .locks import DEFAULT_LOCK_DIR, Holder, LockDirectory
from .npu_smi import NpuDevice, NpuProcess, NpuSmi, parse_npu_smi
from .occupancy import occupation, occupied_devices
from .ports import PortLease, PortPool
from .waiting import Waiting

__all__ = [
    "DEFAULT_LOCK_DIR",
    "MASK",
    "Catalogue",
    "Device",
    "DevicePool",
    "FoundDevices",
    "Holder",
    "Lease",
    "LockDirectory",
    "NpuDevice",
    "NpuProcess",
    "NpuSmi",
    "PortLease",
    "PortPool",
    "Runner",
    "Slot",
    "Survey",
    "Waiting",
    "devices_of",
    "find_devices",
    "load_catalogue",
    "occupation",
    "occupied_devices",
    "parse_npu_smi",
    "pick_runner",
    "read_npu_smi",
    "simulated_slots",
    "survey",
]
