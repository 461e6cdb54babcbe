"""Checks on Ascend's software: found at all, and of versions that belong together.

Known from files and from the metadata of packages alone: nothing is loaded, so that no device is touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .facts import CANN_VARIABLES, NONE, Host, HostFinding, cann_version, version_in

# Drivers that upstream reports as unsound, with the report.
_UNSOUND_DRIVERS = {"23.0.6": "accuracy changes from run to run under it (vllm-ascend issue 1999)"}
_RELEASE = re.compile(r"\d+(?:\.\d+)*")


def cann(host: Host) -> Iterator[HostFinding]:
    """Yield where the CANN toolkit is missing, or its environment was not set."""
    named = {name: Path(host.environ[name]) for name in CANN_VARIABLES if host.environ.get(name)}
    for name, path in named.items():
        if not path.is_dir():
            remedy = "source set_env.sh of the toolkit that is installed, or unset it"
            yield HostFinding(check="host.cann", text=f"{name}={str(path)!r} is no directory", remedy=remedy)
    if cann_version(host.environ, host.cann_roots) == NONE:
        looked = ", ".join(map(str, (*named.values(), *host.cann_roots)))
        remedy = "install the toolkit and the kernels of this chip, and source its set_env.sh"
        yield HostFinding(check="host.cann", text=f"no CANN toolkit found (looked in {looked})", remedy=remedy)
    elif not named:
        yield HostFinding(
            check="host.cann",
            text=f"the CANN toolkit is installed, and neither {' nor '.join(CANN_VARIABLES)} is set",
            remedy="source its set_env.sh, or torch_npu may not find its libraries",
            is_error=False,
        )


def driver(host: Host) -> Iterator[HostFinding]:
    """Yield where the driver's version is not known, or is known to be unsound."""
    path = host.driver / "version.info"
    version = version_in(path)
    if not version:
        yield HostFinding(
            check="host.driver",
            text=f"the driver's version is not known: {path} is not there or names none",
            remedy=f"mount it into the container (docker -v {path}:{path}:ro)",
            is_error=False,
        )
    elif version in _UNSOUND_DRIVERS:
        text = f"driver {version}: {_UNSOUND_DRIVERS[version]}"
        yield HostFinding(check="host.driver", text=text, remedy="install another one", is_error=False)


def torch_npu(host: Host) -> Iterator[HostFinding]:
    """Yield where torch_npu is missing, or was built for another torch: its libraries then cannot be loaded."""
    torch, npu = host.versions.get("torch", NONE), host.versions.get("torch_npu", NONE)
    if NONE in {torch, npu}:
        missing = " and ".join(name for name, version in (("torch", torch), ("torch_npu", npu)) if version == NONE)
        remedy = "install them in versions of one number, or give the interpreter that has them (--e2e-python)"
        yield HostFinding(check="host.torch-npu", text=f"the training's interpreter has no {missing}", remedy=remedy)
    elif _release(torch) != _release(npu):
        remedy = f"install torch_npu {_release(torch)}, or torch {_release(npu)}"
        yield HostFinding(check="host.torch-npu", text=f"torch_npu {npu} is built for another torch than {torch}", remedy=remedy)


def rollout_engine(host: Host) -> Iterator[HostFinding]:
    """Yield where vllm-ascend is of another release than the vLLM that it extends."""
    vllm, ascend = host.versions.get("vllm", NONE), host.versions.get("vllm_ascend", NONE)
    if NONE not in {vllm, ascend} and _release(vllm, 2) != _release(ascend, 2):
        yield HostFinding(
            check="host.vllm-ascend",
            text=f"vllm-ascend {ascend} extends another vLLM than {vllm}",
            remedy=f"install vllm-ascend {_release(vllm, 2)}, or vLLM {_release(ascend, 2)}",
            is_error=False,
        )


def _release(version: str, parts: int = 3) -> str:
    """Return the first numbers of a version, without what marks a build (`2.7.1.post2`, `2.7.1+cpu`)."""
    found = _RELEASE.match(version)
    return ".".join(found[0].split(".")[:parts]) if found else version
