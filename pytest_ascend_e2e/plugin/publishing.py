"""What a session leaves for a CI and for people: a directory to upload, the page of a job, annotations at lines of code.

Of a run's directory its small files are kept: what a reader needs, and what `--e2e-from`, `judge` and `repeat` read. A session
that is killed has left what had ended by then.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from ..errors import E2EError, RecordError
from ..files import write_whole
from ..nodeids import own_name
from ..report import (
    PREFIX,
    Outcome,
    annotation,
    append_page,
    found_records,
    plan_markdown,
    summary_markdown,
)
from ..session import read_record
from .guard import RERUN_PROPERTY, RETRIED_PROPERTY
from .state import State, relative

JUNIT = "junit.xml"
SUMMARY = "summary.md"
RUNS = "runs"
RUN_DIR = "run_dir"
ATTACHED = ("train.log", "metrics.jsonl", "record.json")
KEPT = ("record.json", "config.yaml", "environment.json", "command.json", "command.sh", "ending.json", "metrics.jsonl", "train.log")
# Of a file that is longer, the end is kept, as long as this.
LONGEST_BYTES = 20_000_000


class Publisher:
    """The hooks that leave something; in the one process that sees every report. `directory` is what `--e2e-report` names."""

    def __init__(self, config: pytest.Config, state: State, *, environ: Mapping[str, str], directory: Path | None) -> None:
        self._config = config
        self._state = state
        self._environ = environ
        self._directory = directory
        self._source = state.found["report"].source
        self._began = time.time()
        self._ended: set[str] = set()
        # Without pytest's own plugin for JUnit files (-p no:junitxml) there is no such option.
        if directory is not None and getattr(config.option, "xmlpath", "") is None:
            config.option.xmlpath = str(directory / JUNIT)

    def attachments(self, report: pytest.TestReport) -> list[str]:
        """Return the files of the runs of a test, by their paths from the session's root; with a report directory, its copies."""
        self._ended.add(report.nodeid)
        runs = [Path(str(value)) for name, value in report.user_properties if name.endswith(RUN_DIR)]
        places = [self._kept(run, self._state.guard.problems) for run in runs]
        return [relative(place / name, self._config) for place in places for name in ATTACHED if (place / name).is_file()]

    def _kept(self, run: Path, problems: list[str]) -> Path:
        """Return where the small files of a run are: in the report directory, if there is one and it takes them."""
        if self._directory is None:
            return run
        try:
            return _keep(run, self._directory)
        except OSError as error:
            told = f"{self._directory / RUNS / run.name}: cannot be kept: {error.strerror or error}; it stays in {run}"
            problems.append(f"{self._source}: {told}")
            return run

    def pytest_sessionstart(self) -> None:
        """Refuse a directory that cannot be written, which would be found when all has run."""
        if self._directory is not None:
            try:
                write_whole(self._directory / SUMMARY, "The session has not ended.\n")
            except E2EError as error:
                raise pytest.UsageError(f"{self._source}: {error}") from error

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Write the summary when all else is written, and have the JUnit file in the report directory wherever it was asked for."""
        result = yield
        try:
            page = page_of(self._state)
            append_page(page, self._environ)
            if self._directory is not None:
                write_whole(self._directory / SUMMARY, page)
                self._fill(self._directory)
        except (E2EError, OSError) as error:
            self._config.get_terminal_writer().line(f"ascend-e2e: the report is not whole: {error}", red=True)
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        return result

    def _fill(self, directory: Path) -> None:
        """Put into the report directory what the end of a test has not put there."""
        problems: list[str] = []
        for run in self._interrupted_runs():
            self._kept(run, problems)
        written, here = getattr(self._config.option, "xmlpath", None), directory / JUNIT
        if written and Path(written).is_file() and not (here.exists() and here.samefile(written)):
            shutil.copyfile(written, here)
        cases = self._state.results.found.values()
        not_trained = {case.nodeid: case.message for case in cases if "tier" in case.properties and case.outcome is Outcome.SKIPPED}
        from ..report.html import write_html  # noqa: PLC0415  # only a session that reports pays for it

        records, unread = found_records(directory)
        write_html(records, directory / "report.html", not_trained=not_trained)
        if problems or unread:
            raise E2EError(*problems, *unread)

    def _interrupted_runs(self) -> Iterator[Path]:
        """Yield the directories of the session's runs whose tests did not get to their end, also those of a worker that died."""
        interrupted = self._state.guard.collected - self._ended
        for path in self._state.settings.run_root.glob("*/record.json"):
            with contextlib.suppress(RecordError):  # of a record that cannot be read nobody knows the test
                if path.stat().st_mtime >= self._began and read_record(path.parent).case in interrupted:
                    yield path.parent

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the annotations, where the runs lie, and where the report does."""
        for line in annotation_lines(self._state, self._config.rootpath, self._environ):
            terminalreporter.write_line(line)
        for line in runs_lines(self._state, self._config.invocation_params.dir):
            terminalreporter.write_line(line)
        if self._directory is not None:
            terminalreporter.write_line(f"report: {relative(self._directory, self._config)}")


def _keep(run: Path, report: Path) -> Path:
    """Keep the small files of a run in the report directory, and return where they are."""
    target = report / RUNS / run.name
    target.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        if (run / name).is_file():
            _copy_end(run / name, target / name)
    return target


def page_of(state: State) -> str:
    """Return the summary of the session as Markdown."""
    if state.is_plan:
        return plan_markdown(state.guard.rows, cases=state.results.cases(), problems=state.guard.problems)
    name = "every case on its own runner" if state.runner is None else state.runner.name
    return summary_markdown(state.results.cases(), title=f"End-to-end tests on {name}", problems=state.guard.problems)


def annotation_lines(state: State, rootpath: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each red test, and one for each attempt that was repeated; none where no CI reads them."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return
    workspace = Path(environ.get("GITHUB_WORKSPACE", rootpath))
    for result in state.results.found.values():
        path = os.path.relpath(rootpath / result.path, workspace)
        name = own_name(result.nodeid)
        if result.outcome.is_red and result.outcome is not Outcome.UNFINISHED:  # nothing is wrong with its line
            yield annotation("error", result.message, path=path, line=result.line, title=f"{name}: {result.outcome.value}")
        for repeated in (RETRIED_PROPERTY, RERUN_PROPERTY):
            text = result.properties.get(repeated.removeprefix(PREFIX))
            if text:
                yield annotation("warning", text, path=path, line=result.line, title=f"{name}: repeated")


def runs_lines(state: State, here: Path) -> Iterator[str]:
    """Yield the line that says where the runs of this session lie and how to look at them; none where nothing was trained."""
    runs = {value for case in state.results.found.values() for name, value in case.properties.items() if name.endswith(RUN_DIR)}
    if not runs:
        return
    one = len(runs) == 1
    place = Path(min(runs)) if one else state.settings.run_root.absolute()
    shown = shlex.quote(str(place.relative_to(here) if here in place.parents else place))
    yield f"run: {shown}; see it: ascend-e2e report {shown}" if one else f"runs: {shown}; see them: ascend-e2e report {shown}"


def _copy_end(source: Path, target: Path) -> None:
    """Copy a file, or the end of one that is too long."""
    with source.open("rb") as given, target.open("wb") as kept:
        given.seek(max(0, source.stat().st_size - LONGEST_BYTES))
        shutil.copyfileobj(given, kept)
    shutil.copymode(source, target)
