"""Rules for CANN, its driver, HCCL and torch_npu.

Must not know: anything above the device's own software.
Sources: CANN's list of error codes ("Troubleshooting, Error Codes": EE, EH, EI, EJ, EL, EZ, E1 to E4); rt_error_codes.h of ACL (six
digits); NPUException.h of torch_npu (ERRxxyyy: xx the module, yyy the cause).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from ..records import Kind
from .rule import Finding, Rank, Rule

RULES = (
    Rule(
        kind=Kind.DEVICE_BUSY,
        rank=Rank.CAUSE,
        origin="CANN TSD and HCCP, DCMI: a process of an earlier run, or another container, holds the device",
        advice="A leftover or a neighbour holds the device: end it (`npu-smi info` names it), wait ten seconds, and repeat.",
        texts=(
            "last training process is running",
            "number of started nn processes exceeds",
            "ret is -8020",
            "because the device is used",
            "device is occupied",
            "device is busy",
        ),
    ),
    Rule(
        kind=Kind.DEVICE_UNAVAILABLE,
        rank=Rank.CAUSE,
        origin="CANN runtime, DCMI, torch_npu: the process cannot see or open the device",
        texts=(
            "invalid device id",
            "valid device range is",
            "getdeviceindexbyphyid",
            "realdeviceid:",
            "ret is -8005",
            "drvmnggetconsoleloglevel failed",
            "no npu device",
            "npu is not available",
            "npu device is not available",
            "no available npu",
            "is registered but not available",
        ),
        patterns=(
            ("/dev/davinci", re.compile(r"/dev/davinci\w*.{0,80}(?:No such file|Permission denied|Operation not permitted)")),
            ("/dev/davinci", re.compile(r"(?:No such file|Permission denied|Operation not permitted).{0,80}/dev/davinci")),
        ),
        at_warning=True,
    ),
    Rule(
        kind=Kind.CONFIG,
        rank=Rank.CAUSE,
        origin="HCCL: a variable or the rank table cannot be used",
        advice="Correct the environment variable or the rank table that the line names.",
        texts=("config_error_invalid_environment_variable", "config_error_ranktable"),
        patterns=(
            ("hccl_buffsize", re.compile(r"(?i)HCCL_BUFFSIZE.{0,160}(?:too small|not enough|increase)")),
            ("environment variable", re.compile(r"nvironment variable .{0,120}(?:is invalid|must be|not in the valid range)")),
        ),
    ),
    Rule(
        kind=Kind.ENVIRONMENT,
        rank=Rank.CAUSE,
        origin="CANN: kernels, Python parts or versions are missing or do not fit (EC0010, E40001, EI0008)",
        advice="Install the kernel package of this chip and versions of CANN, driver and torch_npu that belong together.",
        texts=(
            "cannot find bin of op",
            "cannot find binary for op",
            "failed to import python module",
            "cann versions are inconsistent",
            "incorrect_hccl_version",
            "please install the kernels package",
        ),
        patterns=(
            (
                "version",
                re.compile(
                    r"(?i)\b(?:CANN|driver|firmware|torch_npu)\b.{0,80}version.{0,60}(?:not match|mismatch|incompat|inconsist)"
                ),
            ),
            ("soc", re.compile(r"(?i)(?:unsupported|invalid) soc_?version")),
            ("ascend_", re.compile(r"ASCEND_(?:OPP_PATH|HOME_PATH|TOOLKIT_HOME).{0,60}(?:not set|does not exist|not found)")),
        ),
    ),
    Rule(
        kind=Kind.DEVICE_OOM,
        rank=Rank.CAUSE,
        origin="CANN",
        texts=("acl_error_rt_memory_allocation", "insufficient_device_memory", "failed to allocate memory on the device"),
    ),
    Rule(
        kind=Kind.CODE_ERROR,
        rank=Rank.CAUSE,
        origin="torch_npu: the parent touched the device before it forked",
        advice="The device was initialised before a fork: use the spawn method, or do not touch torch_npu in the parent.",
        texts=("cannot re-initialize npu in forked subprocess",),
    ),
    Rule(
        kind=Kind.DEVICE_ERROR,
        rank=Rank.ERROR,
        origin="CANN: AI core, vector core, remote device, memory, driver",
        texts=(
            "aicore execution is abnormal",
            "aicore error",
            "aicore exception",
            "aicore timeout",
            "aicore trap",
            "aivec error",
            "vector core exception",
            "vector core execution",
            "vector core timeout",
            "illegal instruction, which is usually",
            "suspect remote error",
            "hccs link",
            "uce error",
            "multi bit ecc",
            "multi-bit ecc",
            "task scheduler lost heartbeat",
            "lost heartbeat of the device",
            "the error from device(",
            "halqueue",
            "hdc send msg fail",
            "hdc disconnect",
            "driver internal error",
            "device is not working",
            "device lost",
        ),
        patterns=(("drvret", re.compile(r"\bdrvRet(?:Code)? ?= ?[1-9]")),),
    ),
    Rule(
        kind=Kind.HCCL,
        rank=Rank.DEATH,
        origin="torch_npu: the watchdog of a rank gave up; the exception says why",
        texts=("hccl watchdog thread terminated",),
    ),
    Rule(
        kind=Kind.HCCL,
        rank=Rank.ERROR,
        origin="HCCL and the watchdog of torch.distributed: time-outs, links, heartbeats",
        texts=(
            "connected p2p timeout",
            "get socket timeout",
            "getting socket times out",
            "wait timeout for sockets recv",
            "notify register times out",
            "notify register has not received",
            "notify wait timeout",
            "heartbeat lost occurred",
            "before timing out",
            "watchdog caught collective operation timeout",
            "hccl op time",
            "error cqe",
            "cqe error",
            "topo exchange server connect client failed",
        ),
        patterns=(
            ("(seqnum=", re.compile(r"\bWork[HN]CCL\(SeqNum=")),
            ("down", re.compile(r"(?i)\blink[ _](?:is )?down\b")),
            ("hccl", re.compile(r"\bHCCL\b.{0,160}(?i:time ?out|timed out)")),
        ),
    ),
)

_RT: Mapping[int, tuple[Kind, Rank]] = MappingProxyType(
    {
        107001: (Kind.DEVICE_UNAVAILABLE, Rank.CAUSE),  # invalid device id
        207001: (Kind.DEVICE_OOM, Rank.CAUSE),  # memory allocation failed
        207004: (Kind.DEVICE_UNAVAILABLE, Rank.CAUSE),  # no device
        207006: (Kind.DEVICE_UNAVAILABLE, Rank.CAUSE),  # no permission
        207018: (Kind.DEVICE_OOM, Rank.CAUSE),  # device out of memory
        561107: (Kind.ENVIRONMENT, Rank.CAUSE),  # aclnn: ASCEND_OPP_PATH
        561112: (Kind.ENVIRONMENT, Rank.CAUSE),  # aclnn: the kernel package is not installed
        507011: (Kind.DEVICE_ERROR, Rank.DEATH),  # model execution failed: the line below says why
        507033: (Kind.DEVICE_UNAVAILABLE, Rank.ERROR),  # device setup error: dead, or held by somebody
        507046: (Kind.DEVICE_ERROR, Rank.DEATH),  # stream synchronisation timed out
        507047: (Kind.DEVICE_ERROR, Rank.DEATH),  # event synchronisation timed out
        507048: (Kind.HCCL, Rank.DEATH),  # internal task timed out: EI0002 below says on whom
    }
)
# (first, last): what every other code of the range means.
_RT_RANGES: Mapping[tuple[int, int], tuple[Kind, Rank]] = MappingProxyType(
    {
        (107000, 107999): (Kind.CODE_ERROR, Rank.DEATH),
        (161000, 161999): (Kind.CODE_ERROR, Rank.ERROR),  # aclnn: an argument of an operator
        (207000, 207999): (Kind.DEVICE_ERROR, Rank.DEATH),
        (507000, 507999): (Kind.DEVICE_ERROR, Rank.ERROR),
        (361000, 361999): (Kind.DEVICE_ERROR, Rank.DEATH),
        (561000, 561999): (Kind.DEVICE_ERROR, Rank.DEATH),
    }
)
_RT_CODE = re.compile(r"(?:error code(?: is)?|errorcode|runtime result|failed|ret|retCode)[ :=]{1,3}((?:[125]07|[135]61)\d{3})\b")
_CANN: Mapping[str, tuple[Kind, Rank]] = MappingProxyType(
    {
        "E30003": (Kind.DEVICE_BUSY, Rank.CAUSE),  # too many processes on the device
        "E30008": (Kind.DEVICE_ERROR, Rank.ERROR),  # an operator on the AI CPU timed out
        "E40001": (Kind.ENVIRONMENT, Rank.CAUSE),  # the operator compiler's Python parts cannot be imported
        "E40021": (Kind.ENVIRONMENT, Rank.ERROR),  # an operator cannot be compiled
        "EC0010": (Kind.ENVIRONMENT, Rank.CAUSE),  # a Python module cannot be imported
        "EE1001": (Kind.CODE_ERROR, Rank.ERROR),  # an argument of the runtime
        "EI0001": (Kind.CONFIG, Rank.CAUSE),  # an environment variable
        "EI0003": (Kind.CODE_ERROR, Rank.ERROR),  # an argument of a collective
        "EI0004": (Kind.CONFIG, Rank.CAUSE),  # the rank table
        "EI0005": (Kind.CODE_ERROR, Rank.ERROR),  # arguments of a collective that differ between ranks
        "EI0007": (Kind.DEVICE_OOM, Rank.CAUSE),  # memory, streams or notifies of the device are used up
        "EI0008": (Kind.ENVIRONMENT, Rank.CAUSE),  # versions of CANN that differ between ranks
        "EI0011": (Kind.DEVICE_OOM, Rank.CAUSE),
        "EI0012": (Kind.DEVICE_ERROR, Rank.ERROR),  # SDMA
        "EI0014": (Kind.CONFIG, Rank.CAUSE),  # the rank table, here and in the next two
        "EI0016": (Kind.CONFIG, Rank.CAUSE),
        "EI0017": (Kind.CONFIG, Rank.CAUSE),
        "EI0019": (Kind.PORT_CONFLICT, Rank.CAUSE),
        "EI0020": (Kind.PORT_CONFLICT, Rank.CAUSE),
        "EJ0001": (Kind.DEVICE_BUSY, Rank.CAUSE),  # HCCP of an earlier process still runs
        "EJ0003": (Kind.PORT_CONFLICT, Rank.CAUSE),
        "EL0003": (Kind.DEVICE_ERROR, Rank.DEATH),  # "the argument is invalid": the lines below say of what
        "EL0004": (Kind.DEVICE_OOM, Rank.CAUSE),
        "EL0005": (Kind.DEVICE_BUSY, Rank.CAUSE),
        "EZ1001": (Kind.CODE_ERROR, Rank.ERROR),  # an argument of an operator
    }
)
# By module letters: what every other code says. "Inner Error!" and 9999 announce the line below.
_CANN_MODULES: Mapping[str, Kind] = MappingProxyType(
    {
        "EE": Kind.DEVICE_ERROR,
        "EH": Kind.CODE_ERROR,
        "EI": Kind.HCCL,
        "EJ": Kind.HCCL,
        "EL": Kind.DEVICE_ERROR,
        "EZ": Kind.DEVICE_ERROR,
        "EC": Kind.ENVIRONMENT,
        "E1": Kind.CODE_ERROR,
        "E3": Kind.DEVICE_ERROR,
        "E4": Kind.ENVIRONMENT,
        "E6": Kind.ENVIRONMENT,
        "E9": Kind.ENVIRONMENT,
    }
)
# The look-behind stands after the letter, so that the search jumps from E to E.
_CANN_CODE = re.compile(r"E(?<!\w\w)(?:[EHIJLZC]|[13469])\d{4}(?=[:)])")
# ERRxxyyy by yyy: 006 memory, 011 time-out, 100 ACL, 200 HCCL, 300 GE; the others are checks of arguments, said better above.
_TORCH_NPU_CODE = re.compile(r"ERR0[0-4](\d{3}) ")
_TORCH_NPU: Mapping[str, Kind] = MappingProxyType(
    {
        "006": Kind.DEVICE_OOM,
        "009": Kind.DEVICE_UNAVAILABLE,
        "011": Kind.HCCL,
        "012": Kind.DEVICE_UNAVAILABLE,
        "100": Kind.DEVICE_ERROR,
        "200": Kind.HCCL,
        "300": Kind.DEVICE_ERROR,
    }
)
_HCCL_CALL = re.compile(r"HCCL (?:function )?error\b|call hccl api failed|\bHCCL\(\d+,[^)]{1,60}\):|hcclComm\w* .{0,40}error")

_SIZE = r"([\d.]+) ([KMGT])i?B"
_SCALE: Mapping[str, float] = MappingProxyType({"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10})
_OOM = re.compile(
    r"out of memory\. Tried to allocate|OutOfMemoryError: .{0,80}Tried to allocate|NPU out of memory|CUDA out of memory"
)
_TOTAL = re.compile(rf"{_SIZE} total capacity|total capacity of {_SIZE}")
_FREE = re.compile(rf"{_SIZE} free|of which {_SIZE} is free")
_OWN = re.compile(rf"this process has {_SIZE} memory in use|{_SIZE} reserved in total|{_SIZE} is allocated by PyTorch")


def find_code(text: str, lowered: str) -> Finding | None:
    """Return what a numeric code of ACL, CANN or torch_npu in the line means, None where there is none."""
    if ("07" in text or "61" in text) and (code := _RT_CODE.search(text)):
        kind, rank = _runtime(int(code[1]))
        return Finding(kind=kind, rank=rank)
    if code := _CANN_CODE.search(text):
        usual = (_CANN_MODULES[code[0][:2]], Rank.DEATH if code[0].endswith("9999") else Rank.ERROR)
        kind, rank = _CANN.get(code[0], usual)
        return Finding(kind=kind, rank=rank)
    if (code := _TORCH_NPU_CODE.search(text)) and code[1] in _TORCH_NPU:
        return Finding(kind=_TORCH_NPU[code[1]], rank=Rank.ECHO)
    if "hccl" in lowered and _HCCL_CALL.search(text):
        return Finding(kind=Kind.HCCL, rank=Rank.DEATH)
    return None


def find_oom(text: str, lowered: str) -> Finding | None:
    """Return whose memory ran out where the line is an out-of-memory error of a device.

    Held by others: most of the card is neither free nor reserved by the process that failed.
    """
    if "memory" not in lowered or not _OOM.search(text):
        return None
    total, free, own = (_gib(pattern, text) for pattern in (_TOTAL, _FREE, _OWN))
    if total and own is not None and total - (free or 0.0) - own > total / 2:
        held = f"{total - (free or 0.0) - own:.1f} of {total:.1f} GiB"
        advice = (
            f"{held} of the card are held by other processes: end leftovers and neighbours, or let the rollout engine take less."
        )
        return Finding(kind=Kind.DEVICE_BUSY, rank=Rank.CAUSE, advice=advice)
    return Finding(kind=Kind.DEVICE_OOM, rank=Rank.CAUSE)


def _runtime(code: int) -> tuple[Kind, Rank]:
    if code in _RT:
        return _RT[code]
    return next(meaning for (first, last), meaning in _RT_RANGES.items() if first <= code <= last)


def _gib(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    if match is None:
        return None
    number, unit = (group for group in match.groups() if group is not None)
    return float(number) * _SCALE[unit] if number.count(".") <= 1 and number != "." else None
