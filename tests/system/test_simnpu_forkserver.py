"""The fork server in real processes: a fork is the program that was started, in everything but its process id."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ascend_e2e.simnpu import forkserver
from pytest_ascend_e2e.simnpu.forkserver import ADDRESS, Program, program_of

STAND_IN = (
    "import sys; from pytest_ascend_e2e.simnpu.forkserver import Program, stand_in\n"
    "sys.exit(stand_in(Program(script=sys.argv[1], arguments=tuple(sys.argv[2:]))))"
)
WORKER = "/x/ray/_private/workers/default_worker.py"
LAUNCHER = (
    "import os, subprocess, sys\n"
    "server = subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]], close_fds=False)\n"
    "os.close(int(sys.argv[2]))\n"
    "print(server.pid, flush=True)\n"
    "sys.stdin.read()"
)


class Servers:
    """Starts fork servers, each as the child of a launcher that lives until `end` or the end of the test."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._launchers: list[subprocess.Popen[str]] = []

    def start(self, *ahead: str, path: Path | None = None) -> tuple[str, int]:
        """Return the address and the process id of a server that imports `ahead` before it forks."""
        address = f"test-{os.getpid()}-{secrets.token_hex(8)}"
        listener = forkserver.listen(address)
        code = f"from pytest_ascend_e2e.simnpu import forkserver; forkserver.serve({ahead!r}, ())"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(path or ""), str(Path(__file__).parents[2])]))}
        with (self._root / "server.log").open("w", encoding="utf-8") as log:
            launcher = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, code, str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                close_fds=False,
                text=True,
                env=env,
            )
        listener.close()
        self._launchers.append(launcher)
        assert launcher.stdout is not None
        return address, int(launcher.stdout.readline())

    def end(self) -> None:
        for launcher in self._launchers:
            launcher.kill()
            launcher.communicate()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    made = Servers(tmp_path)
    yield made
    made.end()


def start(address: str, script: Path, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start the stand-in of a fork that runs the script."""
    env = {**os.environ, ADDRESS: address, **options.pop("env", {})}  # type: ignore[dict-item]
    command = [sys.executable, "-c", STAND_IN, str(script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, **options)  # type: ignore[call-overload,no-any-return]


def script(directory: Path, code: str) -> Path:
    path = directory / "program.py"
    path.write_text(code, encoding="utf-8")
    return path


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pid: int) -> bool:
    until = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_alive(pid)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["python", "-m", "verl.trainer.main_ppo", "a=1"], Program(module="verl.trainer.main_ppo", arguments=("a=1",))),
        (["python", WORKER, "--a"], Program(script=WORKER, arguments=("--a",))),
        (["python", "-u", WORKER], None),
        (["python", "/x/ray/_private/workers/setup_worker.py", WORKER], None),
        (["python", "-m", "pytest"], None),
        (["python"], None),
    ],
)
def test_only_the_driver_and_rays_workers_are_forked(command: list[str], expected: Program | None) -> None:
    assert program_of(command) == expected


def test_a_fork_has_the_arguments_environment_directory_and_streams_of_its_start(servers: Servers, tmp_path: Path) -> None:
    address, _ = servers.start("json")
    program = script(
        tmp_path,
        "import os, sys\n"
        "assert __name__ == '__main__' and 'json' in sys.modules\n"
        "print(sys.argv[1:], os.environ['COLOUR'], os.getcwd(), sys.path[0])\n"
        "print('to stderr', file=sys.stderr)\n",
    )
    (tmp_path / "here").mkdir()

    process = start(address, program, "a", "b=2", env={"COLOUR": "green"}, cwd=tmp_path / "here")
    out, err = process.communicate(timeout=30)

    assert out == f"['a', 'b=2'] green {tmp_path / 'here'} {tmp_path}\n"
    assert err == "to stderr\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise ValueError('bad')", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    ],
)
def test_a_stand_in_ends_as_its_fork_ends(servers: Servers, tmp_path: Path, code: str, status: int) -> None:
    address, _ = servers.start()

    process = start(address, script(tmp_path, code))
    process.communicate(timeout=30)

    assert process.returncode == status


def test_a_signal_to_the_stand_in_reaches_the_fork(servers: Servers, tmp_path: Path) -> None:
    address, _ = servers.start()
    process = start(
        address,
        script(
            tmp_path,
            "import signal, sys, time\n"
            "def end(*_): print('ended in order', flush=True); sys.exit(5)\n"
            "signal.signal(signal.SIGTERM, end)\n"
            "print('ready', flush=True)\n"
            "for _ in range(600): time.sleep(0.05)\n",  # a signal just before one long sleep would be handled after it
        ),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.terminate()

    assert process.communicate(timeout=30)[0] == "ended in order\n"
    assert process.returncode == 5


def test_a_signal_that_comes_before_the_number_of_the_fork_reaches_it_too(tmp_path: Path) -> None:
    address = f"test-{os.getpid()}-{secrets.token_hex(8)}"
    fork = subprocess.Popen(["/bin/sleep", "60"])
    with forkserver.listen(address) as listener:
        process = start(address, script(tmp_path, ""))
        connection, _ = listener.accept()
        connection.recv(4)  # the request is under way

        process.terminate()
        connection.sendall(f"{fork.pid}\n".encode())

        assert fork.wait(timeout=30) == -signal.SIGTERM
        connection.sendall(f"{-signal.SIGTERM}\n".encode())
        assert process.wait(timeout=30) == -signal.SIGTERM
        connection.close()
    process.communicate()


SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def test_a_fork_dies_with_its_stand_in(servers: Servers, tmp_path: Path) -> None:
    address, _ = servers.start()
    process = start(address, script(tmp_path, SLEEPER))
    assert process.stdout is not None
    fork = int(process.stdout.readline())

    process.kill()

    assert wait_for_end(fork)
    process.communicate()


def test_forks_die_with_the_server_and_their_stand_ins_say_so(servers: Servers, tmp_path: Path) -> None:
    address, server = servers.start()
    process = start(address, script(tmp_path, SLEEPER))
    assert process.stdout is not None
    fork = int(process.stdout.readline())

    os.kill(server, signal.SIGKILL)

    assert wait_for_end(fork)
    process.communicate(timeout=30)
    assert process.returncode == 1


def test_a_server_ends_when_the_run_has_ended(servers: Servers, tmp_path: Path) -> None:
    address, server = servers.start()
    start(address, script(tmp_path, "pass")).communicate(timeout=30)
    assert is_alive(server)

    servers.end()

    assert wait_for_end(server)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_outlives_a_signal_that_is_meant_for_the_whole_run(servers: Servers, tmp_path: Path, number: int) -> None:
    address, server = servers.start()
    start(address, script(tmp_path, "pass")).communicate(timeout=30)

    os.kill(server, number)
    process = start(address, script(tmp_path, "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"))

    assert process.communicate(timeout=30)[0] == "True\n"


def test_forks_do_not_share_random_numbers(servers: Servers, tmp_path: Path) -> None:
    address, _ = servers.start("numpy", "random")
    program = script(tmp_path, "import numpy, random; print(numpy.random.random(), random.random())")

    drawn = [start(address, program).communicate(timeout=30)[0].split() for _ in range(2)]

    assert len({*drawn[0], *drawn[1]}) == 4


def test_a_server_that_would_import_ray_for_all_refuses(servers: Servers, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "ray.py").touch()
    (tmp_path / "modules" / "heavy.py").write_text("import ray\n", encoding="utf-8")

    address, server = servers.start("heavy", path=tmp_path / "modules")

    assert wait_for_end(server)
    assert "imported ray with heavy: each process must do that itself" in (tmp_path / "server.log").read_text(encoding="utf-8")
    process = start(address, script(tmp_path, "pass"))
    assert "the fork server of the simulated NPUs is gone" in process.communicate(timeout=30)[1]
    assert process.returncode == 1


def test_what_is_imported_ahead_exists_and_leaves_ray_and_verl_to_the_forks() -> None:
    pytest.importorskip("vllm", reason="needs the packages of requirements/sim.txt")
    code = (
        "from pytest_ascend_e2e.simnpu import forkserver as f\n"
        "f._import_ahead(f.BEFORE_THE_DRIVER); f._import_ahead(f.WHILE_RAY_STARTS); print('whole')"
    )
    from pytest_ascend_e2e.launch.simulation import simulation_env  # noqa: PLC0415  # beside its only use

    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **simulation_env()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert child.stdout.endswith("whole\n"), child.stderr
    assert set(forkserver.FORBIDDEN) == {"ray", "verl"}


def test_another_user_gets_no_fork(servers: Servers, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    address, server = servers.start()
    start(address, script(tmp_path, "pass")).communicate(timeout=30)
    connection = socket.socket(socket.AF_UNIX)

    os.seteuid(65534)
    try:
        connection.connect(f"\0{address}")
    finally:
        os.seteuid(0)
    with connection:
        connection.settimeout(30)
        assert connection.recv(1) == b""
    assert is_alive(server)
