"""What a session was asked for: values only, already read and checked.

Must not know: how a value is read from flag, variable or ini file; `plugin/` does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_PATHS = ("runners_file", "run_root", "cache_root", "models_root", "datasets_root", "lock_dir", "history", "report")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of one session.

    Durations are in seconds. `runner` is None where it is to be found from the devices; `runners_file` is the user's own addition
    to the catalogue; `python` is the interpreter of the training environment; `retries` is how often a training that the machine
    ended is repeated; `history` is the database that gets every concluded run, None for none; `budget_device_hours` is what the
    cases of a plan may cost together; `image` is the container image as somebody gave it; `steps` and `changes` (KEY=VALUE) are
    laid over every recipe of the session; `report` is the directory that gets what a CI uploads. `origins` says where a setting
    came from (`--e2e-run-timeout`), by the name of its option, unless it is the default.
    """

    runner: str | None
    runners_file: Path | None
    run_root: Path
    cache_root: Path
    models_root: Path
    datasets_root: Path
    lock_dir: Path
    python: str
    run_timeout_s: float
    silence_timeout_s: float
    lease_timeout_s: float
    start_timeout_s: float | None = None
    first_step_timeout_s: float | None = None
    step_timeout_s: float | None = None
    retries: int = 0
    history: Path | None = None
    budget_device_hours: float | None = None
    image: str = ""
    steps: int | None = None
    changes: Sequence[str] = ()
    report: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def told_changes(self) -> tuple[str, ...]:
        """What is laid over every recipe, as text."""
        return (*(() if self.steps is None else (f"steps={self.steps}",)), *self.changes)

    def to_plain(self) -> dict[str, Any]:
        """Return the settings as JSON has them."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Settings:
        """Read back what `to_plain` returned."""
        fields: dict[str, Any] = dict(plain)
        fields.update({name: Path(fields[name]) for name in _PATHS if fields[name] is not None})
        return cls(**fields)
