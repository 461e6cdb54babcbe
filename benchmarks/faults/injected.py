"""The faults: each takes a sound run and spoils it, and says by which checks it is rightly caught."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from healthy import Rows, console_log

Spoil = Callable[[Rows, random.Random], None]
SpoilLog = Callable[[list[bytes]], list[bytes]]

REWARD = "critic/rewards/mean"
DIFF, DIFF_MAX = "training/rollout_probs_diff_mean", "training/rollout_probs_diff_max"
PEARSON, K3, RATIO = "training/rollout_actor_probs_pearson_corr", "rollout_corr/k3_kl", "rollout_corr/ppl_ratio"
TIME, RATE, MEMORY = "timing_s/step", "perf/throughput", "actor/perf/max_memory_allocated_gb"
GRAD, ENTROPY, LR = "actor/grad_norm", "actor/entropy", "actor/lr"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A fault by name; `checks` are the names (or their beginnings) of which one must fail; `exit_status` that of the process."""

    name: str
    checks: tuple[str, ...]
    spoil: Spoil = lambda rows, rng: None
    log: SpoilLog = lambda lines: lines
    exit_status: int = 0

    def lines(self, rows: Rows, rng: random.Random) -> list[bytes]:
        """Return the console log of a run with this fault."""
        spoilt = {step: dict(row) for step, row in rows.items()}
        self.spoil(spoilt, rng)
        return self.log(console_log(spoilt))


def put(key: str, value: float, *steps: int) -> Spoil:
    """Set a metric at these steps, at all where none is named."""

    def spoil(rows: Rows, _: random.Random) -> None:
        for step in steps or rows:
            rows[step][key] = value

    return spoil


def times(key: str, factor: Callable[[int], float]) -> Spoil:
    """Multiply a metric by a factor of the step."""

    def spoil(rows: Rows, _: random.Random) -> None:
        for step, row in rows.items():
            row[key] *= factor(step)

    return spoil


def slower(factor: Callable[[int], float]) -> Spoil:
    """Make steps slower: every time with them, throughput against them."""

    def spoil(rows: Rows, _: random.Random) -> None:
        for step, row in rows.items():
            for key in row:
                if key.startswith("timing_s/") or key == "perf/time_per_step":
                    row[key] *= factor(step)
            row[RATE] /= factor(step)

    return spoil


def without(key: str, *steps: int) -> Spoil:
    """Leave a metric out at these steps, at all where none is named."""

    def spoil(rows: Rows, _: random.Random) -> None:
        for step in steps or tuple(rows):
            rows[step].pop(key, None)

    return spoil


def only(keep: Callable[[int], bool]) -> Spoil:
    """Keep these steps only."""

    def spoil(rows: Rows, _: random.Random) -> None:
        for step in [step for step in rows if not keep(step)]:
            del rows[step]

    return spoil


def rewards(level: Callable[[int], float], noise: float = 0.03) -> Spoil:
    """Give the reward this course, with the noise of a batch."""

    def spoil(rows: Rows, rng: random.Random) -> None:
        for step, row in rows.items():
            row[REWARD] = min(1.0, max(0.0, level(step) + rng.gauss(0, noise)))

    return spoil


def both(*spoils: Spoil) -> Spoil:
    """Do one after the other."""

    def spoil(rows: Rows, rng: random.Random) -> None:
        for one in spoils:
            one(rows, rng)

    return spoil


def equal_rewards(rows: Rows, _: random.Random, value: float = 0.0, first: int = 1) -> None:
    """Give every response one reward from step `first` on; advantages and gradient go with it."""
    for step, row in rows.items():
        if step >= first:
            row |= {REWARD: value, "critic/rewards/max": value, "critic/rewards/min": value}
            row |= {"critic/advantages/max": 0.0, "critic/advantages/min": 0.0, GRAD: 0.0}


# What a real simulated training showed whose experts were packed wrongly for the rollout engine: its first fifteen steps.
WRONG_WEIGHTS = {
    DIFF: (0.1434, 0.1493, 0.1476, 0.1465, 0.1481, 0.1505, 0.1542, 0.1520, 0.1511, 0.1468, 0.1401, 0.1448, 0.1383, 0.1443, 0.1447),
    K3: (4.208, 4.051, 3.701, 3.036, 3.179, 2.880, 2.973, 2.619, 2.546, 2.436, 2.194, 2.183, 2.049, 2.022, 1.906),
    RATIO: (223.3, 138.6, 86.48, 47.65, 177.6, 37.32, 37.83, 29.02, 37.34, 28.03, 17.57, 17.03, 11.37, 24.13, 14.29),
}


def wrong_weights(rows: Rows, _: random.Random) -> None:
    """Give a run the agreement of one whose weights were packed wrongly."""
    for row, *values in zip(rows.values(), *WRONG_WEIGHTS.values(), strict=True):
        row |= {**dict(zip(WRONG_WEIGHTS, values, strict=True)), PEARSON: 0.8}


def idle_devices(rows: Rows, _: random.Random) -> None:
    """Train on half of the devices: verl divides by those it has."""
    for row in rows.values():
        row[RATE] *= 2


def exploding_entropy(rows: Rows, _: random.Random) -> None:
    """Let the entropy grow without end, past a nat also where it begins near zero."""
    for step, row in rows.items():
        row[ENTROPY] = max(row[ENTROPY] * math.exp(0.25 * step), 0.02 * math.exp(0.33 * step))


NAN, INF = math.nan, math.inf
LOGPROB = ("logprob.",)
TIMES = ("baseline.perf/throughput", "baseline.timing_s/step")

FAULTS = (
    # Numbers that are none.
    Fault(name="reward NaN in one step", checks=("completed.finite",), spoil=put(REWARD, NAN, 6)),
    Fault(name="reward NaN from step 6 on", checks=("completed.finite",), spoil=put(REWARD, NAN, *range(6, 16))),
    Fault(name="gradient NaN in one step", checks=("completed.finite",), spoil=put(GRAD, NAN, 9)),
    Fault(name="loss infinite in the last step", checks=("completed.finite",), spoil=put("actor/pg_loss", INF, 15)),
    Fault(name="probability difference NaN", checks=("completed.finite",), spoil=put(DIFF, NAN, 12)),
    Fault(name="throughput NaN in one step", checks=("completed.finite",), spoil=put(RATE, NAN, 7)),
    # Steps and processes.
    Fault(
        name="crash after step 5 of 15",
        checks=("completed.steps", "completed.process"),
        spoil=only(lambda s: s <= 5),
        exit_status=1,
    ),
    Fault(name="crash after step 5, exit status lost", checks=("completed.steps",), spoil=only(lambda s: s <= 5)),
    Fault(name="killed after the last step", checks=("completed.process",), exit_status=137),
    Fault(name="ends green after step 14", checks=("completed.steps",), spoil=only(lambda s: s <= 14)),
    Fault(name="only one step", checks=("completed.steps",), spoil=only(lambda s: s == 5)),
    Fault(name="one step missing in the middle", checks=("completed.steps",), spoil=only(lambda s: s != 8)),
    Fault(name="empty log", checks=("completed.log", "completed.steps"), log=lambda lines: []),
    Fault(name="log without a step", checks=("completed.log", "completed.steps"), log=lambda lines: lines[:2]),
    Fault(name="log cut in the last line", checks=("completed.log",), log=lambda lines: [*lines[:-1], lines[-1][:300]]),
    Fault(
        name="log cut in the middle", checks=("completed.log", "completed.steps"), log=lambda lines: [*lines[:16], lines[16][:200]]
    ),
    Fault(name="steps doubled", checks=("completed.log",), log=lambda lines: [line for line in lines for _ in range(2)]),
    Fault(name="started again in the same log", checks=("completed.log",), log=lambda lines: [*lines[:15], *lines]),
    Fault(
        name="number broken in one line",
        checks=("completed.log",),
        log=lambda lines: [line.replace(b"actor/lr:1e-06", b"actor/lr:1e-0x6") if b"step:9 -" in line else line for line in lines],
    ),
    Fault(
        name="one line lost", checks=("completed.steps",), log=lambda lines: [line for line in lines if b" step:11 -" not in line]
    ),
    Fault(
        name="step numbers off by one",
        checks=("completed.numbering", "completed.steps"),
        spoil=times("training/global_step", lambda s: (s + 1) / s),
    ),
    Fault(name="reward missing", checks=("completed.every-metric",), spoil=without(REWARD)),
    Fault(name="probability difference missing", checks=LOGPROB, spoil=without(DIFF)),
    Fault(name="throughput missing", checks=("throughput.", "baseline."), spoil=without(RATE)),
    Fault(name="memory missing in the last step", checks=("completed.every-metric",), spoil=without(MEMORY, 15)),
    Fault(name="entropy stops after step 9", checks=("completed.every-metric",), spoil=without(ENTROPY, *range(10, 16))),
    # Rewards.
    Fault(name="reward collapses to a third", checks=("rewards.",), spoil=rewards(lambda s: 0.4 if s <= 9 else 0.13)),
    Fault(name="reward collapses in the last steps", checks=("rewards.",), spoil=rewards(lambda s: 0.4 if s <= 10 else 0.05)),
    Fault(name="reward falls slowly to a third", checks=("rewards.",), spoil=rewards(lambda s: 0.42 - 0.02 * s)),
    Fault(name="reward always zero", checks=("rewards.spread",), spoil=equal_rewards),
    Fault(name="reward always one", checks=("rewards.spread",), spoil=lambda rows, rng: equal_rewards(rows, rng, 1.0)),
    Fault(
        name="reward clipped to one value from step 10",
        checks=("rewards.clipped",),
        spoil=lambda rows, rng: equal_rewards(rows, rng, 1.0, 10),
    ),
    Fault(name="reward wrong from the start", checks=("baseline.critic/rewards/mean",), spoil=rewards(lambda s: 0.16)),
    Fault(
        name="advantages all zero",
        checks=("rewards.advantage",),
        spoil=both(put("critic/advantages/max", 0.0), put("critic/advantages/min", 0.0)),
    ),
    Fault(
        name="reward hacking: answers of a few tokens",
        checks=("health.response-length",),
        spoil=both(rewards(lambda s: min(0.95, 0.36 + 0.06 * s)), times("response_length/mean", lambda s: max(0.01, 1 - 0.1 * s))),
    ),
    Fault(
        name="reward hacking: policy without choice",
        checks=("health.entropy-collapse",),
        spoil=both(rewards(lambda s: min(0.95, 0.36 + 0.06 * s)), times(ENTROPY, lambda s: math.exp(-0.4 * s))),
    ),
    # Rollout against training, actor against reference.
    Fault(
        name="weights not synced: drift grows each step",
        checks=LOGPROB,
        spoil=both(times(DIFF, lambda s: 1 + 0.7 * (s - 1)), times(K3, lambda s: s * s), times(PEARSON, lambda s: 1 - 0.004 * s)),
    ),
    Fault(name="weights packed wrongly (measured values)", checks=LOGPROB, spoil=wrong_weights),
    Fault(name="log-prob drift at one step", checks=LOGPROB, spoil=put(DIFF, 0.02, 9)),
    Fault(name="log-prob drift at the last step", checks=LOGPROB, spoil=put(DIFF, 0.05, 15)),
    Fault(name="log-prob drift, slow", checks=LOGPROB, spoil=times(DIFF, lambda s: 1 + 0.3 * (s - 1))),
    Fault(
        name="difference half as large again",
        checks=("baseline.training/rollout_probs_diff_mean",),
        spoil=times(DIFF, lambda s: 1.5),
    ),
    Fault(name="correlation low in one step", checks=("logprob.pearson",), spoil=put(PEARSON, 0.93, 4)),
    Fault(name="k3 high in one step", checks=("logprob.k3",), spoil=put(K3, 0.3, 10)),
    Fault(name="perplexities apart", checks=("logprob.perplexity",), spoil=put(RATIO, 1.2)),
    Fault(name="nothing could be compared", checks=("logprob.valid",), spoil=put("training/rollout_probs_diff_valid", 0.0, 3)),
    Fault(name="wrong reference", checks=("logprob.reference-start",), spoil=put("actor/kl_loss", 0.02, 1)),
    Fault(name="reference absent", checks=("logprob.reference",), spoil=without("actor/kl_loss")),
    # Updates.
    Fault(name="no gradient at all", checks=("completed.gradient", "health.gradient"), spoil=put(GRAD, 0.0)),
    Fault(name="no gradient at one step", checks=("health.gradient",), spoil=put(GRAD, 0.0, 7)),
    Fault(name="gradient explodes", checks=("health.gradient-size",), spoil=put(GRAD, 900.0, 13)),
    Fault(name="learning rate ten times too high", checks=("health.learning-rate",), spoil=times(LR, lambda s: 10)),
    Fault(name="learning rate ten times too low", checks=("health.learning-rate",), spoil=times(LR, lambda s: 0.1)),
    Fault(name="learning rate zero", checks=("health.learning-rate",), spoil=put(LR, 0.0)),
    Fault(name="entropy explodes", checks=("health.entropy-explosion",), spoil=exploding_entropy),
    Fault(name="most tokens clipped", checks=("health.clip-fraction",), spoil=put("actor/pg_clipfrac", 0.8, *range(5, 16))),
    Fault(name="every token clipped", checks=("health.clip-fraction",), spoil=put("actor/pg_clipfrac", 1.0, 8)),
    Fault(name="responses lost by the engine", checks=("health.aborted",), spoil=put("response/aborted_ratio", 0.05, 6)),
    Fault(name="every response cut", checks=("health.cut-responses",), spoil=put("response_length/clip_ratio", 1.0)),
    # Speed and memory.
    Fault(name="6 % slower", checks=TIMES, spoil=slower(lambda s: 1.06)),
    Fault(name="10 % slower", checks=TIMES, spoil=slower(lambda s: 1.10)),
    Fault(name="30 % slower from step 8 on", checks=TIMES, spoil=slower(lambda s: 1 + 0.3 * (s >= 8))),
    Fault(name="one step stalls", checks=("throughput.slow-step",), spoil=slower(lambda s: 6.0 if s == 10 else 1.0)),
    Fault(name="half of the devices idle", checks=("throughput.devices",), spoil=idle_devices),
    Fault(name="throughput zero in one step", checks=("throughput.devices",), spoil=put(RATE, 0.0, 8)),
    Fault(
        name="memory leak", checks=("throughput.memory-growth", "baseline.actor/perf"), spoil=times(MEMORY, lambda s: 1 + 0.02 * s)
    ),
    Fault(name="2 GB more memory", checks=("baseline.actor/perf/max_memory_allocated_gb",), spoil=times(MEMORY, lambda s: 1.055)),
    Fault(name="memory peaks in step 8 only", checks=("baseline.actor/perf/max_memory_allocated_gb",), spoil=put(MEMORY, 55.0, 8)),
)
