"""What the plugin keeps for a session: one object in the configuration's stash.

Made once in `pytest_configure`; on an xdist worker from what the controller found, so that devices are asked once.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ..errors import E2EError, RunnerError, SettingsError
from ..runners import Catalogue, Runner, find_devices, load_catalogue, pick_runner
from ..session import Compositions, Settings, runner_of_host
from .guard import Guard
from .options import OPTIONS, Setting, read_settings, settings_of
from .reruns import Selection, select
from .results import Results
from .rootdir import refuse_lost_root

STATE_KEY = pytest.StashKey["State"]()

DEFAULT_SIMULATION = "sim-2"


@dataclass(kw_only=True, slots=True)
class State:
    """The settings, the runners, and what was seen of the tests.

    `runner` is None in plan mode without an asked-for runner, where each case is judged on its own; `runner_origin` says how it was
    chosen. `is_suite_composed` tells whether the configurations of all cases were composed together, which plan mode does once.
    `selection` is what the session repeats of an earlier one.
    `here` is the name of the runner that this host is, in plan mode, empty where it is none: it need not be the one planned for.
    """

    settings: Settings
    found: Mapping[str, Setting]
    catalogue: Catalogue
    runner: Runner | None
    runner_origin: str
    is_plan: bool
    here: str
    compositions: Compositions
    selection: Selection | None = None
    is_confirm: bool = False
    is_elsewhere: bool = False
    is_keep: bool = False
    is_suite_composed: bool = False
    guard: Guard = field(default_factory=Guard)
    results: Results = field(default_factory=Results)
    shared: Path | None = None

    def shared_directory(self) -> Path:
        """Return the directory through which the workers of xdist share what verl composed."""
        if self.shared is None:
            self.shared = Path(tempfile.mkdtemp(prefix="ascend-e2e-"))
        return self.shared

    def remove_shared_directory(self) -> None:
        """Remove that directory, if there is one."""
        if self.shared is not None:
            shutil.rmtree(self.shared)


def make_state(config: pytest.Config, environ: Mapping[str, str]) -> State:
    """Return the state of this session.

    Raises:
        E2EError: a setting, the catalogue or the runner cannot be used.
    """
    refuse_lost_root(config, (option.flag for option in OPTIONS))
    worker = getattr(config, "workerinput", None)
    found = read_settings(config, environ)
    selection = select(config, found) if worker is None else _selection_of(worker)
    if selection is not None:
        selection.apply(config, found)
        found = read_settings(config, environ)
    settings = settings_of(found, config.rootpath)
    catalogue = load_catalogue(settings.runners_file)
    is_plan = bool(config.getoption("e2e_plan"))
    is_elsewhere = bool(config.getoption("e2e_elsewhere"))
    if is_elsewhere and settings.runner is None:
        raise SettingsError("--e2e-elsewhere needs to know where: give a runner by --runner, such as --runner sim-2")
    if settings.runner is not None:
        try:
            runner: Runner | None = catalogue.get(settings.runner)
        except E2EError as error:
            raise type(error)(f"{found['runner'].source}: {error}") from error
        origin = found["runner"].source
    elif worker is not None:
        name, origin = worker["e2e_runner"], worker["e2e_runner_origin"]
        runner = catalogue.get(name) if name else None
    elif is_plan:
        runner, origin = None, "a plan without --runner"
    else:
        runner, origin = _from_devices(catalogue, environ)
    shared = None if worker is None else Path(worker["e2e_compositions"])
    return State(
        settings=settings,
        found=found,
        catalogue=catalogue,
        runner=runner,
        runner_origin=origin,
        is_plan=is_plan,
        here=_here(catalogue, environ, worker) if is_plan else "",
        compositions=Compositions(settings.python, shared=shared),
        selection=selection,
        is_confirm=bool(config.getoption("e2e_confirm")),
        is_elsewhere=is_elsewhere,
        is_keep=bool(config.getoption("e2e_keep")),
    )


def _from_devices(catalogue: Catalogue, environ: Mapping[str, str]) -> tuple[Runner | None, str]:
    """Find the runner from the devices; a host without any gets simulated NPUs, a host whose NPUs cannot be told an error."""
    devices = find_devices(environ)
    if devices.is_bare:
        return catalogue.get(DEFAULT_SIMULATION), devices.reason
    if not devices.devices:
        raise RunnerError(
            f"{devices.reason}: this host has NPUs, so nothing is simulated unasked; --runner {DEFAULT_SIMULATION} asks for it"
        )
    return pick_runner(catalogue, devices), f"found {len(devices.devices)} NPUs"


def _selection_of(worker: Mapping[str, Any]) -> Selection | None:
    plain = worker["e2e_selection"]
    return None if plain is None else Selection.from_plain(plain)


def _here(catalogue: Catalogue, environ: Mapping[str, str], worker: Mapping[str, str] | None) -> str:
    if worker is not None:
        return worker["e2e_here"]
    runner = runner_of_host(catalogue, environ)
    return "" if runner is None else runner.name


def state_of(config: pytest.Config) -> State:
    """Return the state that `pytest_configure` made."""
    return config.stash[STATE_KEY]


def environment() -> Mapping[str, str]:
    """Return the environment of this process: the one place of the plugin that reads it."""
    return dict(os.environ)


def today() -> dt.date:
    """Return the day by which a quarantine is over or not."""
    return dt.datetime.now(dt.timezone.utc).date()


def relative(path: Path, config: pytest.Config) -> str:
    """Return a path as a reader in the session's root directory types it."""
    return str(path.relative_to(config.rootpath)) if config.rootpath in path.parents else str(path)
