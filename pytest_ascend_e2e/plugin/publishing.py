"""What a session leaves for a CI and for people: a directory to upload, the page of a job, annotations at lines of code.

Of a run's directory its small files are kept: what a reader needs, and what `--e2e-from`, `judge` and `repeat` read. A session
that is killed has left what had ended by then.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from ..errors import E2EError
from ..nodeids import name_of_test
from ..report import Outcome, annotation, found_records, plan_markdown, summary_markdown
from .state import State, relative

JUNIT = "junit.xml"
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
        if directory is not None and not config.option.xmlpath:
            config.option.xmlpath = str(directory / JUNIT)

    def attachments(self, report: pytest.TestReport) -> list[str]:
        """Return the files of the runs of a test, by their paths from the session's root; with a report directory, its copies."""
        directories = [Path(str(value)) for name, value in report.user_properties if name.endswith(RUN_DIR)]
        places = [directory if self._directory is None else _keep(directory, self._directory) for directory in directories]
        return [relative(place / name, self._config) for place in places for name in ATTACHED if (place / name).is_file()]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Write the summary when all else is written, and have the JUnit file in the report directory wherever it was asked for."""
        result = yield
        page = page_of(self._state)
        append_page(page, self._environ)
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            (self._directory / "summary.md").write_text(page, encoding="utf-8")
            written, here = Path(self._config.option.xmlpath), self._directory / JUNIT
            if written.is_file() and not (here.exists() and written.samefile(here)):
                shutil.copyfile(written, here)
            self._write_html(self._directory)
        return result

    def _write_html(self, directory: Path) -> None:
        """Write the report of the runs for people, from their copies; what is wrong with it takes nothing from the session."""
        from ..report.html import write_html  # noqa: PLC0415  # only a session that reports pays for it

        cases = self._state.results.found.values()
        not_trained = {case.nodeid: case.message for case in cases if "tier" in case.properties and case.outcome is Outcome.SKIPPED}
        try:
            write_html(found_records(directory), directory / "report.html", not_trained=not_trained)
        except E2EError as error:
            self._config.get_terminal_writer().line(f"ascend-e2e: no report.html: {error}", red=True)

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
        return plan_markdown(state.guard.rows)
    name = "every case on its own runner" if state.runner is None else state.runner.name
    return summary_markdown(state.results.cases(), title=f"End-to-end tests on {name}", problems=state.guard.problems)


def append_page(page: str, environ: Mapping[str, str]) -> None:
    """Show a page on that of the CI's job, where there is one."""
    path = environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(page)


def annotation_lines(state: State, rootpath: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each red test, and one for each attempt that was repeated; none where no CI reads them."""
    if environ.get("GITHUB_ACTIONS") != "true":
        return
    workspace = Path(environ.get("GITHUB_WORKSPACE", rootpath))
    for result in state.results.found.values():
        path = os.path.relpath(rootpath / result.path, workspace)
        name = name_of_test(result.nodeid)
        if result.outcome.is_red:
            yield annotation("error", result.message, path=path, line=result.line, title=f"{name}: {result.outcome.value}")
        if "retried" in result.properties:
            yield annotation("warning", result.properties["retried"], path=path, line=result.line, title=f"{name}: repeated")


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
