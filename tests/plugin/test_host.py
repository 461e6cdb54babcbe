"""A host that lacks something: told before a lease, by `ascend-e2e preflight` and by `ascend-e2e doctor`."""

from __future__ import annotations

import json
import shutil

import pytest

from pytest_ascend_e2e.cli import main
from tests.plugin.conftest import Host

FITS = "@npu_nightly(runner='toy-2', estimate='1h', recipe=recipe())\ndef test_fits(run): run.check_completed()\n"
TOO_LARGE = "@npu_e2e(runner='toy-2', recipe=recipe(rollout=Vllm(tp=4, n=4)))\ndef test_too_large(run): run.check_completed()\n"
OVER = (
    "from pytest_ascend_e2e import quarantine\n"
    "@quarantine(reason='leaks', owner='ann', issue='https://example.org/1', until='2020-01-01')\n"
)


def test_a_host_that_cannot_train_is_told_before_a_lease(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(FITS)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(host.root / "gone"))
    shutil.rmtree(host.root / "site")

    result = host.run("--runner", "toy-2")

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"this host cannot train on toy-2: ASCEND_HOME_PATH='{host.root / 'gone'}' is no directory" in text
    assert "this host cannot train on toy-2: the training's interpreter has no torch_npu" in text
    assert "Traceback" not in text
    assert not (host.root / "locks").exists()
    assert not (host.pytester.path / "runs").exists()


def test_the_fixture_of_devices_takes_none_of_such_a_host(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases("@npu_nightly(runner='toy-2')\ndef test_parts(npus): pass\n")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(host.root / "gone"))

    result = host.run("--runner", "toy-2")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "this host cannot train on toy-2: ASCEND_HOME_PATH=" in result.stdout.str()
    assert not (host.root / "locks").exists()


def test_preflight_prints_the_verdicts_without_the_noise_of_pytest(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases(FITS + TOO_LARGE + OVER + FITS.replace("test_fits", "test_off") + "def test_plain(): assert False\n")

    status = main(["preflight", "--runner", "toy-2", "--budget", "10"])

    text = capsys.readouterr().out
    assert status == 1
    assert "test_cases.py::test_too_large on toy-2: cannot work\n  problem: rollout: tp x dp = 4 x 1 = 4 does not divide" in text
    assert "test_cases.py::test_off: " in text
    assert "and that day has passed" in text
    lines = text.splitlines()
    assert any(line.split()[:6] == ["test_cases.py::test_fits", "toy-2", "2", "1", "1", "FSDP2"] for line in lines)
    assert "estimated device-hours: 2 of a budget of 10; 1 without an estimate" in lines
    assert lines[-1] == "3 cases, 2 cannot work; no device was taken, nothing was trained"
    assert "====" not in text
    assert "test_plain" not in text


def test_preflight_of_cases_that_cannot_be_read_says_why(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases("@npu_nightly(runner='toy-2', nodes=0)\ndef test_wrong(run): pass\n")

    status = main(["preflight"])

    shown = capsys.readouterr()
    assert status == 2
    assert "@npu_nightly of test_cases.py::test_wrong nodes=0: expected a whole number of 1 or more" in shown.err
    assert "Traceback" not in shown.err


def test_doctor_names_what_is_missing_for_which_cases(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases(FITS + FITS.replace("test_fits", "test_absent").replace("recipe()", "recipe(model='acme/absent')"))
    shutil.rmtree(host.root / "datasets")

    status = main(["doctor"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[0] == "this host as toy-2, for 2 cases"
    assert "  0: Ascend910B4, NPU 0, health OK" in lines
    assert "  cann: 8.3.RC1" in lines
    assert "  acme/tiny: there" in lines
    assert "  gsm8k: missing" in lines
    weights = next(place for place, line in enumerate(lines) if line.startswith("missing: model 'acme/absent': "))
    assert lines[weights + 1] == "  for test_cases.py::test_absent"
    data = next(place for place, line in enumerate(lines) if line.startswith("missing: gsm8k: no raw data in "))
    assert "hf download --repo-type dataset openai/gsm8k" in lines[data]
    assert lines[data + 1 : data + 3] == ["  for test_cases.py::test_absent", "  for test_cases.py::test_fits"]
    assert lines[-1] == "2 missing"


def test_doctor_of_a_whole_host_is_green_and_speaks_json(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases(FITS)

    status = main(["doctor", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert (status, found["schema"], found["runner"], found["is_sound"]) == (0, 1, "toy-2", True)
    assert found["cases"] == ["test_cases.py::test_fits"]
    assert found["sections"]["weights and datasets"] == {"acme/tiny": "there", "gsm8k": "there"}
    assert all(not missing["is_error"] for missing in found["missing"])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("echo DrvMngGetConsoleLogLevel failed; exit 1", "npu-smi info (exit status 1): no table of devices"),
        ("echo no table", "no table of devices: it begins with 'no table'"),
    ],
)
def test_doctor_of_a_host_whose_npus_cannot_be_told_finds_that_missing(
    host: Host, capsys: pytest.CaptureFixture[str], answer: str, told: str
) -> None:
    host.cases(FITS)
    (host.root / "bin" / "npu-smi").write_text(f"#!/bin/sh\n{answer}\n")

    status = main(["doctor"])

    assert status == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("missing: ")]
    assert told in line
    assert line.endswith("until then this host is looked at as sim-2 alone [host.devices]")


def test_doctor_finds_a_place_of_locks_that_is_none(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases(FITS)
    (host.root / "locks").write_text("a file")

    status = main(["doctor"])

    assert status == 1
    assert f"missing: {host.root / 'locks'} (locks of devices) cannot be written to; make " in capsys.readouterr().out


def test_doctor_finds_locks_that_a_session_refuses(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases(FITS)
    (host.root / "locks").symlink_to(host.root)

    status = main(["doctor"])

    assert status == 1
    assert f"missing: {host.root / 'locks'}: not a directory that this user can write" in capsys.readouterr().out


def test_doctor_asks_npu_smi_once_for_its_cases_once_for_the_devices_and_once_for_the_runner(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.cases(FITS)
    (host.root / "locks").mkdir()
    (host.root / "bin" / "npu-smi").write_text(f"#!/bin/sh\necho asked >> {host.root}/calls\nexit 1\n")

    assert main(["doctor", "--runner", "toy-2"]) == 1

    assert (host.root / "calls").read_text().split() == ["asked"] * 3
    assert "missing: npu-smi info" in capsys.readouterr().out


def test_doctor_on_another_host_says_that_the_devices_are_missing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.cases(FITS)

    status = main(["doctor", "--runner", "toy-4"])

    assert status == 1
    assert "missing: toy-4 has 4 devices, and this host offers 2; run it on such a host" in capsys.readouterr().out
