"""What the step lines of a console log tell: how far the training came, and whether its numbers went wrong.

Must not know: errors. The metrics are read in full by `metrics/`; here only the few that speak of divergence, in bounded memory.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

STEP = re.compile(r"(?:^|[\s\]])step:(\d{1,9}) - ")
_TRAINED = re.compile(r" - (?!val-)(?:training|actor|critic|timing|timing_s|perf|response_length|train)[/(]")
_TOTAL = re.compile(r"Total training steps: (\d{1,9})")
# verl's bars of progress, each drawn when its first step begins: reinforcement learning, fine-tuning.
_BEGUN = re.compile(r"Training Progress: |Epoch \d{1,6}/\d{1,6}: ")
_DONE = re.compile(r"Final validation metrics\b|Training Progress: 100%\|")
_NUMBER = r"(?:np\.\w{1,12}\()?([-+]?(?:nan|inf|\d{0,20}\.?\d{1,20}(?:e[-+]?\d{1,4})?))"
_METRIC = re.compile(
    r"(actor/(?:loss|pg_loss|kl_loss|entropy|entropy_loss|ppo_kl|grad_norm)|critic/(?:loss|vf_loss|grad_norm|kl)"
    r"|critic/(?:rewards|score|advantages|returns)/(?:mean|max|min)|training/rollout_probs_diff_(?:mean|valid)"
    r"|training/rollout_actor_probs_pearson_corr|rollout_corr/(?:kl|k3_kl)|train/(?:loss|grad_norm)):" + _NUMBER + r"(?![\w.])\)?",
    re.IGNORECASE,
)
_NO_WORDS = re.compile(r"^\[response\] (\S)\1{39}")

# Twice the most that sound runs show between rollout and training (0.004 to 0.025); their Pearson correlation is above 0.98.
MAX_PROBS_DIFF = 0.05
MIN_PEARSON = 0.9
_GRADIENT_JUMP = 50.0
_REWARD_LOSS = 0.5
_WINDOW = 5
_MIN_STEPS_FOR_TREND = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A step whose numbers are wrong: an excerpt of its line, and what is wrong with it."""

    line: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    number: int
    values: Mapping[str, float]
    texts: Mapping[str, str]

    def doubt(self, key: str, why: str) -> Doubt:
        return Doubt(line=f"step:{self.number} - … - {self.texts[key]} - …", why=why)


@dataclass(slots=True)
class Progress:
    """Follows a log line by line; `steps` is the number asked for, None to take it from the log."""

    steps: int | None = None
    last: int | None = None
    count: int = 0
    is_done: bool = False
    has_begun: bool = False
    _recent: deque[_Step] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _rewards: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _best_reward: float = -math.inf
    _gradients: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    _not_finite: Doubt | None = None
    _wordless: str = ""

    @property
    def is_finished(self) -> bool:
        """Tell whether the last step was reached, or the log says that the training is complete."""
        return self.is_done or (self.steps is not None and self.last is not None and self.last >= self.steps)

    def feed(self, text: str) -> bool:
        """Take one clean line; return whether it completes a training step that had not been seen."""
        if not self.has_begun:
            self.has_begun = bool(_BEGUN.search(text))
        if "Training" in text or "training" in text or "Final" in text:
            self.is_done = self.is_done or bool(_DONE.search(text))
            if self.steps is None and (total := _TOTAL.search(text)):
                self.steps = int(total[1])
        if not self._wordless and _NO_WORDS.match(text):
            self._wordless = text[:80]
        match = STEP.search(text) if "step:" in text else None
        if match is None or not _TRAINED.search(text):
            return False
        number = int(match[1])
        self.has_begun = True
        self._take(number, text)
        is_new = self.last is None or number > self.last
        self.last = number
        self.count += is_new
        return is_new

    def _take(self, number: int, text: str) -> None:
        found = {match[1]: (float(match[2]), match[0]) for match in _METRIC.finditer(text)}
        step = _Step(
            number=number,
            values={key: value for key, (value, _) in found.items()},
            texts={key: shown for key, (_, shown) in found.items()},
        )
        self._recent.append(step)
        is_masked = step.values.get("training/rollout_probs_diff_valid") == 0
        broken = next(
            (key for key, value in step.values.items() if not math.isfinite(value) and not (is_masked and "rollout" in key)), None
        )
        if broken and self._not_finite is None:
            self._not_finite = step.doubt(broken, f"{broken} is not finite from step {number} on")
        if (reward := step.values.get("critic/rewards/mean")) is not None and math.isfinite(reward):
            self._rewards.append(reward)
            self._best_reward = (
                max(self._best_reward, sum(self._rewards) / len(self._rewards))
                if len(self._rewards) == _WINDOW
                else self._best_reward
            )
        if math.isfinite(gradient := step.values.get("actor/grad_norm", math.nan)):
            self._gradients.append(gradient)

    def find_not_finite(self) -> Doubt | None:
        """Return the first step that has a NaN or an infinity where there must be a number."""
        return self._not_finite

    def find_doubt(self) -> Doubt | None:
        """Return what is wrong with the numbers: not finite, log-probs apart, rewards zero or lost, gradients that jumped."""
        return (
            self._not_finite
            or self._probs_apart()
            or self._zero_rewards()
            or self._lost_rewards()
            or self._jumped_gradients()
            or self._no_words()
        )

    def _probs_apart(self) -> Doubt | None:
        """Two steps in a row (one may be an outlier), or the only one."""
        last = list(self._recent)[-2:]
        # (metric, its sign, the limit of the signed value)
        for key, sign, limit in (
            ("training/rollout_probs_diff_mean", 1, MAX_PROBS_DIFF),
            ("training/rollout_actor_probs_pearson_corr", -1, -MIN_PEARSON),
        ):
            if last and all(sign * step.values.get(key, math.nan) > limit for step in last):
                return last[0].doubt(key, f"rollout and training disagree on the log-probs: {key} is {last[0].values[key]:.3g}")
        return None

    def _zero_rewards(self) -> Doubt | None:
        for group in ("critic/rewards", "critic/score"):
            ends = (f"{group}/max", f"{group}/min")
            if self._recent and all(step.values.get(end) == 0 for step in self._recent for end in ends):
                return self._recent[0].doubt(ends[0], f"every reward is zero ({ends[0]} and {ends[1]})")
        return None

    def _lost_rewards(self) -> Doubt | None:
        if self.count < _MIN_STEPS_FOR_TREND or not self._rewards or self._best_reward <= 0:
            return None
        now = sum(self._rewards) / len(self._rewards)
        if now >= self._best_reward * _REWARD_LOSS:
            return None
        return (
            self._recent[-1].doubt("critic/rewards/mean", f"the mean reward fell from {self._best_reward:.3g} to {now:.3g}")
            if self._has("critic/rewards/mean")
            else None
        )

    def _jumped_gradients(self) -> Doubt | None:
        if len(self._gradients) < _MIN_STEPS_FOR_TREND or not self._has("actor/grad_norm"):
            return None
        usual = sorted(self._gradients)[len(self._gradients) // 2]
        last = list(self._gradients)[-2:]
        if usual <= 0 or min(last) < usual * _GRADIENT_JUMP:
            return None
        return self._recent[-1].doubt("actor/grad_norm", f"the gradient norm is {min(last) / usual:.0f} times its median")

    def _has(self, key: str) -> bool:
        return bool(self._recent) and key in self._recent[-1].values

    def _no_words(self) -> Doubt | None:
        return Doubt(line=self._wordless, why="the rollouts hold one character only") if self._wordless else None
