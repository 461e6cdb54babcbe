"""The exceptions of the package; every message says what was given, where it came from, what is accepted and what to do.

Must not know: pytest, or how an error is shown. Only `plugin/` and `cli/` turn these into pytest's outcomes and exit statuses.
"""

from __future__ import annotations

from collections.abc import Sequence


def did_you_mean(near: Sequence[str], *, before: str = "", otherwise: str = "") -> str:
    """Return the question after a name that is not known, with `before` in front; `otherwise` where no known one is near it."""
    return f"{before}did you mean {' or '.join(map(repr, near))}?" if near else otherwise


class E2EError(Exception):
    """A mistake or a lack that a user can mend; `problems` holds one text for each, all of one input together."""

    def __init__(self, *problems: str) -> None:
        if not problems:
            raise ValueError("an E2EError needs at least one problem to tell")
        super().__init__(*problems)
        self.problems: tuple[str, ...] = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


class SettingsError(E2EError):
    """An option, a variable or an ini key has a value that cannot be used."""


class RecipeError(E2EError):
    """A recipe holds a value that no training can have: wrong type, unknown or doubled override."""


class AuthoringError(E2EError):
    """A script or a command cannot be made into a case."""


class LayoutError(E2EError):
    """The parallel sizes of a recipe do not fill the devices of its runner."""


class RunnerError(E2EError):
    """A runner is unknown, the catalogue cannot be read, or the devices of this host cannot be told."""


class LeaseError(E2EError):
    """Devices or ports could not be had."""


class DatasetError(E2EError):
    """A raw dataset is missing, unreadable or not of the expected shape."""


class ModelError(E2EError):
    """The weights of a model are missing, or a tiny model could not be made."""


class PreflightError(E2EError):
    """A case cannot work, as was proven without a device."""


class CollectionError(PreflightError):
    """The cases of a suite cannot be collected; the first problem is a heading, and the others are what pytest said, by lines."""


class LaunchError(E2EError):
    """The training process could not be started."""


class MetricError(E2EError, LookupError):
    """A metric, or a step of it, was asked for that the run did not print."""


class RecordError(E2EError):
    """A record cannot be read: not JSON, another schema, a field missing."""


class CheckError(E2EError):
    """A check was asked for with a limit or a window that it cannot use."""


class BaselineError(E2EError):
    """A baseline cannot be used: a field is missing, of another shape, or it rests on too few runs."""


class HistoryError(E2EError):
    """The history of runs cannot be read or written, or is none."""


class ReportError(E2EError):
    """A report of a session, such as a JUnit file, cannot be read."""
