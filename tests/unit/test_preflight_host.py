"""What the checks of a host say of each thing that is missing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_ascend_e2e.preflight import Host, HostFinding, cann_version, host_findings

GB = 2**30


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a host that lacks nothing."""
    for name in ("home", "runs", "shm", "driver", "cann"):
        (tmp_path / name).mkdir()
    (tmp_path / "driver" / "version.info").write_text("Version=24.1.0\nascendhal_version=7.35.23\n")
    (tmp_path / "cann" / "version.cfg").write_text("runtime_running_version=[8.3.0.1:8.3.RC1]\n")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(500 * GB, 100 * GB, 400 * GB))
    return Host(
        environ={"HOME": str(tmp_path / "home"), "ASCEND_HOME_PATH": str(tmp_path / "cann")},
        versions={"torch": "2.7.1+cpu", "torch_npu": "2.7.1.post2", "vllm": "0.11.0+empty", "vllm_ascend": "0.11.0rc1"},
        places={"run directories": tmp_path / "runs" / "not" / "yet"},
        simulated=False,
        shared_memory=tmp_path / "shm",
        driver=tmp_path / "driver",
        cann_roots=(tmp_path / "nowhere",),
        open_files=65536,
    )


def only(host: Host) -> HostFinding:
    (finding,) = host_findings(host)
    return finding


def with_environ(host: Host, **changes: str) -> Host:
    return replace(host, environ={**host.environ, **changes})


def test_a_whole_host_lacks_nothing(host: Host) -> None:
    assert host_findings(host) == []


def test_a_place_that_cannot_be_looked_at_is_one_that_is_not_there(host: Host, tmp_path: Path) -> None:
    assert host_findings(replace(host, places={"cache": tmp_path / ("long" * 99) / "cache"})) == []


def test_a_finding_says_the_fact_the_remedy_and_its_check(host: Host) -> None:
    finding = only(replace(host, open_files=512))

    assert str(finding) == (
        "a process may open 512 files (hard limit), Ray wants 8192; "
        "raise it: ulimit -n 8192 as root, or docker --ulimit nofile=65536:65536 [host.open-files]"
    )


@pytest.mark.parametrize(("files", "is_error"), [(1023, True), (1024, False), (8191, False)])
def test_few_open_files_are_a_warning_and_very_few_an_error(host: Host, files: int, *, is_error: bool) -> None:
    assert only(replace(host, open_files=files)).is_error is is_error


@pytest.mark.parametrize(
    ("versions", "check", "text", "is_error"),
    [
        ({"torch_npu": "none"}, "host.torch-npu", "the training's interpreter has no torch_npu", True),
        ({"torch": "none", "torch_npu": "none"}, "host.torch-npu", "has no torch and torch_npu", True),
        ({"torch_npu": "2.6.0"}, "host.torch-npu", "torch_npu 2.6.0 is built for another torch than 2.7.1+cpu", True),
        ({"vllm_ascend": "0.9.2"}, "host.vllm-ascend", "vllm-ascend 0.9.2 extends another vLLM than 0.11.0+empty", False),
    ],
)
def test_versions_that_do_not_belong_together_are_told(
    host: Host, versions: dict[str, str], check: str, text: str, *, is_error: bool
) -> None:
    finding = only(replace(host, versions={**host.versions, **versions}))

    assert (finding.check, finding.is_error) == (check, is_error)
    assert text in finding.text


def test_no_toolkit_is_an_error_that_says_where_was_looked(host: Host, tmp_path: Path) -> None:
    (tmp_path / "cann" / "version.cfg").unlink()

    finding = only(host)

    assert finding.check == "host.cann"
    assert f"no CANN toolkit found (looked in {tmp_path / 'cann'}, {tmp_path / 'nowhere'})" in finding.text


def test_a_toolkit_whose_environment_was_not_set_is_a_warning(host: Host, tmp_path: Path) -> None:
    finding = only(replace(host, environ={"HOME": host.environ["HOME"]}, cann_roots=(tmp_path / "cann",)))

    assert (finding.check, finding.is_error) == ("host.cann", False)
    assert "source its set_env.sh" in finding.remedy


def test_an_environment_that_points_nowhere_is_an_error(host: Host, tmp_path: Path) -> None:
    finding = only(with_environ(host, ASCEND_TOOLKIT_HOME=str(tmp_path / "gone")))

    assert (finding.check, finding.is_error) == ("host.cann", True)
    assert finding.text.startswith("ASCEND_TOOLKIT_HOME=")


def test_the_version_of_a_toolkit_is_read_from_its_install_info_too(tmp_path: Path) -> None:
    (tmp_path / "aarch64-linux").mkdir()
    (tmp_path / "aarch64-linux" / "ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=8.2.RC1\n")

    assert cann_version({}, (tmp_path,)) == "8.2.RC1"


@pytest.mark.parametrize(
    ("content", "text"), [(None, "the driver's version is not known"), ("Version=23.0.6\n", "driver 23.0.6: ")]
)
def test_a_driver_unknown_or_unsound_is_a_warning(host: Host, tmp_path: Path, content: str | None, text: str) -> None:
    file = tmp_path / "driver" / "version.info"
    file.unlink() if content is None else file.write_text(content)

    finding = only(host)

    assert (finding.check, finding.is_error) == ("host.driver", False)
    assert finding.text.startswith(text)


@pytest.mark.parametrize(
    ("environ", "caught"),
    [
        ({"http_proxy": "http://p:3128"}, ["127.0.0.1", "localhost"]),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "localhost"}, ["127.0.0.1"]),
        ({"http_proxy": "http://p:3128", "no_proxy": "127.0.0.0/8, localhost"}, []),
        ({"http_proxy": "http://p:3128", "no_proxy": "*"}, []),
        ({"no_proxy": ""}, []),
    ],
)
def test_a_proxy_before_the_loopback_is_an_error(host: Host, environ: dict[str, str], caught: list[str]) -> None:
    findings = host_findings(with_environ(host, **environ))

    assert [finding.check for finding in findings] == ["host.proxy"] * bool(caught)
    assert all(" and ".join(caught) in finding.text for finding in findings)


@pytest.mark.parametrize("home", ["", "/proc/no/such/home"])
def test_a_home_that_cannot_be_written_is_an_error(host: Host, home: str) -> None:
    finding = only(with_environ(host, HOME=home))

    assert (finding.check, finding.is_error) == ("host.home", True)


def test_a_place_that_cannot_be_written_is_an_error(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    finding = only(replace(host, places={"run directories": tmp_path / "file" / "runs"}))

    assert (finding.check, finding.is_error) == ("host.writable", True)
    assert finding.text == f"{tmp_path / 'file' / 'runs'} (run directories) cannot be written to"


@pytest.mark.parametrize(
    ("free_gb", "simulated", "verdict"),
    [(1, False, True), (1, True, True), (20, False, False), (20, True, None), (60, False, None)],
)
def test_a_full_disk_is_an_error_and_a_nearly_full_one_a_warning_on_npus(
    host: Host, monkeypatch: pytest.MonkeyPatch, free_gb: int, *, simulated: bool, verdict: bool | None
) -> None:
    usage = {host.shared_memory: 400 * GB}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, usage.get(path, free_gb * GB)))

    found = host_findings(replace(host, simulated=simulated))

    assert [(finding.check, finding.is_error) for finding in found] == ([] if verdict is None else [("host.disk", verdict)])


def test_one_disk_is_told_once(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 400 * GB if path == host.shared_memory else GB))

    assert only(replace(host, places={**host.places, "cache": tmp_path})).check == "host.disk"


@pytest.mark.parametrize(
    ("free_gb", "simulated", "verdict"), [(0.06, False, True), (0.06, True, False), (8, False, False), (8, True, None)]
)
def test_little_shared_memory_is_an_error_on_npus_alone(
    host: Host, monkeypatch: pytest.MonkeyPatch, free_gb: float, *, simulated: bool, verdict: bool | None
) -> None:
    def usage(path: Path) -> Usage:
        return Usage(0, 0, int(GB * (free_gb if path == host.shared_memory else 400)))

    monkeypatch.setattr(shutil, "disk_usage", usage)

    found: list[Any] = host_findings(replace(host, simulated=simulated))

    assert [(f.check, f.is_error) for f in found] == ([] if verdict is None else [("host.shared-memory", verdict)])


def test_no_shared_memory_at_all_is_an_error(host: Host, tmp_path: Path) -> None:
    assert only(replace(host, shared_memory=tmp_path / "gone")).is_error


def test_a_simulated_host_needs_no_software_of_ascend(host: Host, tmp_path: Path) -> None:
    bare = replace(host, simulated=True, versions={}, driver=tmp_path / "gone", cann_roots=(), environ={"HOME": "/"})

    assert host_findings(bare) == []
