"""One line about a training under way: step, reward, tokens per second, time left.

Must not know: where the line is shown or how often.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..deadline import format_duration


def progress_line(
    name: str, *, step: int, steps: int, elapsed_s: float, first_step_s: float, data: Mapping[str, float | None]
) -> str:
    """Return the line for a step that has just ended.

    `elapsed_s` is the time since the start of the training, `first_step_s` that at which the first step ended: what is left is
    estimated from the steps after the first, which is slower than the rest.
    """
    parts = [f"{name}: step {step}/{steps}"]
    reward = data.get("critic/rewards/mean")
    parts.append("reward ?" if reward is None else f"reward {reward:.3f}")
    throughput = data.get("perf/throughput")
    if throughput is not None:
        parts.append(f"{throughput:.0f} tokens/s per device")
    if step > 1 and steps > step:
        left_s = (elapsed_s - first_step_s) / (step - 1) * (steps - step)
        parts.append(f"{format_duration(left_s)} left")
    return ", ".join(parts)
