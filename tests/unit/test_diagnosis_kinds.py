"""What single errors mean: the families of messages of CANN, HCCL, torch, Ray, vLLM, SGLang, Hydra, Python and the host."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.diagnosis import diagnose
from pytest_ascend_e2e.records import Kind

HCCL = (
    "EI0002: [PID: 41] The wait execution of the Notify register times out. Reason: no record from remote rank [3].",
    "EI0006: [PID: 41] Getting socket times out. Reason: Remote Rank did not send the data in time.",
    "[PID: 8] 2026-03-02-10:00:00.1.2 Communication_Error_Initialize_Transport(EI0009): transport init failed",
    "EI0013: [PID: 41] An error CQE occurred on link [7]",
    "EI0015: topology detection over rank 2 came to no end",
    "[ERROR] HCCL(77,python):2026-01-05-09:01:02.3.4 [x.cc:1][77]topo exchange server get socket timeout! timeout[60 s]",
    "[ERROR] HCCL(77,python):2026-01-05-09:01:02.3.4 [adapter.cc:9][77]eth link down on phy 4",
    "[rank5]:[E1130 02:03:04.5 x.cpp:99] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=12)",
    "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients joined.",
    "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms",
    "RuntimeError: create_config:x.ts:9 HCCL function error: HcclGetRootInfo(&id), error code is 9",
)
PORT = (
    "OSError: [Errno 98] Address already in use",
    "[W socket.cpp:511] [c10d] The server socket has failed to bind to [::]:31234 (errno: 98 - Address already in use).",
    "torch.distributed.DistNetworkError: The server socket has failed to listen: port: 12, EADDRINUSE",
    "EI0019: [PID: 3] the address 10.0.0.4 cannot be used",
    "ValueError: Ray component dashboard_agent is trying to use a port number 40001 that is used by other components.",
    "ERROR: port 61003 is already in use",
    "RuntimeError: Ping failed, invalid nonce returned",
)
BUSY = (
    "EJ0001: HCCP did not come up. Reason: Maybe the last training process is running.",
    "E30003: too many on this device",
    "EL0005: The resources are busy.",
    "dcmi model initialized failed, because the device is used. ret is -8020",
)
UNAVAILABLE = (
    "EE1001: The argument is invalid. Reason: invalid device, set drv device=9, valid device range is [0, 4)",
    "RuntimeError: Initialize:x.ts:1 NPU function error: c10_npu::SetDevice(id), error code is 107001",
    "dcmi module initialize failed. ret is -8005",
    "RuntimeError: Initialize:x.cpp:3 NPU error, error code is 507033",
    "PermissionError: [Errno 13] Permission denied: '/dev/davinci6'",
    "EE9999: [PID: 2] get error: phyid:11 realDeviceId:11 is err:0x7010003",
)
DEVICE_OOM = (
    "NPU out of memory. Tried to allocate 3 GiB (NPU 2; 61 GiB total capacity; 1 GiB free; 59 GiB reserved in total)",
    "torch.OutOfMemoryError: Tried to allocate 2 GiB. It has a total capacity of 79 GiB, this process has 78.90 GiB memory in use.",
    "EL0004: Failed to allocate memory.",
    "RuntimeError: malloc:x.ts:4 NPU function error: aclrtMalloc, error code is 207001",
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
)
HOST_OOM = (
    "(raylet) A worker died or was killed while executing a task. Detail: Task was killed due to the node running low on memory.",
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
    "(raylet) [2026-02-03 04:05:06,789 E 9 9] x.cc:1: 2 Workers (tasks / actors) killed due to memory pressure (OOM)",
    "Memory cgroup out of memory: Killed process 812 (python)",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:83] . DefaultCPUAllocator: can't allocate memory: 99 bytes.",
    "OSError: [Errno 12] Cannot allocate memory",
    "MemoryError",
    "RuntimeError: unable to write to file </torch_12_34_0>: No space left on device (28)",
    "RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. ",
    "Bus error (core dumped)",
    "Last state: Terminated, reason: OOMKilled",
)
DEVICE_ERROR = (
    "RuntimeError: ACL stream synchronize failed, error code:507035",
    "RuntimeError: x.ts:5 NPU function error: FORCE, error code is 507054",
    "The error from device(chipId:1, dieId:0), serial number is 8, there is an aivec error",
    "EL9999  [drv api] halQueueDeQueue failed: deviceId=3, drvRetCode=44.",
    "EI0012: [PID: 4] an SDMA copy went wrong",
    "RuntimeError: x NPU function error: SUSPECT REMOTE ERROR, error code is 507057",
    "E30008: an operator on the AI CPU took too long.",
    "EZ9999: Inner Error!",
    "RuntimeError: call aclnnAdd failed, error code is 361001",
)
CRASH = (
    "Fatal Python error: Segmentation fault",
    "run.sh: line 12: 4242 Segmentation fault      (core dumped) python3 -m verl.trainer.main_ppo",
    "*** SIGSEGV received at time=1767225600 on cpu 3 ***",
    "free(): invalid pointer",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "run.sh: line 12: 4242 Killed                  python3 -m verl.trainer.main_ppo",
    "ray.exceptions.LocalRayletDiedError: The task's local raylet died.",
)
ENGINE = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "Engine core proc EngineCore_DP3 died unexpectedly, shutting down client.",
    "TimeoutError: RPC call to sample_tokens timed out.",
    "[2026-05-06 07:08:09] Received sigquit from a child process. It usually means the child failed.",
)
RAY = (
    "ValueError: Total available GPUs 2 is less than total desired GPUs 16",
    "(autoscaler) Error: No available node types can fulfill resource request {'NPU': 16.0}",
    "RuntimeError: Failed to create placement group with 4 bundles in 60 seconds.",
    "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to.",
    "[2026-01-01 00:00:00,000 E 7 7] gcs_rpc_client.h:179: Failed to connect to GCS at address 10.0.0.9:6379 within 5 seconds.",
    "Exception: The current node timed out during startup.",
)
ENVIRONMENT = (
    "ModuleNotFoundError: No module named 'mindspeed'",
    "ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers' (/opt/x/transformers/__init__.py)",
    "OSError: libascendcl.so: cannot open shared object file: No such file or directory",
    "ImportError: /opt/x/_C.so: undefined symbol: _ZN3foo",
    "ImportError: /lib64/libc.so.6: version `GLIBC_2.38' not found (required by /opt/x.so)",
    "/usr/bin/python3: No module named verl",
    "start.sh: line 4: npu-smi: command not found",
    "EZ9999: [PID: 6] Cannot find bin of op Sort, integral key 1/",
    "EC0010: [PID: 6] Failed to import Python module [AttributeError: `np.float_` was removed].",
    "EI0008: The CANN versions are inconsistent",
    "RuntimeError: Failed to infer device type",
    "ImportError: /opt/x.so: cannot allocate memory in static TLS block",
    "ValueError: The checkpoint you are trying to load has model type `m9` but Transformers does not recognize this architecture.",
    "AttributeError: module 'torch_npu' has no attribute 'npu_fused_thing'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'npu-smi'",
    "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.",
)
DATA = (
    "FileNotFoundError: Unable to find '/srv/sets/gsm8k/test.parquet'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/srv/models/Qwen3-8B/config.json'",
    "OSError: Incorrect path_or_model_id: '/srv/models/none'. Please provide either the path to a local folder or the repo_id.",
    "OSError: /srv/models/q does not appear to have a file named config.json.",
    "ValueError: Unrecognized model in /srv/models/q. Should have a `model_type` key in its config.json",
    "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/srv/q'",
    "pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer.",
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    "RuntimeError: Error(s) in loading state_dict for Qwen3ForCausalLM:",
    "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f>",
    "AssertionError: Train dataloader is empty!",
    "ValueError: Cannot use chat template functions because tokenizer.chat_template is not set",
    "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded",
)
DISK = (
    "OSError: [Errno 28] No space left on device: '/srv/ckpt/a.pt'",
    "OSError: [Errno 122] Disk quota exceeded",
    "RuntimeError: [enforce fail at inline_container.cc:11] . PytorchStreamWriter failed writing file data/3: file write failed",
)
CONFIG = (
    "Could not override 'trainer.n_gpus_per_nodes'.",
    "hydra.errors.ConfigCompositionException: x",
    "omegaconf.errors.ConfigAttributeError: Key 'rolout' is not in struct",
    "hydra.errors.OverrideParseException: mismatched input '=' expecting <EOF>",
    "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.train_files",
    "EI0001: Environment variable [HCCL_CONNECT_TIMEOUT] is invalid. Reason: not a number.",
    "AssertionError: real_train_batch_size (7) must be divisible by minimal possible batch size (4)",
    "RuntimeError: world_size (12) is not divisible by expert_tensor_model_pipeline_parallel size (32)",
    "ValueError: train_batch_size (4) must be >= actor.ppo_mini_batch_size (8)",
    "ValueError: [actor_rollout_ref.actor] Please set at least one of 'a' or 'b'.",
    "TypeError: FSDPActorConfig.__init__() got an unexpected keyword argument 'x'",
    "AssertionError: Weight lm_head is too large to fit in the bucket.",
    "RuntimeError: Prompt length 900 is longer than 512.",
    "main.py: error: unrecognized arguments: --foo",
)
CODE = (
    "RuntimeError: view size is not compatible with the size and stride of the input",
    "KeyError: 'old_log_probs'",
    "TypeError: unsupported operand type(s) for *: 'int' and 'NoneType'",
    "AttributeError: 'Tensor' object has no attribute 'nope'",
    "AttributeError: module 'verl.utils' has no attribute 'nope'",
    "RuntimeError: Cannot re-initialize NPU in forked subprocess.",
    "RuntimeError: The size of tensor a (7) must match the size of tensor b (8) at non-singleton dimension 1",
    "IndexError: list index out of range",
    "RuntimeError: call aclnnAdd failed, error code is 161002",
    "AclNN_Parameter_Error(EZ1001): Tensor self not implemented for DT_COMPLEX64",
)
NUMERIC = (
    "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
    "AssertionError: Rank 2: found NaN in local grad norm for bucket #0 in backward pass",
    "WARN: grad_norm is not finite: nan",
)
HANG = ("ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.", "TimeoutError: nothing came")

TABLE = {
    Kind.HCCL: HCCL,
    Kind.PORT_CONFLICT: PORT,
    Kind.DEVICE_BUSY: BUSY,
    Kind.DEVICE_UNAVAILABLE: UNAVAILABLE,
    Kind.DEVICE_OOM: DEVICE_OOM,
    Kind.HOST_OOM: HOST_OOM,
    Kind.DEVICE_ERROR: DEVICE_ERROR,
    Kind.WORKER_CRASH: CRASH,
    Kind.ROLLOUT_ENGINE: ENGINE,
    Kind.RAY_RESOURCES: RAY,
    Kind.ENVIRONMENT: ENVIRONMENT,
    Kind.DATA: DATA,
    Kind.DISK_FULL: DISK,
    Kind.CONFIG: CONFIG,
    Kind.CODE_ERROR: CODE,
    Kind.NUMERIC: NUMERIC,
    Kind.HANG: HANG,
}
INFRA = {
    *(Kind.HCCL, Kind.PORT_CONFLICT, Kind.DEVICE_BUSY, Kind.DEVICE_UNAVAILABLE, Kind.HOST_OOM, Kind.DEVICE_ERROR),
    *(Kind.RAY_RESOURCES, Kind.ENVIRONMENT, Kind.DISK_FULL),
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in TABLE.items() for line in lines])
def test_an_error_alone_in_a_log_has_its_kind(kind: Kind, line: str) -> None:
    found = diagnose([b"starting\n", line.encode() + b"\n"])

    assert found.kind is kind
    assert found.infra is (kind in INFRA)
    assert found.advice


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_but_unknown_has_examples(kind: Kind) -> None:
    assert kind in TABLE or kind is Kind.UNKNOWN


def test_the_line_is_the_one_of_the_log() -> None:
    found = diagnose([b"a\n", b"OSError: [Errno 98]  Address already in use\n", b"b\n"])

    assert found.line == "OSError: [Errno 98]  Address already in use"


@pytest.mark.parametrize(
    "line",
    [
        "WARNING 03-04 05:06:07 [tokenizer.py:1] No tokenizer found (Exception: Repo id must use alphanumeric chars: '/x'.)",
        "INFO 03-04 05:06:07 [utils.py:9] Port 5000 was tried: ModuleNotFoundError: No module named 'x'",
        "2026-01-01 10:00:00,000 - pkg.mod - WARNING - RuntimeError: retried",
        "DEBUG:root:KeyError: 'x'",
        "/opt/x/y.py:46: SyntaxWarning: invalid escape sequence, FileNotFoundError: '/data'",
        "(TaskRunner pid=1) {'error': None, 'nccl_timeout': 600, 'on_error': 'raise'}",
        "Training Progress:  10%|#   | 1/10 [00:10<01:30, 10.0s/it]",
        "Saving checkpoint step:3 without errors",
        "NPU memory is not used",
    ],
)
def test_a_line_that_stops_nothing_is_no_cause(line: str) -> None:
    assert diagnose([line.encode()]).kind is Kind.UNKNOWN


def test_memory_held_by_others_makes_the_device_busy() -> None:
    line = (
        b"RuntimeError: NPU out of memory. Tried to allocate 512.00 MiB (NPU 1; 32.00 GiB total capacity; "
        b"100.00 MiB free; 3.00 GiB reserved in total by PyTorch)"
    )

    found = diagnose([line])

    assert found.kind is Kind.DEVICE_BUSY
    assert "28.9 of 32.0 GiB" in found.advice


@pytest.mark.parametrize(("reserved", "kind"), [("15.0 GiB", Kind.DEVICE_BUSY), ("17.0 GiB", Kind.DEVICE_OOM)])
def test_more_than_half_of_the_card_must_be_held_by_others(reserved: str, kind: Kind) -> None:
    line = (
        f"NPU out of memory. Tried to allocate 9 GiB (NPU 1; 32.0 GiB total capacity; 512 KiB free; {reserved} reserved in total)"
    )

    assert diagnose([line.encode()]).kind is kind


@pytest.mark.parametrize("sizes", ["", "(NPU 1; . GiB total capacity; 1.1.1 GiB free)", "(NPU 1; 32 GiB total capacity)"])
def test_out_of_memory_without_readable_sizes_is_the_own(sizes: str) -> None:
    assert diagnose([f"NPU out of memory. Tried to allocate 1.00 GiB {sizes}".encode()]).kind is Kind.DEVICE_OOM
