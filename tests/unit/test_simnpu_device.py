"""The device identifier of the simulated NPU in the two ways in which verl uses one."""

from __future__ import annotations

from pytest_ascend_e2e.simnpu.device import CURRENT


def test_device_id_alone_is_the_cpu() -> None:
    assert CURRENT == "cpu"


def test_device_id_after_a_device_name_is_an_index() -> None:
    text = f"cpu:{CURRENT}"

    assert text == "cpu:0"


def test_device_id_is_index_zero_as_a_number() -> None:
    assert int(CURRENT) == 0
    assert ["first", "second"][CURRENT] == "first"
