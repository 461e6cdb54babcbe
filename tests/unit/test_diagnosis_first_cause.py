"""The first cause of a log is found, not the loudest: no wrapper, echo, late consequence or shutdown noise."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from pytest_ascend_e2e.diagnosis import diagnose
from pytest_ascend_e2e.records import Kind

STEP = "step:{n} - training/global_step:{n} - actor/grad_norm:0.4 - critic/rewards/max:1.0 - critic/rewards/min:0.0"
RAY_DEATH = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exit type: SYSTEM_ERROR "
    "Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root "
    "causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop. (3) SIGSEGV."
)
TRACEBACK = """Traceback (most recent call last):
  File "/srv/verl/workers/actor.py", line 88, in update
    raise ValueError("No space left on device")
{last}"""


def lines(*texts: str) -> list[bytes]:
    return [line.encode() + b"\n" for text in texts for line in text.split("\n")]


def steps(last: int, total: int | None = None) -> list[str]:
    head = [] if total is None else [f"Total training steps: {total}"]
    return [*head, *(STEP.format(n=number) for number in range(1, last + 1))]


def under(prefix: str, text: str) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


PREFIXES = {
    "none": "",
    "ray": "(WorkerDict pid=4711) ",
    "ray on another host": "(TaskRunner pid=4711, ip=10.20.30.40) ",
    "ray in colour": "\x1b[36m(WorkerDict pid=4711)\x1b[0m ",
    "colour without its escape": "[36m(WorkerDict pid=4711)[0m ",
    "vllm in ray": "(vLLMHttpServer pid=9, ip=10.0.0.1) (EngineCore_DP0 pid=12) ERROR 11-30 10:00:00 [core.py:718] ",
    "vllm worker": "(Worker_TP3 pid=77) ERROR 11-30 10:00:00 [multiproc_executor.py:671] ",
    "torch": "[rank7]: ",
    "torchrun": "[default3]:",
    "github actions": "2026-11-30T02:03:04.1234567Z ",
    "kubernetes": "2026-11-30T02:03:04.123456789+00:00 stderr F ",
    "docker compose": "trainer-0  | ",
    "logging": "2026-11-30 02:03:04,567 - verl.trainer - ERROR - ",
    "ray driver": "2026-11-30 02:03:04,567\tERROR worker.py:421 -- ",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_prefixes_are_stripped(prefix: str) -> None:
    found = diagnose(lines(under(prefix, TRACEBACK.format(last="KeyError: 'old_log_probs'")), "done"))

    assert (found.kind, found.line) == (Kind.CODE_ERROR, "KeyError: 'old_log_probs'")


def test_workers_that_print_at_once_are_untangled() -> None:
    first = under("(WorkerDict pid=1) ", TRACEBACK.format(last="queue.Empty")).split("\n")
    second = under("(WorkerDict pid=2) ", TRACEBACK.format(last="IndexError: list index out of range")).split("\n")
    tangled = [line for pair in itertools.zip_longest(first, second) for line in pair]

    found = diagnose(lines(*tangled))

    assert (found.kind, found.line) == (Kind.CODE_ERROR, "queue.Empty")


def test_source_code_in_a_traceback_is_no_message() -> None:
    found = diagnose(lines(TRACEBACK.format(last="ZeroDivisionError: division by zero")))

    assert found.kind is Kind.CODE_ERROR


def test_source_code_is_known_where_the_head_of_the_traceback_is_cut() -> None:
    text = TRACEBACK.format(last="ZeroDivisionError: division by zero").partition("\n")[2]

    assert diagnose(lines(text)).kind is Kind.CODE_ERROR


def test_the_exception_below_ray_s_wrapper_is_the_cause() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/ray/worker.py", line 1, in get_objects\n'
        "ray.exceptions.RayTaskError(KeyError): ray::TaskRunner.run() (pid=3, ip=10.0.0.2, repr=<x.TaskRunner object>)\n"
        '  File "/srv/verl/main_ppo.py", line 2, in run\n'
        "KeyError: 'reward_model'"
    )

    assert diagnose(lines(text)).line == "KeyError: 'reward_model'"


def test_an_actor_that_died_of_an_exception_in_its_constructor_is_that_exception() -> None:
    text = (
        "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::W.__init__() (pid=3)\n"
        '  File "/srv/x.py", line 2, in __init__\n'
        "    import nothing\n"
        "ModuleNotFoundError: No module named 'nothing'\n"
        "(W pid=4) Exception raised in creation task: The actor died because of an error raised in its creation task"
    )

    assert diagnose(lines(text)).line == "ModuleNotFoundError: No module named 'nothing'"


def test_ray_s_list_of_potential_causes_is_a_guess() -> None:
    found = diagnose(lines(RAY_DEATH))

    assert found.kind is Kind.WORKER_CRASH


def test_hydra_s_wrapper_is_no_cause() -> None:
    texts = ["Error executing job with overrides: ['x=No space left on device', 'trainer.on_error=EADDRINUSE']"]
    texts += ["Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace."]

    assert diagnose(lines(*texts)).kind is Kind.UNKNOWN


@pytest.mark.parametrize("shuffle", range(6))
def test_a_cause_is_found_in_any_order_of_its_echoes(shuffle: int) -> None:
    echoes = [
        RAY_DEATH,
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "(EngineCore_DP0 pid=3) ERROR 11-30 10:00:00 [core.py:1] EngineCore encountered a fatal error.",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "[rank3]:[W1130 01:02:03.4 ProcessGroupHCCL.cpp:9] TCPStore: Connection reset by peer",
        "OSError: [Errno 28] No space left on device: '/srv/run'",
    ]
    random.Random(shuffle).shuffle(echoes)  # noqa: S311  # an order of lines, not a secret

    assert diagnose(lines(*echoes)).line == "OSError: [Errno 28] No space left on device: '/srv/run'"


def test_a_late_timeout_of_other_ranks_is_no_cause_after_an_error_of_one() -> None:
    late = [
        f"(WorkerDict pid={rank}) EI0002: [PID: {rank}] The wait execution of the Notify register times out." for rank in range(8)
    ]

    found = diagnose(lines(under("(WorkerDict pid=9) ", TRACEBACK.format(last="IndexError: index 7 is out of bounds")), *late))

    assert found.kind is Kind.CODE_ERROR


@pytest.mark.parametrize(
    "death", [RAY_DEATH, "(EngineCore pid=1) Engine core proc EngineCore_DP0 died unexpectedly, shutting down client."]
)
def test_a_timeout_after_a_death_is_its_consequence(death: str) -> None:
    found = diagnose(lines(death, "EI0002: [PID: 5] The wait execution of the Notify register times out."))

    assert found.kind in {Kind.WORKER_CRASH, Kind.ROLLOUT_ENGINE}


def test_of_two_errors_the_first_counts_whatever_their_kinds() -> None:
    killed = "RuntimeError: DataLoader worker (pid 5) is killed by signal: Killed. "

    assert diagnose(lines(killed, "KeyError: 'x'")).kind is Kind.HOST_OOM
    assert diagnose(lines("KeyError: 'x'", killed)).kind is Kind.CODE_ERROR


def test_an_error_after_a_timeout_is_its_consequence() -> None:
    found = diagnose(
        lines("EI0006: [PID: 5] Getting socket times out.", TRACEBACK.format(last="RuntimeError: process group is gone"))
    )

    assert found.kind is Kind.HCCL


def test_an_engine_that_failed_to_start_is_the_exception_below_it() -> None:
    prefix = "(EngineCore_DP0 pid=3) ERROR 11-30 10:00:00 [core.py:1] "
    text = "EngineCore failed to start.\n" + TRACEBACK.format(last="ImportError: cannot import name 'x' from 'y'")

    assert diagnose(lines(under(prefix, text))).kind is Kind.ENVIRONMENT


def test_the_detail_below_an_ascend_wrapper_is_the_cause() -> None:
    text = (
        "RuntimeError: create_config:x.ts:9 HCCL function error: hcclCommInitRootInfoConfig(n), error code is 7\n"
        "[ERROR] 2026-11-30-01:02:03 (PID:5, Device:0, RankID:-1) ERR02200 DIST call hccl api failed.\n"
        "EJ0003: [PID: 5] Failed to bind the IP port. Reason: The IP address and port have been bound already."
    )

    assert diagnose(lines(text)).kind is Kind.PORT_CONFLICT


def test_an_exception_in_a_destructor_is_harmless() -> None:
    text = "Exception ignored in: <function Store.__del__ at 0x7f>\n" + TRACEBACK.format(
        last="TypeError: 'NoneType' object is not callable"
    )

    assert diagnose(lines(text)).kind is Kind.UNKNOWN


def test_what_a_model_answers_is_no_error() -> None:
    answer = "[prompt] why?\n[response] It prints\nModuleNotFoundError: No module named 'os'\nSegmentation fault\n[ground_truth] 4"

    assert diagnose(lines(under("(TaskRunner pid=5) ", answer))).kind is Kind.UNKNOWN


def test_an_error_of_another_process_amid_an_answer_counts() -> None:
    texts = ["(TaskRunner pid=5) [response] so", "(WorkerDict pid=6) KeyError: 'x'", "(TaskRunner pid=5) [ground_truth] 4"]

    assert diagnose(lines(*texts)).line == "KeyError: 'x'"


def test_an_error_that_the_run_outlived_is_no_cause() -> None:
    early = TRACEBACK.format(last="ModuleNotFoundError: No module named 'flash_attn'")

    found = diagnose(
        lines(early, *steps(4), "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.")
    )

    assert found.kind is Kind.WORKER_CRASH


def test_an_error_of_an_asynchronous_rollout_may_stand_before_the_last_step() -> None:
    found = diagnose(
        lines(*steps(3), "(Rollouter pid=8) OSError: [Errno 28] No space left on device: '/srv/run'", STEP.format(n=4))
    )

    assert found.kind is Kind.DISK_FULL


SHUTDOWN = (
    "RuntimeError: DataLoader worker (pid 812) is killed by signal: Killed. ",
    "RuntimeError: DataLoader worker (pid(s) 812, 813) exited unexpectedly",
    "(vLLMHttpServer pid=5) ERROR 11-30 10:00:00 [x.py:5] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
    "(EngineCore pid=5) engine core exited unexpectedly",
    "RuntimeError: dictionary changed size during iteration",
    "(WorkerDict pid=5) [ERROR] TBE Subprocess[task_distribute] raise error[], main process disappeared!",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
    "asyncio.exceptions.CancelledError",
    "(WorkerDict pid=5) EI0002: [PID: 5] The wait execution of the Notify register times out.",
    "terminate called after throwing an instance of 'c10::Error'",
)
ENDS: dict[str, Callable[[], list[str]]] = {
    "all steps": lambda: steps(2, total=2),
    "final validation": lambda: [*steps(2), "Final validation metrics: {'val-core/gsm8k/acc': 0.5}"],
    "bar": lambda: [*steps(2), "Training Progress: 100%|##########| 2/2 [00:20<00:00, 10.0s/it]"],
}


@pytest.mark.parametrize("noise", SHUTDOWN)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_noise_after_a_good_run_is_no_failure(end: Callable[[], list[str]], noise: str) -> None:
    found = diagnose(lines(*end(), noise))

    assert (found.kind, found.line, found.infra) == (Kind.UNKNOWN, "", False)


def test_noise_before_the_last_step_of_a_good_run_is_no_failure() -> None:
    found = diagnose(
        lines("Total training steps: 2", STEP.format(n=1), SHUTDOWN[0], STEP.format(n=2), "Final validation metrics: None")
    )

    assert found.kind is Kind.UNKNOWN


@pytest.mark.parametrize("noise", SHUTDOWN)
def test_the_same_lines_in_the_middle_of_a_run_are_a_failure(noise: str) -> None:
    assert diagnose(lines(*steps(2, total=9), noise)).kind is not Kind.UNKNOWN


def test_an_error_of_its_own_after_the_last_step_is_a_failure() -> None:
    found = diagnose(lines(*steps(2, total=2), SHUTDOWN[0], TRACEBACK.format(last="KeyError: 'val'"), SHUTDOWN[2]))

    assert found.kind is Kind.CODE_ERROR


def test_a_finished_run_with_exit_status_zero_has_no_cause() -> None:
    found = diagnose(lines(*steps(2, total=2), TRACEBACK.format(last="KeyError: 'val'")), exit_status=0)

    assert found.kind is Kind.UNKNOWN


def test_a_validation_line_is_no_step() -> None:
    found = diagnose(lines("Total training steps: 1", "KeyError: 'x'", "step:1 - val-core/gsm8k/acc/mean@1:0.5"))

    assert found.kind is Kind.CODE_ERROR


ENGINE_ENDS = {
    "vllm": "(EngineCore_DP0 pid=12) ERROR 11-30 10:00:00 [core.py:718] EngineCore encountered a fatal error.",
    "vllm worker": "(Worker_TP3 pid=77) ERROR 11-30 10:00:00 [multiproc_executor.py:671] WorkerProc hit an exception.",
    "sglang": "[2026-11-30 10:00:00 TP0] Scheduler hit an exception:",
}


@pytest.mark.parametrize("announced", ENGINE_ENDS.values(), ids=ENGINE_ENDS)
def test_the_exception_that_ends_an_engine_is_the_cause_and_of_the_engine(announced: str) -> None:
    prefix = announced[: announced.rindex("] ") + 2]

    found = diagnose(
        lines(*steps(2), announced, under(prefix, TRACEBACK.format(last="RuntimeError: the kernel lost its workspace")))
    )

    assert (found.kind, found.line) == (Kind.ROLLOUT_ENGINE, "RuntimeError: the kernel lost its workspace")


def test_a_deeper_cause_in_an_engine_stays_what_it_is() -> None:
    announced = ENGINE_ENDS["vllm"]
    prefix = announced[: announced.rindex("] ") + 2]

    found = diagnose(lines(announced, under(prefix, TRACEBACK.format(last="torch.OutOfMemoryError: NPU out of memory."))))

    assert found.kind is Kind.DEVICE_OOM


def test_only_the_exception_that_was_announced_is_the_engines() -> None:
    prefix = "(Worker_TP3 pid=77) ERROR 11-30 10:00:00 [multiproc_executor.py:671] "

    found = diagnose(lines(under(prefix, TRACEBACK.format(last="KeyError: 'old_log_probs'"))))

    assert found.kind is Kind.CODE_ERROR
