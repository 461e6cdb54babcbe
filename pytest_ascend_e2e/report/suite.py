"""A file that holds what a session collected and planned, for whoever is no pytest: cases, their plans, what went wrong.

Must not know: how either came about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import RecordError
from ..session import SuiteCase
from .plan import PlanRow

SCHEMA = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """What a session collected: its settings, its cases, and in plan mode a row for each case and runner.

    `failures` are the cases that are red without a plan, with the reason; `problems` is what makes the session itself red, and
    `notes` what a reader should know of this host.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    cases: tuple[SuiteCase, ...] = ()
    rows: tuple[PlanRow, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return it as JSON with its schema."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False)

    @classmethod
    def read(cls, path: Path) -> Suite:
        """Return what `to_json` wrote into a file.

        Raises:
            RecordError: the file cannot be read, or has another schema.
        """
        try:
            document: dict[str, Any] = dict(json.loads(path.read_text(encoding="utf-8")))
            schema = document.pop("schema")
            if schema != SCHEMA:
                raise RecordError(f"{path}: a suite of schema {schema!r}; this version reads schema {SCHEMA}")
            fields: dict[str, Any] = {name: tuple(document.pop(name)) for name in ("problems", "notes")}
            fields["cases"] = tuple(SuiteCase(**{**case, "runners": tuple(case["runners"])}) for case in document.pop("cases"))
            fields["rows"] = tuple(PlanRow.of(row) for row in document.pop("rows"))
            return cls(**fields, **document)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise RecordError(f"{path}: no suite as --e2e-export writes it: {error}") from error
