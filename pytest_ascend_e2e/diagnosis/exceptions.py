"""What a Python exception means, by its type and its message.

Must not know: rules for other lines; they are asked first, on the same line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..records import Kind
from .rule import Finding, Rank

_NAMED = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w{0,80}\.){0,10}\w{0,80}(?:Error|Exception|Exit|Interrupt|Died|Timeout))(?:: ?(?P<message>.*))?$"
)
_ANY = re.compile(r"^(?P<name>(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Za-z_]\w{1,80})(?:: (?P<message>.*))?$")
_WRAPPER = re.compile(r"^(?:ray\.exceptions\.)?RayTaskError\(")


@dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """The last line of a traceback: the type without its module, and the message."""

    module: str
    name: str
    message: str


def read_exception(text: str, *, in_traceback: bool) -> Raised | None:
    """Return the exception that the line names at its start; in a traceback its name may be any (`queue.Empty`)."""
    match = _NAMED.match(text) or (_ANY.match(text) if in_traceback else None)
    if match is None:
        return None
    module, _, name = match["name"].rpartition(".")
    return Raised(module=module, name=name, message=(match["message"] or "").strip())


def is_wrapper(text: str) -> bool:
    """Tell whether the line is Ray's repetition of an exception whose own traceback follows."""
    return bool(_WRAPPER.match(text))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Says only that somebody else failed, or that the process was told to stop.
_ECHOES = _names(
    """
    ActorDiedError RayActorError RayTaskError RaySystemError EngineDeadError EngineGenerateError BrokenPipeError
    ConnectionResetError ConnectionRefusedError ConnectionAbortedError ConnectionError EOFError IncompleteReadError
    CancelledError KeyboardInterrupt SystemExit ContextTerminated ZMQError ChildFailedError CalledProcessError
    ServerDisconnectedError ClientConnectorError ClientOSError ExceptionGroup BaseExceptionGroup DistBackendError
    ActorUnavailableError WorkerCrashedError NodeDiedError OwnerDiedError TaskCancelledError GeneratorExit RpcError
    AioRpcError ProcessRaisedException ProcessExitedException BrokenProcessPool
    """
)
# hydra.errors, omegaconf.errors, pydantic: all of them speak of settings.
_CONFIG = _names(
    """
    ConfigCompositionException OverrideParseException MissingConfigException ConfigLoadError HydraException
    InstantiationException ConfigAttributeError ConfigKeyError ConfigTypeError ConfigValueError ConfigIndexError
    ConfigCycleDetectedException MissingMandatoryValue ReadonlyConfigError UnsupportedValueType
    UnsupportedInterpolationType InterpolationKeyError InterpolationResolutionError InterpolationToMissingValueError
    InterpolationValidationError KeyValidationError GrammarParseError OmegaConfBaseException YAMLError
    ScannerError ParserError
    """
)
_DATA = _names(
    """
    HFValidationError RepositoryNotFoundError EntryNotFoundError LocalEntryNotFoundError RevisionNotFoundError
    GatedRepoError OfflineModeIsEnabled DatasetNotFoundError DataFilesNotFoundError DatasetGenerationError
    DatasetGenerationCastError NonMatchingSplitsSizesError ArrowInvalid ArrowTypeError ArrowIOError SafetensorError
    JSONDecodeError UnicodeDecodeError BadZipFile BadGzipFile UnidentifiedImageError DecompressionBombError
    CheckpointException CheckpointingException UnpicklingError ParquetError
    """
)
_ENVIRONMENT = _names(
    """
    ModuleNotFoundError ImportError PackageNotFoundError DistributionNotFound VersionConflict RuntimeEnvSetupError
    BackendCompilerFailed
    """
)
_BY_NAME: Mapping[str, tuple[Kind, Rank]] = MappingProxyType(
    {
        **dict.fromkeys(_ECHOES, (Kind.WORKER_CRASH, Rank.ECHO)),
        **dict.fromkeys(_CONFIG, (Kind.CONFIG, Rank.CAUSE)),
        **dict.fromkeys(_DATA, (Kind.DATA, Rank.CAUSE)),
        **dict.fromkeys(_ENVIRONMENT, (Kind.ENVIRONMENT, Rank.CAUSE)),
        "OutOfMemoryError": (Kind.DEVICE_OOM, Rank.CAUSE),  # torch's; Ray's own of this name says more, and has a rule
        "ValidationError": (Kind.CONFIG, Rank.ERROR),  # pydantic's: the lines below say of what
        "MemoryError": (Kind.HOST_OOM, Rank.CAUSE),
        "TimeoutError": (Kind.HANG, Rank.ERROR),
        "FloatingPointError": (Kind.NUMERIC, Rank.CAUSE),
        "DistStoreError": (Kind.HCCL, Rank.ERROR),
        "DistNetworkError": (Kind.HCCL, Rank.ERROR),
    }
)

_FILE = frozenset({"FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "FileExistsError"})
_DATA_PATH = re.compile(
    r"\.(?:parquet|jsonl?|arrow|csv|safetensors(?:\.index\.json)?|bin|pt|pth|distcp|model|txt|npy|png|jpe?g|zip|tar(?:\.gz)?)\b"
    r"|(?i:data|model|check_?point|ckpt|tokenizer|weight|global_step|huggingface|hub)"
)
_PROGRAM = re.compile(r"No such file or directory: '(?:[\w.-]{1,60}|[^']{1,200}/bin/[^']{1,60}|[^']{1,300}\.so[\d.]*)'")
_SCRATCH = re.compile(r"/tmp/ray/|/proc/|/dev/shm|\.sock\b|/tmp/(?:tmp|torch|pymp)")  # noqa: S108  # in a log
_HUB = re.compile(r"huggingface\.co|hf-mirror|modelscope\.")
_NETWORK = re.compile(r"Connect|Timeout|SSL|HTTP|Proxy|MaxRetry|^OSError$|^RequestException$")
# A check of settings, as verl, Megatron, vLLM and transformers word it.
_SETTING = re.compile(
    r"divisible|\bmust (?:be|have|equal|not be|specify|provide)\b|\bshould be\b|[Pp]lease (?:set|specify|provide)"
    r"|not supported|[Uu]nsupported|\b[Ii]nvalid .{0,60}(?:mode|value|option|config|strategy|type|estimator|dtype)"
    r"|mutually exclusive|is required\b|\bexceeds?\b|only supports?|max_model_len"
    r"|[Uu]nknown (?:advantage|policy|loss|rollout|strategy|backend|engine|option)"
    r"|greater than|less than|cannot be used|support(?:s|ed)? only|have to be|needs? to be"
)
_CONFIG_CLASS = re.compile(
    r"\w*(?:Config|Args|Arguments)\.__init__\(\) (?:got an unexpected|missing)|^__init__\(\) got an unexpected keyword argument"
)
_MODULE_ATTRIBUTE = re.compile(r"^(?:partially initialized )?module '(?!__main__|verl[.'])[\w.]{1,120}' has no attribute")
_ENDS = re.compile(
    r"See root cause above|See stack trace|stack trace above|check the logs|Failed core proc|background loop|actor (?:died|is dead)"
)


def find_exception(raised: Raised) -> Finding:
    """Return what an exception means whose line no rule knows."""
    kind, rank = _classify(raised)
    return Finding(kind=kind, rank=rank)


def _classify(raised: Raised) -> tuple[Kind, Rank]:  # noqa: PLR0911  # one return for each question, in the order in which they are asked
    name, message = raised.name, raised.message
    if _NETWORK.search(name) and _HUB.search(message):
        return Kind.DATA, Rank.CAUSE
    if name in _FILE or (name == "OSError" and "[Errno 2]" in message):
        return _file(message)
    if name == "PermissionError":
        return Kind.ENVIRONMENT, Rank.ERROR
    if name in _BY_NAME:
        return _BY_NAME[name]
    if raised.module.startswith(("hydra.", "omegaconf.")):
        return Kind.CONFIG, Rank.CAUSE
    if name == "TypeError" and _CONFIG_CLASS.search(message):
        return Kind.CONFIG, Rank.ERROR
    if name == "AttributeError" and _MODULE_ATTRIBUTE.search(message):
        return Kind.ENVIRONMENT, Rank.ERROR
    if name in {"ValueError", "AssertionError", "NotImplementedError"} and _SETTING.search(message):
        return Kind.CONFIG, Rank.ERROR
    if _ENDS.search(message):
        return Kind.WORKER_CRASH, Rank.ECHO
    return Kind.CODE_ERROR, Rank.ERROR


def _file(message: str) -> tuple[Kind, Rank]:
    if _SCRATCH.search(message):
        return Kind.WORKER_CRASH, Rank.ECHO
    if _PROGRAM.search(message) and not _DATA_PATH.search(message.rpartition("'")[0].rpartition("/")[2]):
        return Kind.ENVIRONMENT, Rank.CAUSE
    return (Kind.DATA, Rank.CAUSE) if _DATA_PATH.search(message) or "/" in message else (Kind.CODE_ERROR, Rank.ERROR)
