"""The end of a test that trained: its runs are judged, recorded and reported, whichever way its body ended."""

from __future__ import annotations

from traceback import walk_tb

import pytest

from ..errors import E2EError, HistoryError
from ..history import History
from ..recipe import Recipe
from ..records import BODY, INTERRUPTED, Ending, RunRecord
from ..report import beside_text, failure_text, headline, properties, retried_line
from ..session import Run, confirmation, telling_lines, with_another_seed
from .fixtures import RUNS_KEY, TRAINER_KEY
from .guard import RERUN_PROPERTY, RETRIED_PROPERTY
from .outcomes import CaseFailed, add_section
from .publishing import RUN_DIR
from .results import LINE_PROPERTY
from .state import state_of

# What stands below the failure of a test whose body, or a fixture of it, failed by itself.
BESIDE_KEY = pytest.StashKey[str]()
# What the reports of a test told before its body began.
_GIVEN_KEY = pytest.StashKey[tuple[tuple[str, object], ...]]()


def begin(item: pytest.Item) -> None:
    """Note what is told of a test before it trains; where another plugin runs it again, this attempt alone is judged.

    The runs of an earlier one keep their records, and are told with their directories.
    """
    runs = item.stash.get(RUNS_KEY, [])
    given = list(item.stash[_GIVEN_KEY] if runs else item.user_properties)
    for number, run in enumerate(runs, 1 + sum(name == RERUN_PROPERTY for name, _ in given)):
        given.append((RERUN_PROPERTY, f"{headline(run.record)}; {run.directory}"))
        given.append((f"{RERUN_PROPERTY}{number}_{RUN_DIR}", str(run.directory)))
    item.user_properties[:] = given
    item.stash[_GIVEN_KEY] = tuple(given)
    item.stash[RUNS_KEY] = []


def conclude(item: pytest.Item, error: BaseException | None) -> None:
    """Write the records and properties of the test's runs and keep them in the history; raise with the whole report if one is red.

    `error` is what ended the body. It stays the outcome then, and the report of the runs is kept to stand beside it, of a sound run
    where it lies; but where a training broke off, that is the outcome, and the body a consequence.

    Raises:
        CaseFailed: a training failed, a check failed, a run was judged by nothing, or it could not be kept.
    """
    records: list[RunRecord] = []
    try:
        texts = _judged(item, error, records)
    finally:
        # Also where somebody ends the session while a red run is being repeated.
        problems = _kept(item, records)
    if not (texts or problems):
        if error is None and not state_of(item.config).is_keep:
            for run in item.stash.get(RUNS_KEY, []):
                run.remove_checkpoints()
        return
    if error is None:
        raise CaseFailed("\n\n".join((*texts, *problems)))
    if isinstance(error, Exception) and any(_is_broken_off(record) for record in records):
        raise CaseFailed("\n\n".join((*texts, _of_body(item, error), *problems))) from error
    item.stash[BESIDE_KEY] = "\n\n".join((*texts, *problems))


def tell_beside(item: pytest.Item, report: pytest.TestReport) -> None:
    """Put the report of the runs below the failure of a test that failed by itself: in the terminal, and in the JUnit file."""
    text = item.stash.get(BESIDE_KEY, None)
    if text is not None:
        del item.stash[BESIDE_KEY]  # once, also where the teardown fails after it
        add_section(report, "training", text)


def _judged(item: pytest.Item, error: BaseException | None, records: list[RunRecord]) -> list[str]:
    """Conclude the runs of the test, add their records to `records`, and return the report of each that is red.

    Where the test failed by itself, the sound ones follow, with where they lie.
    """
    texts: list[str] = []
    sound: list[str] = []
    number = 0
    runs: list[Run] = item.stash.get(RUNS_KEY, [])
    for run in runs:
        record = _concluded(run, error)
        records.append(record)
        if record.retried_as:
            item.user_properties.append((RETRIED_PROPERTY, retried_line(record)))
            item.user_properties.append((f"{RETRIED_PROPERTY}{len(records)}_{RUN_DIR}", record.run_dir))
            continue
        number += 1
        item.user_properties += properties(record, run_number=number)
        if not record.is_completed or any(check.is_failed and check.name not in _OF_BODY for check in record.checks):
            _note_line(item, run)
            said = _confirmed(item, run, record, records) if error is None else []
            texts.append("\n".join([failure_text(record, log_lines=telling_lines(record)), *said]))
        elif error is not None:
            sound.append(beside_text(record))
    return texts + sound


def _concluded(run: Run, error: BaseException | None) -> RunRecord:
    if error is None:
        return run.conclude(is_body_passed=True)
    return run.conclude(is_body_passed=False, failure=_told(error), is_interrupted=isinstance(error, _INTERRUPTIONS))


def _is_broken_off(record: RunRecord) -> bool:
    return not (record.is_completed or record.retried_as or record.ending is Ending.INTERRUPTED)


def _of_body(item: pytest.Item, error: Exception) -> str:
    """Return the line that says where the body ended after its training had broken off."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(item.path)]
    place = "".join(f" at {item.path.name}:{line}" for line in lines[-1:])
    return f"after that the test failed by itself{place}: {_told(error)}"


def _told(error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."


def _note_line(item: pytest.Item, run: Run) -> None:
    """Keep the line of the test's file at which the first check failed: where an annotation points at."""
    is_noted = any(name == LINE_PROPERTY for name, _ in item.user_properties)
    if run.failed_at is not None and not is_noted and run.failed_at[0] == str(item.path):
        item.user_properties.append((LINE_PROPERTY, run.failed_at[1]))


def _confirmed(item: pytest.Item, run: Run, record: RunRecord, records: list[RunRecord]) -> list[str]:
    """Repeat a run whose checks failed, with the same seed and with another, if the session asks for it, and return what that says.

    The records of the repeats are added to `records`. A repeat that cannot be made hides nothing of the failure.
    """
    if not state_of(item.config).is_confirm or not record.is_completed:
        return []
    if not isinstance(run.recipe, Recipe):
        return ["not confirmed: verl's supervised fine-tuning has no seed to change"]
    repeats: list[RunRecord] = []
    try:
        for recipe in (run.recipe, with_another_seed(run.recipe)):
            again = item.stash[TRAINER_KEY].repeat(
                recipe, unfinished=lambda other: repeats.append(other.conclude(is_body_passed=False))
            )
            again.judge_like(run)
            repeats.append(again.conclude(is_body_passed=False))
    except E2EError as error:
        return [f"not confirmed: a repeat could not be made: {error}"]
    finally:
        records += repeats
    return [confirmation(record, *repeats)]


def _kept(item: pytest.Item, records: list[RunRecord]) -> list[str]:
    """Keep the records; return the problem where that fails, since a result that is lost is not green."""
    path = state_of(item.config).settings.history
    of_the_case = [record for record in records if not record.changed]  # one with changes is another training than the case's
    if path is None or not of_the_case:
        return []
    try:
        History(path).add(of_the_case)
    except HistoryError as error:
        return [f"the run is not in the history: {error}"]
    return []


_INTERRUPTIONS = (KeyboardInterrupt, SystemExit, pytest.exit.Exception)
# The failure of the body has a report of its own.
_OF_BODY = (BODY, INTERRUPTED)
_MOST_TEXT = 500
