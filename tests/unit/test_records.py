"""A record comes back from its JSON as it was, and so does one that was written before a field existed."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from pytest_ascend_e2e.errors import RecordError
from pytest_ascend_e2e.history import to_line
from pytest_ascend_e2e.records import Check, HostUse, RunRecord, Verdict
from tests.fakes.run_directories import SOUND

HOST = HostUse(
    at_s=(0.0, 2.0), memory_gb=(3.5, 4.25), shm_gb=(0.0, 0.5), disk_free_gb=(9.0, 8.0), memory_total_gb=64.0, shm_total_gb=32.0
)


def test_a_record_comes_back_as_it_was() -> None:
    record = dataclasses.replace(SOUND, host=HOST)

    again = RunRecord.from_json(record.to_json(), origin="record.json")

    assert again == record
    assert (again.host.peak_memory_gb, again.host.peak_shm_gb, again.host.least_disk_free_gb) == (4.25, 0.5, 8.0)


def test_a_text_that_is_no_unicode_comes_back_from_a_file_of_utf_8() -> None:
    record = dataclasses.replace(SOUND, problems=("half of a pair \ud800, a raw byte \udcff, 字",))

    for text in (record.to_json(), to_line(record)):
        assert RunRecord.from_json(text.encode().decode(), origin="record.json") == record
        assert "字" in text


def test_the_band_of_a_baseline_comes_back_and_older_checks_have_none() -> None:
    check = Check(name="baseline.a", verdict=Verdict.PASSED, message="kept", band=(1.5, math.inf))
    record = dataclasses.replace(SOUND, checks=(check,))

    assert RunRecord.from_json(record.to_json(), origin="a test").checks == (check,)
    data = json.loads(record.to_json())
    del data["checks"][0]["band"]
    assert RunRecord.from_json(json.dumps(data), origin="a test").checks == (dataclasses.replace(check, band=None),)


def test_a_record_from_before_the_host_was_watched_has_an_empty_host() -> None:
    data = json.loads(SOUND.to_json())
    del data["host"]

    again = RunRecord.from_json(json.dumps(data), origin="record.json")

    assert again.host == HostUse()
    assert again.host.least_disk_free_gb is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("started_at", None), ("case", 5), ("devices", "2"), ("duration_s", "long"), ("summary", []), ("versions", {"verl": 1})],
)
def test_a_field_of_another_type_is_told_with_the_file(field: str, value: object) -> None:
    data = {**json.loads(SOUND.to_json()), field: value}

    with pytest.raises(RecordError, match=rf"^record\.json: not a whole record: {field}: .* cannot be used: expected \w+"):
        RunRecord.from_json(json.dumps(data), origin="record.json")


def test_a_host_of_another_shape_is_told_with_the_file() -> None:
    data = {**json.loads(SOUND.to_json()), "host": {"cpu": [1.0]}}

    with pytest.raises(RecordError, match=r"^record\.json: not a whole record: "):
        RunRecord.from_json(json.dumps(data), origin="record.json")
