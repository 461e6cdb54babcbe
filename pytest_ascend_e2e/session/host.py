"""What is missing on this host for a training: devices, software, room, weights, data. All of it is told before a lease.

Must not know: what a single check demands (`preflight/host`), or who asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..datasets import NAMES, nearest, raw_problems
from ..errors import E2EError, ModelError, RunnerError, did_you_mean
from ..models import find_model
from ..preflight import Host, HostFinding, host_findings
from ..runners import Catalogue, Runner, find_devices, pick_runner
from .ready_data import ready_files, ready_names
from .settings import Settings
from .versions import versions

# One or two letters of a name as short as `gsm8k`.
_SLIP = 0.75


def host_of(settings: Settings, environ: Mapping[str, str], *, simulated: bool) -> Host:
    """Return this host as the checks see it.

    Raises:
        LaunchError: the training's interpreter cannot be run.
    """
    places = {
        "run directories": settings.run_root,
        "prepared datasets and tiny models": settings.cache_root,
        "locks of devices": settings.lock_dir,
    }
    return Host(environ=environ, versions=versions(settings.python, environ), places=places, simulated=simulated)


def findings_here(runner: Runner, settings: Settings, environ: Mapping[str, str]) -> Sequence[HostFinding]:
    """Return what is missing on this host for any training on a runner; weights and data are asked for by `input_findings`.

    Raises:
        LaunchError: the training's interpreter cannot be run.
    """
    devices = () if runner.simulated else tuple(device_findings(runner, environ))
    return (*devices, *host_findings(host_of(settings, environ, simulated=runner.simulated)))


def device_findings(runner: Runner, environ: Mapping[str, str]) -> Iterator[HostFinding]:
    """Yield where this host has fewer fit devices than a runner, and what npu-smi warns of."""
    try:
        found = find_devices(environ)
    except RunnerError as error:
        yield HostFinding(check="host.devices", text=str(error))
        return
    if len(found.devices) < runner.devices:
        unfit = f", not fit: {', '.join(map(str, found.unfit))}" if found.unfit else ""
        why = f" ({found.reason})" if found.reason and not found.unfit else unfit
        yield HostFinding(
            check="host.devices",
            text=f"{runner.name} has {runner.devices} devices, and this host offers {len(found.devices)}{why}",
            remedy="run it on such a host, or have the devices that are not fit reset or replaced",
        )
    for problem in found.problems:
        yield HostFinding(check="host.devices", text=problem, is_error=False)


def input_findings(model: str, dataset: str, settings: Settings) -> Iterator[HostFinding]:
    """Yield where the weights of a model or the rows of a dataset are not there, not whole or not readable."""
    try:
        find_model(model, settings.models_root)
    except ModelError as error:
        for problem in error.problems:
            yield HostFinding(check="host.weights", text=problem)
    if ready_files(dataset, settings.datasets_root) is not None:
        return
    if dataset not in NAMES:
        place = settings.datasets_root / dataset
        text = f"{dataset}: neither {place}/train.parquet with test.parquet beside it nor {place}.parquet is there"
        hint = did_you_mean(nearest(dataset, [*NAMES, *ready_names(settings.datasets_root)]), before="; or ")
        yield HostFinding(check="host.dataset", text=text, remedy=f"prepare it for verl, and put it there{hint}")
    else:
        for problem in raw_problems(dataset, settings.datasets_root):
            yield HostFinding(check="host.dataset", text=problem)


def doubtful_dataset(dataset: str, settings: Settings) -> str | None:
    """Return a warning on a name that may lie ready on another host and looks like a slip for one that is prepared, else None."""
    is_ready = ready_files(dataset, settings.datasets_root) is not None
    meant = [] if is_ready or dataset in NAMES or dataset.startswith("/") else nearest(dataset, likeness=_SLIP)
    if not meant:
        return None
    return f"dataset {dataset!r} is none of {', '.join(NAMES)}, so it must lie ready on the runner; {did_you_mean(meant)}"


def runner_of_host(catalogue: Catalogue, environ: Mapping[str, str]) -> Runner | None:
    """Return the runner of the catalogue that this host is, None where it has no devices or is none of them."""
    try:
        found = find_devices(environ)
        return pick_runner(catalogue, found) if found.devices else None
    except E2EError:
        return None
