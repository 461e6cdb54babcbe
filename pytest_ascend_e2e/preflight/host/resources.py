"""Checks on what a host gives a training besides devices: disk, home, shared memory, file limits, a way to itself.

Must not know: Ascend's software.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from .facts import Host, HostFinding

GB = 2**30
# A log, metrics and a composed configuration fit into less; a checkpoint of a model of some billion parameters does not.
LEAST_DISK_GB = 2
USUAL_DISK_GB = 50
# Docker gives a container 64 MB. A data loader's worker dies of a bus error there, and Ray moves its object store to the disk.
LEAST_SHARED_GB = 1
USUAL_SHARED_GB = 16  # the least that one of verl's own Ascend jobs asks for
# Below 8192 Ray itself warns of connections that fail.
LEAST_OPEN_FILES = 1024
USUAL_OPEN_FILES = 8192
_LOOPBACK = ("127.0.0.1", "localhost")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def places(host: Host) -> Iterator[HostFinding]:
    """Yield each directory of a session that cannot be written to, or whose disk is full."""
    told: set[int] = set()  # one disk is told once
    for purpose, path in host.places.items():
        there = nearest_there(path)
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            remedy = f"make {there} writable for this user, or choose another directory"
            yield HostFinding(check="host.writable", text=f"{path} ({purpose}) cannot be written to", remedy=remedy)
            continue
        free_gb, disk = shutil.disk_usage(there).free / GB, there.stat().st_dev
        is_error = free_gb < LEAST_DISK_GB
        if disk in told or not (is_error or (free_gb < USUAL_DISK_GB and not host.simulated)):
            continue
        told.add(disk)
        yield HostFinding(
            check="host.disk",
            text=f"{path} ({purpose}) has {free_gb:.1f} GB of disk left, {LEAST_DISK_GB} GB is the least, {USUAL_DISK_GB} is usual",
            remedy="remove old run directories and checkpoints, or choose another disk",
            is_error=is_error,
        )


def home(host: Host) -> Iterator[HostFinding]:
    """Yield where the home directory is no place to write: CANN, torch and Ray keep logs and compiled kernels there."""
    name = host.environ.get("HOME")
    if name and os.access(name, os.W_OK | os.X_OK):
        return
    text = f"the home directory HOME={name!r} cannot be written to" if name else "HOME is not set"
    remedy = "set HOME to a directory of this user that can be written to, such as HOME=/tmp/home"
    yield HostFinding(check="host.home", text=text, remedy=remedy)


def shared_memory(host: Host) -> Iterator[HostFinding]:
    """Yield where shared memory is missing or too small, which on simulated NPUs is only slow."""
    path = host.shared_memory
    remedy = "start the container with more of it (docker --shm-size=16g), or remove what ended programs left there"
    if not path.is_dir():
        yield HostFinding(check="host.shared-memory", text=f"{path} is not there", remedy=remedy)
        return
    free_gb = shutil.disk_usage(path).free / GB
    wanted_gb = LEAST_SHARED_GB if host.simulated else USUAL_SHARED_GB
    if free_gb < wanted_gb:
        yield HostFinding(
            check="host.shared-memory",
            text=f"{path} has {free_gb:.2f} GB left, {LEAST_SHARED_GB} GB is the least on NPUs, {USUAL_SHARED_GB} is usual",
            remedy=remedy,
            is_error=free_gb < LEAST_SHARED_GB and not host.simulated,
        )


def file_limit(host: Host) -> Iterator[HostFinding]:
    """Yield where a process may open too few files for Ray's connections."""
    limit = host.open_files
    if limit < USUAL_OPEN_FILES:
        yield HostFinding(
            check="host.open-files",
            text=f"a process may open {limit} files (hard limit), Ray wants {USUAL_OPEN_FILES}",
            remedy=f"raise it: ulimit -n {USUAL_OPEN_FILES} as root, or docker --ulimit nofile=65536:65536",
            is_error=limit < LEAST_OPEN_FILES,
        )


def loopback(host: Host) -> Iterator[HostFinding]:
    """Yield where a proxy stands between the processes of one training: its servers are asked by HTTP on this host."""
    environ = host.environ
    set_by = next((name for key in _PROXIES for name in (key, key.upper()) if environ.get(name)), None)
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    caught = [name for name in _LOOPBACK if not _is_exempt(name, exempt)]
    if set_by is not None and caught:
        yield HostFinding(
            check="host.proxy",
            text=f"{set_by} sends requests to {' and '.join(caught)} to a proxy: no_proxy is {exempt!r}",
            remedy=f"add them: export no_proxy={','.join(filter(None, (exempt, *caught)))}",
        )


def _is_exempt(name: str, exempt: str) -> bool:
    """Tell whether a list such as `localhost,127.0.0.0/8` names a host."""
    entries = [entry.strip() for entry in exempt.split(",")]
    if "*" in entries or name in entries:
        return True
    networks = [network for network in map(_network, entries) if network is not None]
    return name[0].isdigit() and any(ipaddress.IPv4Address(name) in network for network in networks)


def _network(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return None


def nearest_there(path: Path) -> Path:
    """Return a directory, or the nearest one above it that is there as far as this user can see."""
    # Path.exists() raises where a directory above cannot be entered.
    return next(place for place in (path, *path.parents) if os.path.exists(place))  # noqa: PTH110
