"""The catalogue of runners, shipped and extended."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import RunnerError
from pytest_ascend_e2e.runners import load_catalogue


def write(path: Path, runners: str) -> Path:
    path.write_text(f"schema: 1\nrunners:\n{runners}", encoding="utf-8")
    return path


def test_the_shipped_runners_have_the_devices_of_their_names() -> None:
    catalogue = load_catalogue()

    assert catalogue.names == ("a2-4", "a2b3-8", "a3-8", "a3-16", "sim-1", "sim-2", "sim-4")
    assert [runner.devices for runner in catalogue] == [int(name.rsplit("-", 1)[1]) for name in catalogue.names]


def test_a_shipped_runner_has_a_ci_label_unless_it_is_simulated() -> None:
    labels = {runner.name: runner.ci_label for runner in load_catalogue()}

    assert labels == {name: "" if name.startswith("sim-") else f"linux-aarch64-{name}" for name in labels}


def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(RunnerError, match=r"'a3-61' is not in the catalogue; did you mean 'a3-16'"):
        load_catalogue().get("a3-61")


def test_an_unknown_name_that_resembles_none_is_answered_with_all() -> None:
    with pytest.raises(RunnerError, match=r"'gpu' is not in the catalogue\. It holds a2-4, .*sim-4"):
        load_catalogue().get("gpu")


def test_a_file_of_the_user_adds_a_runner(tmp_path: Path) -> None:
    extra = write(tmp_path / "own.yaml", "  a5-8: {devices: 8, chip: Ascend950PR, dies_per_card: 1, memory_gb: 112}\n")

    runner = load_catalogue(extra).get("a5-8")

    assert (runner.devices, runner.chip, runner.ci_label, runner.simulated) == (8, "Ascend950PR", "", False)


def test_a_file_of_the_user_changes_only_the_fields_it_gives(tmp_path: Path) -> None:
    extra = write(tmp_path / "own.yaml", "  a3-16: {host_memory_gb: 1500}\n")

    runner = load_catalogue(extra).get("a3-16")

    assert (runner.host_memory_gb, runner.devices, runner.ci_label) == (1500, 16, "linux-aarch64-a3-16")


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    entries = (
        "  x-2: {devices: two, chipp: Ascend910B, dies_per_card: 1, memory_gb: 64}\n  a3-8: {simulated: maybe}\n  y y: {}\n  z: 5\n"
    )
    extra = write(tmp_path / "own.yaml", entries)

    with pytest.raises(RunnerError) as caught:
        load_catalogue(extra)

    expected = [
        "'x-2': unknown field 'chipp'; did you mean 'chip'? The fields are",
        "'x-2': devices: 'two' cannot be used",
        "'x-2': field 'chip' is missing",
        "'a3-8': simulated: 'maybe' cannot be used",
        "'y y': expected a name",
        "'z': expected a mapping",
    ]
    assert [text for text, problem in zip(expected, caught.value.problems, strict=True) if text not in problem] == []
    assert all(problem.startswith(str(extra)) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("devices", "0"),
        ("devices", "true"),
        ("devices", "8.0"),
        ("memory_gb", ".inf"),
        ("memory_gb", "-1"),
        ("chip", "''"),
        ("cpus", "many"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(tmp_path: Path, field: str, value: str) -> None:
    extra = write(tmp_path / "own.yaml", f"  a3-16: {{{field}: {value}}}\n")

    with pytest.raises(RunnerError, match=rf"'a3-16': {field}: .* cannot be used: expected"):
        load_catalogue(extra)


def test_devices_that_are_no_whole_cards_are_refused(tmp_path: Path) -> None:
    extra = write(tmp_path / "own.yaml", "  a3-16: {devices: 15}\n")

    with pytest.raises(RunnerError, match="no whole cards of 2 dies"):
        load_catalogue(extra)


def test_a_runner_given_twice_is_refused(tmp_path: Path) -> None:
    extra = write(tmp_path / "own.yaml", "  a3-8: {cpus: 4}\n  a3-8: {cpus: 8}\n")

    with pytest.raises(RunnerError, match="'a3-8' is given twice"):
        load_catalogue(extra)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "expected a mapping with the keys schema and runners"),
        ("runners: {}", "expected a mapping with the keys schema and runners"),
        ("schema: 2\nrunners: {}", "catalogue of schema 2"),
        ("schema: 1\nrunners: [", "not a catalogue in YAML"),
        ("? {a: 1}\n: 2\n", "not a catalogue in YAML"),
    ],
)
def test_a_file_that_is_no_catalogue_is_refused(tmp_path: Path, text: str, named: str) -> None:
    extra = tmp_path / "own.yaml"
    extra.write_text(text, encoding="utf-8")

    with pytest.raises(RunnerError) as caught:
        load_catalogue(extra)

    assert str(caught.value).startswith(f"{extra}: ")
    assert named in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match=r"own\.yaml: the catalogue of runners cannot be read"):
        load_catalogue(tmp_path / "own.yaml")
