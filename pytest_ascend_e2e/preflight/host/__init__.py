"""Preflight of a host: what is missing there for a training, told before devices are taken. Must not know: cases, leases."""

from __future__ import annotations

from .facts import CANN_ROOTS, Host, HostFinding, cann_version, version_in
from .resources import file_limit, home, loopback, nearest_there, places, shared_memory
from .software import cann, driver, rollout_engine, torch_npu

__all__ = ["CANN_ROOTS", "Host", "HostFinding", "cann_version", "host_findings", "nearest_there", "version_in"]

# What every training needs, and what only one on NPUs needs.
_ALWAYS = (places, home, shared_memory, file_limit, loopback)
_ON_NPUS = (cann, driver, torch_npu, rollout_engine)


def host_findings(host: Host) -> list[HostFinding]:
    """Return what all checks that apply to a host say of it, errors first."""
    checks = _ALWAYS if host.simulated else (*_ALWAYS, *_ON_NPUS)
    found = [finding for check in checks for finding in check(host)]
    return sorted(found, key=lambda finding: not finding.is_error)
