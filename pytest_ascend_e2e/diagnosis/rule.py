"""What a rule of the diagnosis is: texts to look for, the kind they mean, how deep a cause they are, and what to do.

Must not know: where lines come from, or which rules there are.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..records import Kind

INFRA = frozenset(
    {
        Kind.HCCL,
        Kind.PORT_CONFLICT,
        Kind.DEVICE_BUSY,
        Kind.DEVICE_UNAVAILABLE,
        Kind.HOST_OOM,
        Kind.DEVICE_ERROR,
        Kind.RAY_RESOURCES,
        Kind.ENVIRONMENT,
        Kind.DISK_FULL,
    }
)
"""The kinds for which machine, neighbours, network or installed software must change before a repeat can pass."""


class Rank(enum.IntEnum):
    """How deep a cause a line tells; of one rank the first line of the log counts.

    An ERROR may be the consequence of an earlier ERROR (a late time-out of other ranks), hence the order in time decides; a CAUSE
    is never a consequence of anything in this list, hence it beats whatever came before it.
    """

    ECHO = 0  # repeats that something else failed: a wrapper, a peer that went away
    DEATH = 1  # says that something died or which call failed, not why
    ERROR = 2  # an error with a place of its own
    CAUSE = 3  # names what must change


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One row of the table: a line that holds one of `texts` (lower case) or matches one of `patterns` tells `kind` with `rank`.

    A pattern stands with a word in lower case that each of its matches holds: only where the word occurs the pattern is tried, so
    that a log of gigabytes costs little. `origin` says which software prints the line. `at_warning`: counts also on a line that is
    logged below the level of an error. `is_shutdown_noise`: is printed also after a run that went well, when its processes are
    torn down.
    """

    kind: Kind
    rank: Rank
    origin: str
    advice: str = ""
    texts: Sequence[str] = ()
    patterns: Sequence[tuple[str, re.Pattern[str]]] = ()
    at_warning: bool = False
    is_shutdown_noise: bool = False

    @property
    def words(self) -> tuple[tuple[str, re.Pattern[str] | None], ...]:
        """Return every word to look for in the line in lower case, with the pattern that must confirm it, if any."""
        return (*((text, None) for text in self.texts), *self.patterns)

    @property
    def finding(self) -> Finding:
        """Return what a matching line tells."""
        return Finding(kind=self.kind, rank=self.rank, advice=self.advice, is_shutdown_noise=self.is_shutdown_noise)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one line tells: the kind, how deep it is, and what to do (empty: what is said for the kind)."""

    kind: Kind
    rank: Rank
    advice: str = ""
    is_shutdown_noise: bool = False


def by_rank(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules in the order in which they are asked: the deepest first, then as they are written."""
    return tuple(sorted(rules, key=lambda rule: -rule.rank))


ADVICE: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.HCCL: "Look for the rank that failed first, and at the devices' network (link, firewall, HCCL_CONNECT_TIMEOUT).",
        Kind.PORT_CONFLICT: "Find who holds the port (`ss -ltnp`), or let each run have a port range of its own.",
        Kind.DEVICE_BUSY: "Find who holds the device (`npu-smi info`), end leftovers of earlier runs, and repeat.",
        Kind.DEVICE_UNAVAILABLE: "Compare ASCEND_RT_VISIBLE_DEVICES and the devices of the container with `npu-smi info`.",
        Kind.DEVICE_OOM: "Lower the micro-batch, the token limit or gpu_memory_utilization, or switch offloading on.",
        Kind.HOST_OOM: "Give the container more memory, or lower what offloading and data workers hold.",
        Kind.DEVICE_ERROR: "Check the device and its driver (`npu-smi info -t health`, plog), and repeat on another device.",
        Kind.WORKER_CRASH: "A process died without saying why: look at its log in Ray's session directory, and at dmesg.",
        Kind.ROLLOUT_ENGINE: "The rollout engine died without saying why: look at the log of its own processes.",
        Kind.RAY_RESOURCES: "Compare what the run asks of Ray with `ray status`: devices, CPUs, and whether the cluster is alive.",
        Kind.ENVIRONMENT: "Install what is missing, or versions that belong together (CANN, torch_npu, vllm-ascend, verl).",
        Kind.DATA: "Check that the path of the dataset, model or checkpoint exists on this machine and is complete.",
        Kind.DISK_FULL: "Free space on the disk of checkpoints, logs and temporary files.",
        Kind.CONFIG: "Correct the setting that the line names.",
        Kind.CODE_ERROR: "An error of the program: read the traceback above the line.",
        Kind.NUMERIC: "Look at the metrics around this step: log-prob consistency, gradient norm, learning rate, reward function.",
        Kind.HANG: "Look at the stacks of the processes (py-spy dump) at the last line of the log.",
        Kind.UNKNOWN: "The log shows no cause: look at the logs of the workers in Ray's session directory.",
    }
)
"""What to do about a kind, where a rule has nothing better to say."""
