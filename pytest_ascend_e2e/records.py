"""The vocabulary of results: checks, diagnosis, and the versioned record of one run, with their JSON round trip.

Must not know: where a record is kept, who judges it, or who shows it. Every report is a function of what stands here.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import RecordError

SCHEMA = 1


class Verdict(enum.Enum):
    """What a check says.

    Of a run with too few steps to tell, `UNDECIDED` is what the test asked for, and makes it red as a failure does; `NOT_MADE` is
    what it did not ask for.
    """

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    NOT_MADE = "not made"


class Ending(enum.Enum):
    """How a training process ended, seen from outside."""

    EXITED = "exited"  # by itself; `exit_status` says how
    SIGNALLED = "signalled"  # by a signal that was not ours
    DEADLINE = "deadline"  # we ended it because a deadline passed
    FATAL_LINE = "fatal-line"  # we ended it because its log said that it cannot go on
    INTERRUPTED = "interrupted"  # we ended it because the session was asked to stop


class Kind(enum.Enum):
    """The kind of a failure."""

    HCCL = "hccl"
    PORT_CONFLICT = "port-conflict"
    DEVICE_BUSY = "device-busy"
    DEVICE_UNAVAILABLE = "device-unavailable"
    DEVICE_OOM = "device-oom"
    HOST_OOM = "host-oom"
    DEVICE_ERROR = "device-error"
    WORKER_CRASH = "worker-crash"
    ROLLOUT_ENGINE = "rollout-engine"
    RAY_RESOURCES = "ray-resources"
    ENVIRONMENT = "environment"
    DATA = "data"
    DISK_FULL = "disk-full"
    CONFIG = "config"
    CODE_ERROR = "code-error"
    NUMERIC = "numeric"
    HANG = "hang"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Why a run failed: the kind, the line of the log that is the root cause, and whose turn it is.

    `infra` is true where the machine, its neighbours, its network or its installed software must change before a repeat can
    pass. `line` is empty where the log shows no cause. `advice` is one sentence on what to do.
    """

    kind: Kind
    line: str
    infra: bool
    advice: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One judgement on the metrics of a run.

    `name` is dotted, the group first (`rewards.rise`); `value` and `limit` are in the metric's own unit, None where the check is
    no comparison or the value is absent; `comparison` is how value must stand to limit (`>=`); `origin` says where the limit
    comes from; `step` is the step that decided, None where a whole window did; `message` is the sentence for a reader; `band` is
    what a baseline expects, from its least to its highest value, None where the limit comes from no baseline.
    """

    name: str
    verdict: Verdict
    message: str
    metric: str = ""
    value: float | None = None
    comparison: str = ""
    limit: float | None = None
    origin: str = ""
    step: int | None = None
    band: tuple[float, float] | None = None

    @property
    def is_failed(self) -> bool:
        """Tell whether this check makes its test red."""
        return self.verdict in (Verdict.FAILED, Verdict.UNDECIDED)


@dataclass(frozen=True, kw_only=True, slots=True)
class HostUse:
    """What the host gave while one run trained, neighbours included: figures of the same moments, 64 at most.

    `at_s` are seconds since the start. Memory is that of the container where it has a limit, else of the host, in GB (2 ** 30
    bytes) as all sizes here; `shm_gb` is in use in /dev/shm, `disk_free_gb` is left where the run directory lies. Where moments
    were merged, the worst stands for all. A total is 0 where it is not known.
    """

    at_s: Sequence[float] = ()
    memory_gb: Sequence[float] = ()
    shm_gb: Sequence[float] = ()
    disk_free_gb: Sequence[float] = ()
    memory_total_gb: float = 0.0
    shm_total_gb: float = 0.0

    @property
    def peak_memory_gb(self) -> float:
        """Return the most memory that was in use, 0 where nothing was seen."""
        return max(self.memory_gb, default=0.0)

    @property
    def peak_shm_gb(self) -> float:
        """Return the most of /dev/shm that was in use, 0 where nothing was seen."""
        return max(self.shm_gb, default=0.0)

    @property
    def least_disk_free_gb(self) -> float | None:
        """Return the least that was left of the disk, None where nothing was seen."""
        return min(self.disk_free_gb, default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A group of checks that a test asked for, with every argument that it was made with: JSON values only.

    With them and the metrics the same checks can be made again, without the test.
    """

    group: str
    arguments: Mapping[str, Any]


# The failed check of a run whose test failed by itself, or was interrupted: what it asserted cannot be made again from a record.
BODY = "test.body"
INTERRUPTED = "test.interrupted"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """One run and its checks: what every report, history and baseline is made from.

    Times are UTC in ISO 8601, durations in seconds. `summary` holds the figures a reader asks first (flat, finite numbers only),
    `versions` the installed versions by distribution name ("none" where there is none), `problems` what else was wrong. `commit` is
    that of the cases, empty outside a repository, `is_dirty` tells that files differed from it; `device` is the chip. `retried_as`
    names the run that repeats this one because the machine, not the training, had failed. `changed` says what the session laid over
    the recipe of the case, `host` what the host had meanwhile. `image` is the container image that the training ran in, empty where
    nothing tells it. `asked` is what its test asked for.
    """

    run_id: str
    case: str
    runner: str
    devices: int
    nodes: int
    model: str
    dataset: str
    algorithm: str
    engine: str
    rollout: str
    layout: str
    steps: int
    started_at: str
    duration_s: float
    ending: Ending
    exit_status: int | None
    signal: str | None
    end_reason: str
    run_dir: str
    rerun_command: str
    device_ids: Sequence[int] = ()
    last_step: int | None = None
    summary: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    diagnosis: Diagnosis | None = None
    problems: Sequence[str] = ()
    commit: str = ""
    is_dirty: bool = False
    device: str = ""
    retried_as: str = ""
    changed: Sequence[str] = ()
    host: HostUse = field(default_factory=HostUse)
    image: str = ""
    asked: Sequence[Asked] = ()

    @property
    def is_completed(self) -> bool:
        """Tell whether the training process ended by itself with exit status 0."""
        return self.ending is Ending.EXITED and self.exit_status == 0

    @property
    def is_infra_failure(self) -> bool:
        """Tell whether the machine ended the training, by the diagnosis: what another attempt may not meet again."""
        return not self.is_completed and self.diagnosis is not None and self.diagnosis.infra

    @property
    def is_passed(self) -> bool:
        """Tell whether the process completed and no check failed."""
        return self.is_completed and not self.failed_checks

    @property
    def made_checks(self) -> Sequence[Check]:
        """Return the checks that say something of the run: all but those that nobody asked for and that need more steps."""
        return [check for check in self.checks if check.verdict is not Verdict.NOT_MADE]

    @property
    def failed_checks(self) -> Sequence[Check]:
        """Return the checks that make the run red, those that could not be decided last: a broken limit says more."""
        failed = [check for check in self.checks if check.is_failed]
        return sorted(failed, key=lambda check: check.verdict is Verdict.UNDECIDED)

    @property
    def was_interrupted(self) -> bool:
        """Tell whether somebody stopped the training or its test, which says nothing of either."""
        return self.ending is Ending.INTERRUPTED or any(check.name == INTERRUPTED for check in self.checks)

    def with_checks(self, checks: Sequence[Check]) -> RunRecord:
        """Return the same record with these checks."""
        return dataclasses.replace(self, checks=tuple(checks))

    def to_json(self, *, indent: int | None = 1) -> str:
        """Return the record as JSON with `"schema": 1`, in one line without `indent`.

        Numbers that are not finite are written as text, and what UTF-8 cannot hold as JSON's own escape.
        """
        data = {"schema": SCHEMA, **_plain(dataclasses.asdict(self))}
        text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "backslashreplace").decode() + "\n"

    @classmethod
    def from_json(cls, text: str, *, origin: str) -> RunRecord:
        """Return the record that `text` holds; `origin` names the file in an error.

        Raises:
            RecordError: not JSON, not schema 1, or a field is missing or of another shape.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{origin}: not JSON ({error}); expected a record written by a run") from error
        found = data.pop("schema", None) if isinstance(data, dict) else None
        if found != SCHEMA:
            raise RecordError(f"{origin}: record of schema {found!r}; this version reads schema {SCHEMA}")
        try:
            record = cls(**_typed(data))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RecordError(f"{origin}: not a whole record: {error}") from error
        wrong = _of_another_type(record)
        if wrong:
            raise RecordError(f"{origin}: not a whole record: {'; '.join(wrong)}")
        return record


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _typed(data: dict[str, Any]) -> dict[str, Any]:
    checks = tuple(
        Check(
            **{
                **check,
                "verdict": Verdict(check["verdict"]),
                "value": _number(check.get("value")),
                "limit": _number(check.get("limit")),
                "band": _band(check.get("band")),
            }
        )
        for check in data["checks"]
    )
    found = data["diagnosis"]
    return {
        **data,
        "ending": Ending(data["ending"]),
        "checks": checks,
        "diagnosis": None if found is None else Diagnosis(**{**found, "kind": Kind(found["kind"])}),
        "device_ids": tuple(data["device_ids"]),
        "problems": tuple(map(str, data["problems"])),
        # Records of an older version have neither.
        "changed": tuple(map(str, data.get("changed", ()))),
        "asked": tuple(Asked(**asked) for asked in data.get("asked", ())),
        "host": _host(data.get("host", {})),
    }


def _of_another_type(record: RunRecord) -> list[str]:
    """Return what is wrong with the fields that are read as they stand."""
    values = [(field.name, str(field.type), getattr(record, field.name)) for field in dataclasses.fields(record)]
    return [f"{name}: {value!r} cannot be used: expected {kind}" for name, kind, value in values if not _is_of(kind, value)]


def _is_of(kind: str, value: Any) -> bool:
    if kind == "Mapping[str, str]":
        return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())
    return isinstance(value, _READ_AS_THEY_STAND.get(kind, object))


_READ_AS_THEY_STAND: Mapping[str, type | tuple[type, ...]] = {
    "str": str, "int": int, "float": (int, float), "Mapping[str, float]": Mapping,
}  # fmt: skip


def _host(data: Mapping[str, Any]) -> HostUse:
    fields: dict[str, Any] = {key: tuple(map(float, of)) if isinstance(of, list) else float(of) for key, of in data.items()}
    return HostUse(**fields)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _band(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    low, high = value
    return float(low), float(high)
