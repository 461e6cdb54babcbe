"""A reward function of one's own, as verl loads it from a file: every response is worth the same, so that it can be recognised."""

from __future__ import annotations

SCORE = 0.1


def my_reward_function(data_source: str, solution_str: str, ground_truth: str, extra_info: object = None) -> float:  # noqa: ARG001  # verl's signature
    """Return the score of a response."""
    return SCORE
