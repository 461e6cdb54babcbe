"""SIGTERM from CI ends the session as Ctrl-C does: the training is ended, devices are given back, reports are written."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest


def end_on_sigterm(config: pytest.Config) -> None:
    """Take over SIGTERM for the time of the session, unless somebody else has."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    signal.signal(signal.SIGTERM, _interrupt)
    config.add_cleanup(_give_back)


def _give_back() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {signal.Signals(number).name}")
