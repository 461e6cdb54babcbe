"""The settings of the plugin: each declared once, with its flag, its variable, its ini key and its default.

Precedence: flag, variable, ini, default (a marker's own arguments stand above all and are read with the case). An error names
the source that holds the wrong value.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..deadline import parse_duration
from ..errors import SettingsError
from ..runners import DEFAULT_LOCK_DIR
from ..session import Settings, changes_of

PROGRESS = ("auto", "live", "lines", "off")
ORDERS = ("largest-first", "collected")


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One setting: `name` gives flag, variable and ini key; `read` turns a text into the value or raises ValueError.

    A repeatable one has a line of its text for each time it is given. One that is not `of_case` says which cases a session takes or
    where it reports, and is no part of the command that repeats one case.
    """

    name: str
    read: Callable[[str], object]
    default: str | None
    help: str
    metavar: str
    short: str | None = None
    is_repeatable: bool = False
    is_of_case: bool = True

    @property
    def flag(self) -> str:
        """Return the flag as it is typed."""
        return self.short or f"--e2e-{self.name}"

    @property
    def variable(self) -> str:
        """Return the environment variable."""
        return f"ASCEND_E2E_{self.name.upper().replace('-', '_')}"

    @property
    def ini(self) -> str:
        """Return the key in the ini file."""
        return f"e2e_{self.name.replace('-', '_')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """The value of an option in this session, and where it came from ("default" for the default)."""

    option: Option
    value: object
    text: str
    source: str

    @property
    def texts(self) -> Sequence[str]:
        """Return what was given each time."""
        return self.text.splitlines() if self.option.is_repeatable else (self.text,)


def _expanded(text: str) -> Path:
    return Path(os.path.expandvars(text)).expanduser()


def _path(text: str) -> Path:
    return _expanded(text).absolute()


def _existing_file(text: str) -> Path:
    path = _path(text)
    if not path.is_file():
        raise ValueError(f"{text!r} cannot be used: no such file")
    return path


def _existing(text: str) -> Path:
    path = _path(text)
    if not path.exists():
        raise ValueError(f"{text!r} cannot be used: no such file or directory")
    return path.resolve()


def _whole(text: str, *, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{text!r} cannot be used: expected a whole number from {least}")
    return int(text)


_count = functools.partial(_whole, least=0)
_steps = functools.partial(_whole, least=1)


def _changes(text: str) -> Sequence[str]:
    texts = text.splitlines()
    changes_of(texts)
    return texts


def _program(text: str) -> Path:
    path = _path(text)
    # Of a place that is closed to this user `is_file` would raise.
    if not (os.path.isfile(path) and os.access(path, os.X_OK)):  # noqa: PTH113  # as above
        raise ValueError(f"{text!r} cannot be used: expected the path of a Python interpreter")
    return path


_PLACES = (_path, _existing_file, _existing, _program)


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours < math.inf:
        raise ValueError(f"{text!r} cannot be used: expected a number of device-hours such as 250")
    return hours


def _one_of(text: str, *, words: Sequence[str]) -> str:
    if text not in words:
        raise ValueError(f"{text!r} cannot be used: expected one of {', '.join(words)}")
    return text


_progress = functools.partial(_one_of, words=PROGRESS)
_order = functools.partial(_one_of, words=ORDERS)


OPTIONS = (
    Option(
        name="runner", short="--runner", read=str, default=None, metavar="NAME",
        help="run the cases of this runner, e.g. a3-16 or sim-2 (default: found from the devices)",
    ),
    Option(
        name="runners-file", read=_existing_file, default=None, metavar="FILE",
        help="YAML file with runners of your own, added to the catalogue",
    ),
    Option(name="run-root", read=_path, default="e2e-runs", metavar="DIR", help="directory that gets one directory per run"),
    Option(
        name="cache-root", read=_path, default="~/.cache/ascend-e2e", metavar="DIR",
        help="cache of prepared datasets and tiny models",
    ),
    Option(
        name="models-root", read=_path, default="~/.cache/models", metavar="DIR",
        help="directory of the weights: <root>/<organisation>/<model>",
    ),
    Option(
        name="datasets-root", read=_path, default="~/.cache/datasets", metavar="DIR",
        help="directory of the raw datasets: <root>/hiyouga/geometry3k, <root>/openai/gsm8k",
    ),
    Option(
        name="lock-dir", read=_path, default=str(DEFAULT_LOCK_DIR), metavar="DIR",
        help="directory of the device locks; one for the whole host",
    ),
    Option(
        name="history", read=_path, default="e2e-runs/history.sqlite", metavar="FILE",
        help="database that gets every concluded run (SQLite)",
    ),
    Option(
        name="python", read=_program, default=sys.executable, metavar="FILE",
        help="Python interpreter of the training environment",
    ),
    Option(
        name="image", read=str, default=None, metavar="NAME",
        help="container image of the trainings, kept with records and baselines (default: CI_JOB_IMAGE, or what Podman says)",
    ),
    Option(
        name="run-timeout", read=parse_duration, default="3h", metavar="TIME",
        help="longest time one training may take; a case with an estimate gets three times that by default",
    ),
    Option(
        name="start-timeout", read=parse_duration, default=None, metavar="TIME",
        help="longest time until the first step begins (default: the estimate of the case, if it has one)",
    ),
    Option(
        name="first-step-timeout", read=parse_duration, default=None, metavar="TIME",
        help="longest time from the start until the first step has ended (default: one and a half times the estimate)",
    ),
    Option(
        name="step-timeout", read=parse_duration, default=None, metavar="TIME",
        help="longest time of each later step (default: the estimate)",
    ),
    Option(
        name="silence-timeout", read=parse_duration, default="20m", metavar="TIME",
        help="longest time a training may print nothing",
    ),
    Option(name="lease-timeout", read=parse_duration, default="2h", metavar="TIME", help="longest wait for free devices"),
    Option(
        name="retries", read=_count, default="0", metavar="N",
        help="repeat a training up to N times when the machine ended it (host memory, Ray, a device), never for a failed check",
    ),
    Option(
        name="budget", read=_hours, default=None, metavar="HOURS",
        help="device-hours that the cases of a plan may be estimated at together; a plan above it is red",
    ),
    Option(name="steps", read=_steps, default=None, metavar="N", help="train N steps instead of those of the recipes"),
    Option(
        name="set", read=_changes, default=None, metavar="KEY=VALUE", is_repeatable=True,
        help="override of verl's configuration, over every recipe; may be given several times",
    ),
    Option(
        name="order", read=_order, default="largest-first", metavar="ORDER",
        help="order of the cases: largest-first (by devices and expected duration; with -n, as the devices allow) or collected",
    ),
    Option(
        name="from", read=_existing, default=None, metavar="PATH", is_of_case=False,
        help="take the cases that failed in an earlier session: its JUnit file, its report directory, or directories of runs",
    ),
    Option(
        name="take", read=str, default="failed", metavar="WHICH", is_repeatable=True, is_of_case=False,
        help="what --e2e-from takes: failed, all, or the name of a case (* stands for any text); may be given several times",
    ),
    Option(
        name="report", read=_path, default=None, metavar="DIR", is_of_case=False,
        help="directory that gets all a CI uploads: junit.xml, summary.md, and the small files of each run",
    ),
    Option(
        name="progress", read=_progress, default="auto", metavar="MODE",
        help="how a running training is shown: auto, live, lines or off",
    ),
)  # fmt: skip
CONFIRM_HELP = (
    "repeat a run whose checks failed, once with the same seed and once with another, and say what the failure is; it stays red"
)
EXPORT_HELP = "write the collected cases, and in plan mode what was found of each, to a JSON file"
ELSEWHERE_HELP = (
    "run the selected cases on the runner of --runner, also those that name another; their records and reports say so, and neither "
    "history nor baselines take them"
)
KEEP_HELP = "keep the checkpoints of a test that passed; those of a red one are kept in any case"
PLAN_HELP = "judge the selected cases without a device and without training; exit status 1 if one cannot work"


def add_options(parser: pytest.Parser) -> None:
    """Declare flags and ini keys."""
    group = parser.getgroup("ascend-e2e", "end-to-end tests of RL training on Ascend NPUs")
    for option in OPTIONS:
        text = f"{option.help} [{option.variable}, {option.ini}]" + (
            "" if option.default is None else f" (default: {option.default})"
        )
        action = "append" if option.is_repeatable else "store"
        group.addoption(
            option.flag, dest=option.ini, action=action, default=None, metavar=option.metavar, help=text.replace("%", "%%")
        )
        parser.addini(option.ini, option.help, default=None)
    group.addoption("--e2e-confirm", dest="e2e_confirm", action="store_true", help=CONFIRM_HELP)
    group.addoption("--e2e-export", dest="e2e_export", type=_path, default=None, metavar="FILE", help=EXPORT_HELP)
    group.addoption("--e2e-elsewhere", dest="e2e_elsewhere", action="store_true", help=ELSEWHERE_HELP)
    group.addoption("--e2e-keep", dest="e2e_keep", action="store_true", help=KEEP_HELP)
    group.addoption("--e2e-plan", dest="e2e_plan", action="store_true", help=PLAN_HELP)


def read_settings(config: pytest.Config, environ: Mapping[str, str]) -> dict[str, Setting]:
    """Return every option's value with its source.

    Raises:
        SettingsError: with one text for each value that cannot be used.
    """
    found: dict[str, Setting] = {}
    problems: list[str] = []
    for option in OPTIONS:
        text, source = _given(option, config, environ)
        try:
            value = None if text is None else option.read(text)
        except ValueError as error:
            problems.append(f"{source}: {error}")
            continue
        found[option.name] = Setting(option=option, value=value, text=text or "", source=source)
    if problems:
        raise SettingsError(*problems)
    return found


def _given(option: Option, config: pytest.Config, environ: Mapping[str, str]) -> tuple[str | None, str]:
    flag = config.getoption(option.ini)
    if flag is not None:
        return "\n".join(flag) if option.is_repeatable else str(flag), option.flag
    if environ.get(option.variable):
        return environ[option.variable], option.variable
    ini = config.getini(option.ini)
    if ini:
        # A path there is from the directory of the file, as pytest's own are.
        here = config.invocation_params.dir if config.inipath is None else config.inipath.parent
        return str(here / _expanded(ini)) if option.read in _PLACES else str(ini), f"{option.ini} in {config.inipath}"
    return option.default, "default"


def settings_of(found: Mapping[str, Setting], rootpath: Path) -> Settings:
    """Return the settings as values; a relative default path is taken from the root directory of the session."""

    def path(name: str) -> Path:
        setting = found[name]
        if setting.source == "default" and not setting.text.startswith(("~", "/")):
            return rootpath / setting.text
        return _path(setting.text)

    def seconds(name: str) -> float:
        return parse_duration(found[name].text)

    def optional_seconds(name: str) -> float | None:
        return seconds(name) if found[name].text else None

    runners_file, budget = found["runners-file"].text, found["budget"].text
    return Settings(
        runner=found["runner"].text or None,
        runners_file=_path(runners_file) if runners_file else None,
        run_root=path("run-root"),
        cache_root=path("cache-root"),
        models_root=path("models-root"),
        datasets_root=path("datasets-root"),
        lock_dir=path("lock-dir"),
        history=path("history"),
        python=str(found["python"].value),  # whole: a training starts in the directory of its run
        image=found["image"].text,
        run_timeout_s=seconds("run-timeout"),
        silence_timeout_s=seconds("silence-timeout"),
        lease_timeout_s=seconds("lease-timeout"),
        start_timeout_s=optional_seconds("start-timeout"),
        first_step_timeout_s=optional_seconds("first-step-timeout"),
        step_timeout_s=optional_seconds("step-timeout"),
        retries=_count(found["retries"].text),
        steps=_steps(found["steps"].text) if found["steps"].text else None,
        changes=found["set"].texts,
        report=_path(found["report"].text) if found["report"].text else None,
        budget_device_hours=_hours(budget) if budget else None,
        origins={name: setting.source for name, setting in found.items() if setting.source != "default"},
    )


def header_lines(found: Mapping[str, Setting]) -> list[str]:
    """Return one line for the header with every setting that is not the default but the runner, which has its own; else none."""
    given = [
        f"{setting.option.flag} {' '.join(setting.texts)} ({setting.source})"
        for name, setting in found.items()
        if setting.source != "default" and name != "runner"
    ]
    return [f"ascend-e2e: {', '.join(given)}"] if given else []
