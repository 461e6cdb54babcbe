"""What a session says of this host: its devices, weights and data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import LaunchError
from pytest_ascend_e2e.runners import find_devices, load_catalogue
from pytest_ascend_e2e.session import Settings, device_findings, input_findings, runner_of_host
from pytest_ascend_e2e.session.versions import versions
from tests.fakes.npu_smi import A2, a2_devices, install, render


def settings_in(root: Path) -> Settings:
    return Settings(
        runner=None,
        runners_file=None,
        run_root=root / "runs",
        cache_root=root / "cache",
        models_root=root / "models",
        datasets_root=root / "datasets",
        lock_dir=root / "locks",
        python="python",
        run_timeout_s=1.0,
        silence_timeout_s=1.0,
        lease_timeout_s=1.0,
        changes=("a=1",),
    )


def test_settings_come_back_as_they_were_given(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    assert Settings.from_plain(settings.to_plain()) == settings


def test_a_host_with_all_its_devices_lacks_none(tmp_path: Path) -> None:
    environ = install(tmp_path, render(a2_devices(8), A2))

    assert list(device_findings(load_catalogue().get("a2b3-8"), environ)) == []


def test_a_device_that_is_not_fit_is_missing_and_named(tmp_path: Path) -> None:
    environ = install(tmp_path, render(a2_devices(8, health={3: "Alarm"}), A2))

    first, second = device_findings(load_catalogue().get("a2b3-8"), environ)

    assert first.is_error
    assert first.text == "a2b3-8 has 8 devices, and this host offers 7, not fit: device 3 (NPU 3, health Alarm)"
    assert (second.text, second.is_error) == ("device 3 (NPU 3, health Alarm) is not used", False)


def test_a_host_without_devices_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ascend_e2e.session.host.find_devices", partial(find_devices, dev_dir=tmp_path))

    (finding,) = device_findings(load_catalogue().get("a2-4"), {"PATH": str(tmp_path)})

    assert finding.is_error
    assert finding.text.startswith("a2-4 has 4 devices, and this host offers 0 (no NPU on this host: npu-smi is not on PATH")


def test_a_driver_that_fails_is_a_finding(tmp_path: Path) -> None:
    environ = install(tmp_path, "dcmi module initialize failed. ret is -8005\n")

    (finding,) = device_findings(load_catalogue().get("a2-4"), environ)

    assert finding.is_error
    assert "the driver is not loaded" in finding.text


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo rubbish", "it answers something else"),
        ("echo 1", "it answers something else"),
        ("echo cannot >&2; echo load libc >&2; exit 3", "exit status 3 load libc"),
        ("exec sleep 60", "no answer within 0.2 s"),
    ],
)
def test_an_interpreter_that_is_none_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    monkeypatch.setattr("pytest_ascend_e2e.session.versions.TIMEOUT_S", 0.2 if "sleep" in script else 60)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)

    with pytest.raises(LaunchError) as error:
        versions(str(python), {})

    assert str(error.value) == (
        f"{python}: cannot be asked for its versions ({told}); give the training's interpreter by --e2e-python"
    )


@pytest.mark.parametrize(("count", "name"), [(8, "a2b3-8"), (3, None)])
def test_the_runner_that_a_host_is_is_found_or_none(tmp_path: Path, count: int, name: str | None) -> None:
    runner = runner_of_host(load_catalogue(), install(tmp_path, render(a2_devices(count), A2)))

    assert (None if runner is None else runner.name) == name


def test_weights_and_data_that_are_missing_are_told_together(tmp_path: Path) -> None:
    found = list(input_findings("acme/absent", "gsm8k_sft", settings_in(tmp_path)))

    assert [finding.check for finding in found] == ["host.weights", "host.dataset"]
    assert found[0].text.startswith(f"model 'acme/absent': {tmp_path / 'models' / 'acme' / 'absent'} is no directory")
    place = tmp_path / "datasets" / "gsm8k_sft"
    assert str(found[1]) == (
        f"gsm8k_sft: neither {place}/train.parquet with test.parquet beside it nor {place}.parquet is there; "
        "prepare it for verl, and put it there [host.dataset]"
    )


def test_data_that_lie_ready_are_not_asked_for_raw(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "gsm8k.parquet").touch()

    assert [finding.check for finding in input_findings("acme/absent", "gsm8k", settings_in(tmp_path))] == ["host.weights"]
