"""The pytest edge: hooks of a few lines each; what they call stands beside them.

The only room that imports pytest.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..errors import E2EError
from . import collection, guard, junit, scheduling, signals
from .concluding import begin, conclude, tell_beside
from .exporting import export
from .fixtures import RUNS_KEY, geometry3k, gsm8k, layout, model_path, npus, run, train
from .fixtures import _bench as _bench
from .lastfailed import LastFailed
from .markers import declare_markers
from .options import add_options, header_lines
from .outcomes import clean_report, place_of, shorten
from .planning import look_at_host, problems_of_plan, write_plans
from .publishing import Publisher
from .reruns import Reruns
from .state import STATE_KEY, environment, make_state, state_of, today

if TYPE_CHECKING:
    from xdist.remote import Producer  # xdist may be switched off
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

__all__ = ["geometry3k", "gsm8k", "layout", "model_path", "npus", "run", "train"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, load the catalogue, find the runner."""
    declare_markers(config)
    try:
        config.stash[STATE_KEY] = state = make_state(config, environment())
    except E2EError as error:
        raise pytest.UsageError(str(error)) from error
    signals.end_on_sigterm(config)
    worker = getattr(config, "workerinput", None)
    if worker is None:
        publisher = Publisher(config, state, environ=environment(), directory=state.settings.report)
        config.pluginmanager.register(publisher, "ascend_e2e_publisher")
        config.pluginmanager.register(Controller(config, publisher), "ascend_e2e_controller")
        cache: pytest.Cache | None = getattr(config, "cache", None)  # it may be switched off
        if cache is not None:
            config.pluginmanager.register(LastFailed(cache), "ascend_e2e_lastfailed")
    elif scheduling.CASES_DIR in worker:
        own = scheduling.Worker(Path(worker[scheduling.CASES_DIR]), worker["workerid"])
        config.pluginmanager.register(own, "ascend_e2e_worker")
    if state.selection is not None:  # after the controller: what it finds missing is in time for the closing check
        repeats = Reruns(state.selection, guard=state.guard, results=state.results, is_plan=state.is_plan)
        config.pluginmanager.register(repeats, "ascend_e2e_reruns")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell an xdist worker which runner was found, so that devices are asked once, and where its cases are wanted and composed."""
    state = state_of(node.config)
    scheduling.tell_worker(node)
    node.workerinput["e2e_runner"] = state.runner.name if state.runner else ""
    node.workerinput["e2e_runner_origin"] = state.runner_origin
    node.workerinput["e2e_here"] = state.here
    node.workerinput["e2e_selection"] = state.selection and state.selection.to_plain()
    node.workerinput["e2e_compositions"] = str(state.shared_directory())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Hand out the tests of an xdist session, unless it was told how to (`--dist`)."""
    return scheduling.make_scheduler(config, log) if scheduling.is_scheduling(config) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController, ids: Sequence[str]) -> None:
    """Remember what must have a result at the end: the controller collects nothing itself."""
    state_of(node.config).guard.collected |= set(ids)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Show the runner and every setting that is not the default."""
    state = state_of(config)
    name = "every case on its own" if state.runner is None else state.runner.name
    return [f"runner: {name} ({state.runner_origin})", *header_lines(state.found)]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Show a mistake in a recipe as its text, without a traceback."""
    report = yield
    call: Any = getattr(report, "call", None)
    if call is not None and call.excinfo is not None:
        report.longrepr = clean_report(call.excinfo, collector.config.rootpath) or report.longrepr
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse a wrong marker: at this point it becomes one clean line, with and without xdist."""
    try:
        collection.check_marker(metafunc)
    except E2EError as error:
        raise pytest.Collector.CollectError(str(error)) from error


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the case with its item, and give a nightly case the marker `nightly`."""
    collection.keep_case(item)


@pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_collection_sort_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the largest case first, before pytest and other plugins have their say about the order."""
    scheduling.sort_cases(config, items)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the cases of other runners, with the reason."""
    collection.skip_other_runners(items, state_of(config))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Remember what must have a result at the end."""
    state_of(session.config).guard.collected |= {item.nodeid for item in session.items}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin an attempt; keep a case in quarantine off; in plan mode, judge the case here and set nothing up."""
    begin(item)
    collection.keep_off(item, state_of(item.config), today())
    collection.plan_at_setup(item, state_of(item.config))


@pytest.hookimpl(specname="pytest_runtest_setup")
def pytest_look_at_calls(item: pytest.Item) -> None:
    """Refuse wrong calls of checks before anything trains, and after pytest has skipped what is to be skipped."""
    collection.look_at_calls(item)


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_setup")
def pytest_conclude_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Conclude the trainings of fixtures where the setup did not get to its end: no body will follow."""
    try:
        return (yield)
    except BaseException as error:
        if item.stash.get(RUNS_KEY, ()):
            conclude(item, None if isinstance(error, pytest.skip.Exception) else error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Conclude the trainings of a test when its body has ended, whichever way."""
    try:
        result = yield
    except pytest.skip.Exception:
        # A skip says nothing against the body, and must not hide a training that is red.
        conclude(item, None)
        raise
    except BaseException as error:
        conclude(item, error)
        raise
    conclude(item, None)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show an error of ours as its text, without a traceback."""
    report = yield
    if call.excinfo is not None and report.failed:
        report.longrepr = clean_report(call.excinfo, item.config.rootpath, place_of(item)) or report.longrepr
        tell_beside(item, report)
    return report


class Controller:
    """The hooks of the one process that sees every report: the controller under xdist, else the only one."""

    def __init__(self, config: pytest.Config, publisher: Publisher) -> None:
        self._config = config
        self._journal = junit.Journal(config, state_of(config).guard, publisher.attachments)
        config.pluginmanager.register(self._journal, "ascend_e2e_junit")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Have every collected test in the JUnit file before the first one runs."""
        self._journal.write(at_once=True)

    @pytest.hookimpl(trylast=True, optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """As above; the controller of xdist collects nothing itself."""
        self._journal.write(at_once=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected for the reports of the session."""
        state_of(self._config).results.saw_collected(report)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember what began: of a setup that is interrupted, such as a training, there is no report."""
        state_of(self._config).guard.begun.add(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the report, and hand its properties to the JUnit file where that file's schema has a place for them."""
        state_of(self._config).guard.saw_report(report)
        state_of(self._config).results.saw_report(report)
        junit.place_properties(self._config, report)

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_runtest_logreport")
    def pytest_shorten_plan(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Shorten what a plan tells of a case when the JUnit file and the reports of the session have the whole text."""
        told = problems_of_plan(report)
        result = yield
        if told:
            shorten(report, told, self._config.rootpath)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Have the test that ended in the JUnit file, a case at once."""
        self._journal.write(at_once=nodeid in state_of(self._config).guard.cases)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn a session red in which something did not happen, and hand over what was found."""
        state = state_of(self._config)
        look_at_host(state)
        guard.close(session, state)
        state.results.close(state.guard.unfinished(self._config))
        export(session, state)

    def pytest_unconfigure(self) -> None:
        """Remove what the workers of xdist shared."""
        state_of(self._config).remove_shared_directory()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the plans, and why the closing check is red."""
        write_plans(terminalreporter, state_of(self._config))
        guard.tell(terminalreporter, state_of(self._config))
