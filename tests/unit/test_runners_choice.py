"""Which of the idle devices a lease takes."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.runners.leases import Slot, choose

A3 = tuple(Slot(id=number, card=number // 2, lock_name=f"npu-{number}") for number in range(8))


def ids(count: int, idle: list[int]) -> list[int]:
    return [slot.id for slot in choose(count, [slot for slot in A3 if slot.id in idle], A3)]


@pytest.mark.parametrize(
    ("count", "idle", "chosen"),
    [
        (2, [1, 2, 3, 4], [2, 3]),
        (4, [0, 3, 4, 5, 6, 7], [4, 5, 6, 7]),
        (3, [0, 1, 2, 3, 5], [0, 1, 5]),
        (1, [0, 1, 5], [5]),
        (1, [0, 1, 2, 3], [0]),
        (2, [0, 3, 5], [0, 3]),
        (8, [7, 6, 5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
    ids=[
        "a whole card",
        "two whole cards",
        "one whole and a die in use",
        "the die of a card in use",
        "breaking a card",
        "loose dies",
        "all",
    ],
)
def test_whole_cards_come_first_and_no_card_is_broken_without_need(count: int, idle: list[int], chosen: list[int]) -> None:
    assert ids(count, idle) == chosen


def test_too_few_idle_devices_give_none() -> None:
    assert ids(3, [0, 1]) == []
