"""What is shown of a case that is not done: of a training its step, reward, speed and time left; before it, what it waits for.

Must not know: where a line is shown or how often.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..deadline import format_duration
from ..runners import Waiting


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


def waiting_lines(name: str, waiting: Waiting) -> Iterator[str]:
    """Yield what a case waits for that has no devices yet: how many, and who has or wants them, devices of one holder together."""
    yield f"{name} waits for {waiting.count} of {waiting.pool} devices: {waiting.head}"
    users: dict[str, list[str]] = {}
    others = []
    for line in waiting.lines():
        head, _, rest = line.partition(": ")
        if head.startswith("device "):
            users.setdefault(rest, []).append(head.removeprefix("device "))
        else:
            others.append(line)
    for who, numbers in users.items():
        yield f"  device{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {who}"
    for line in others:
        yield f"  {line}"
