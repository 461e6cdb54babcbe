"""A training under way, shown in the terminal: one line that is rewritten, or quiet lines where there is no terminal.

An xdist worker has no terminal of its own and shows nothing; the run directory has it all.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import final

import pytest

from ..nodeids import name_of_test
from ..report import progress_line, waiting_lines
from ..runners import Waiting
from .state import state_of

QUIET_EVERY_S = 30.0


@final
class Progress:
    """Shows the steps of one training while it runs."""

    def __init__(self, item: pytest.Item, *, name: str, steps: int) -> None:
        self._terminal: pytest.TerminalReporter | None = item.config.pluginmanager.get_plugin("terminalreporter")
        mode = state_of(item.config).found["progress"].text
        is_terminal = self._terminal is not None and self._terminal.isatty
        self._mode = ("live" if is_terminal else "lines") if mode == "auto" else mode
        if self._terminal is None or hasattr(item.config, "workerinput"):
            self._mode = "off"
        self._config = item.config
        self._name, self._steps = name_of_test(name), steps
        self._started = self._shown = time.monotonic()
        self._first_step_s: float | None = None
        self._is_line_open = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_line_open and self._terminal is not None:
            with self._uncaptured():
                self._terminal.rewrite("", erase=True)

    def saw(self, step: int, data: Mapping[str, float | None]) -> None:
        """Take note of a step that has ended."""
        now = time.monotonic()
        elapsed_s = now - self._started
        if self._first_step_s is None:
            self._first_step_s = elapsed_s
        if self._mode == "off" or self._terminal is None:
            return
        line = progress_line(
            self._name, step=step, steps=self._steps, elapsed_s=elapsed_s, first_step_s=self._first_step_s, data=data
        )
        with self._uncaptured():
            if self._mode == "live":
                self._terminal.rewrite(line, erase=True)
                self._is_line_open = True
            elif step in (1, self._steps) or now - self._shown >= QUIET_EVERY_S:
                self._shown = now
                self._terminal.ensure_newline()
                self._terminal.write_line(line)

    def _uncaptured(self) -> AbstractContextManager[None]:
        return _uncaptured(self._config)


def tell_waiting(config: pytest.Config, name: str, waiting: Waiting) -> None:
    """Show what a case waits for that has no devices yet, unless nothing is to be shown."""
    terminal: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or hasattr(config, "workerinput") or state_of(config).found["progress"].text == "off":
        return
    with _uncaptured(config):
        terminal.ensure_newline()
        for line in waiting_lines(name_of_test(name), waiting):
            terminal.write_line(line)


def _uncaptured(config: pytest.Config) -> AbstractContextManager[None]:
    """Lift pytest's capture for a moment: a test is being set up or run, and its output is not ours."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is None:
        return nullcontext()
    lifted: AbstractContextManager[None] = capture.global_and_fixture_disabled()
    return lifted
