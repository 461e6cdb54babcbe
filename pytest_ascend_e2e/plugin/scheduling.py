"""In which order cases run, and how the scheduler of an xdist session learns of them.

The process that schedules collects nothing itself: each worker leaves the cases that it collected in a file beside those of the
others. Must not know: how the order is found (`session/schedule.py`), or how tests are handed out (`xdist_scheduler.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..errors import RunnerError
from ..history import History
from ..runners import find_devices
from ..session import Case, Job, expected_duration_s
from .markers import CASE_KEY, QUARANTINE_KEY
from .planning import is_served
from .state import State, environment, state_of

if TYPE_CHECKING:
    from xdist.remote import Producer  # xdist may be switched off
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

CASES_DIR = "e2e_cases_dir"
_DIRECTORY_KEY = pytest.StashKey[Path]()


def sort_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the largest case first where nothing says otherwise; other tests keep their places.

    An order that the user asked for stands: ids on the command line, `--e2e-order collected`, and whatever pytest or another plugin
    does later (`--ff`, `--nf`, random orders). Under xdist the scheduler decides, and a plan is read in the order of the files.
    """
    if not _is_sorting(config) or hasattr(config, "workerinput") or any("::" in argument for argument in config.args):
        return
    state = state_of(config)
    places = [place for place, item in enumerate(items) if _needs_devices(item, state)]
    cases = [items[place] for place in places]
    jobs = jobs_of({item.nodeid: _facts(item.stash[CASE_KEY], state) for item in cases}, state)
    cases.sort(key=lambda item: -jobs[item.nodeid].device_seconds)
    for place, item in zip(places, cases, strict=True):
        items[place] = item


def jobs_of(facts: Mapping[str, tuple[int, float | None]], state: State) -> dict[str, Job]:
    """Return cases as a schedule takes them, by id, from the devices that each takes and the estimate of its marker."""
    runner = "" if state.runner is None else state.runner.name
    history = None if state.settings.history is None else History(state.settings.history)
    return {
        name: Job(name=name, devices=devices, duration_s=expected_duration_s(name, estimate_s, runner=runner, history=history))
        for name, (devices, estimate_s) in facts.items()
    }


def is_scheduling(config: pytest.Config) -> bool:
    """Tell whether the scheduler of an xdist session is ours: nothing else was asked for, and all workers are on this host."""
    specs: Sequence[str] = config.getoption("tx", None) or ()
    return _is_sorting(config) and config.getoption("dist", "no") == "load" and all("popen" in spec for spec in specs)


def devices_of_host(state: State) -> int:
    """Return how many devices the cases of this session share."""
    if state.runner is None:
        return 0
    if not state.runner.simulated:
        try:
            return len(find_devices(environment()).devices) or state.runner.devices
        except RunnerError:  # told by the first case that asks for a device
            return state.runner.devices
    return state.runner.devices


def tell_worker(node: WorkerController) -> None:
    """Ask a worker for its cases, on the controller."""
    if not is_scheduling(node.config):
        return
    directory = node.config.stash.get(_DIRECTORY_KEY, None)
    if directory is None:
        directory = node.config.stash[_DIRECTORY_KEY] = Path(tempfile.mkdtemp(prefix="ascend-e2e-cases-"))
        node.config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    node.workerinput[CASES_DIR] = str(directory)


def make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Return our scheduler, on the controller."""
    from .xdist_scheduler import CaseScheduling  # noqa: PLC0415  # xdist may be switched off

    state = state_of(config)
    return CaseScheduling(config, log, read_jobs=lambda: jobs_of(cases_of_workers(config), state), devices=devices_of_host(state))


def cases_of_workers(config: pytest.Config) -> dict[str, tuple[int, float | None]]:
    """Return the cases that the workers collected, which are the same for each: devices and estimate (seconds) by id."""
    directory = config.stash.get(_DIRECTORY_KEY, None)
    files = [] if directory is None else sorted(directory.glob("*.json"))
    if directory is None or not files:
        return {}
    found = json.loads(files[0].read_text(encoding="utf-8"))
    shutil.rmtree(directory, ignore_errors=True)  # now, so that a session that is killed leaves none
    return {str(name): (int(devices), estimate_s) for name, devices, estimate_s in found}


class Standby(pytest.Item):
    """Stands for the test that is not chosen yet.

    A worker of xdist begins a test only when it knows which comes next, and gives that one back to nobody. With this item next, it
    begins at once, and what it runs then is chosen when it is free. Belongs to the session alone, so that fixtures of a module or a
    class end with the test before it. Nothing is run or reported for it.
    """

    def runtest(self) -> None:
        """Do nothing."""


class Worker:
    """The hooks of an xdist worker whose tests we hand out."""

    def __init__(self, directory: Path, worker_id: str) -> None:
        self._file = directory / f"{worker_id}.json"

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_finish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Leave the cases in the file before xdist tells of the tests; behind them all, have the standby."""
        state = state_of(session.config)
        cases = [item for item in session.items if _needs_devices(item, state)]
        if self._file.parent.is_dir():  # it is gone where this worker takes the place of one that died
            facts = [(item.nodeid, *_facts(item.stash[CASE_KEY], state)) for item in cases]
            partial = self._file.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(facts), encoding="utf-8")
            partial.replace(self._file)
        result = yield
        if cases:
            session.items.append(Standby.from_parent(session, name="standby"))
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Pass over the standby."""
        return True if isinstance(item, Standby) else None


def _is_sorting(config: pytest.Config) -> bool:
    state = state_of(config)
    return not state.is_plan and state.found["order"].text == "largest-first"


def _needs_devices(item: pytest.Item, state: State) -> bool:
    case = item.stash.get(CASE_KEY, None)
    return case is not None and is_served(case, state) and QUARANTINE_KEY not in item.stash


def _facts(case: Case, state: State) -> tuple[int, float | None]:
    runner = state.catalogue.get(case.runners[0]) if state.runner is None else state.runner
    return case.share_of(runner).devices, case.estimate_s
