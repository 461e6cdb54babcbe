"""The environment of a training: an allow-list from the caller's, plus what the run sets itself.

Must not know: which values a recipe or a simulation wants; they come as `extra`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ..errors import LaunchError

# What a machine's owner sets for every program on it: places, libraries, toolkits, networks. Nothing of another training.
ALLOWED = (
    *("HOME", "LANG", "LANGUAGE", "LC_*", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "CONDA_PREFIX", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
    *(
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONUSERBASE",
        "PYTHONNOUSERSITE",
        "PYTHONUTF8",
        "PYTHONPYCACHEPREFIX",
        "PYTHONDONTWRITEBYTECODE",
    ),
    # CANN and what comes with it
    *("ASCEND_*", "ASDOPS_*", "ATB_*", "HCCL_*", "LCCL_*", "LCAL_*", "MINDSPEED_*", "MINDSTUDIO_*", "NPU_*", "TOOLCHAIN_HOME"),
    *("ACLNN_*", "ACL_*", "CLOSE_MATMUL_K_SHIFT", "COMBINED_ENABLE", "CPU_AFFINITY_CONF", "INF_NAN_MODE_*", "TASK_QUEUE_ENABLE"),
    *("MULTI_STREAM_MEMORY_REUSE", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
    # the libraries of a training
    *("HF_*", "HYDRA_FULL_ERROR", "KMP_*", "MKL_*", "OMP_*", "OPENBLAS_*", "PYTORCH_*", "SGLANG_*", "TOKENIZERS_*", "TORCH*"),
    *("TRANSFORMERS_*", "TRITON_*", "USE_OPTIMIZED_MODEL", "VERL_*", "VLLM_*"),
    # the way out of the machine
    *(
        "http_proxy",
        "https_proxy",
        "ftp_proxy",
        "all_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "FTP_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
    ),
    *("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
)

# Allowed by a pattern above, and still not for this run: our own settings, another run's devices, its file, its ports. verl
# lets HCCL choose free ports, unless it finds a fixed range in the environment.
REFUSED = (
    *("ASCEND_E2E_*", "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES", "VERL_FILE_LOGGER_*"),
    *("HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE", "HCCL_IF_BASE_PORT", "TORCHELASTIC_*"),
)

# A crash in native code shows its Python stack, and a line of output is in the log when it is printed.
OWN = {"PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}

OWN_JOB = f"{__package__}.own_job"
_EXTERNAL = "VERL_USE_EXTERNAL_MODULES"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def build_environment(
    base: Mapping[str, str], *, extra: Mapping[str, str] | None = None, allow: Sequence[str] = ()
) -> dict[str, str]:
    """Return the environment of a run: what is allowed of `base`, our own settings, and `extra`, which wins.

    `allow` adds names or patterns (`WANDB_*`) to `ALLOWED`, and is stronger than `REFUSED`. A proxy never stands between the
    processes of the run: `no_proxy` names the loopback addresses. A `RAY_*` setting from outside (such as `RAY_ADDRESS`) is not
    taken unless `allow` or `extra` names it.

    Raises:
        LaunchError: a name or a value of `extra` cannot stand in an environment.
    """
    extra = {} if extra is None else extra
    problems = [text for name, value in extra.items() if (text := _problem(name, value))]
    if problems:
        raise LaunchError(*problems)
    taken = {name: value for name, value in base.items() if _is_allowed(name, allow)}
    return dict(sorted({**_without_proxy_inside(taken), **OWN, **extra}.items()))


def own_modules(environment: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    """Return the variable by which verl loads `own_job` in its processes, after what this run or else its caller has it load."""
    given = environment.get(_EXTERNAL) or base.get(_EXTERNAL) or ""
    return {_EXTERNAL: ",".join(dict.fromkeys([*(name for name in given.split(",") if name), OWN_JOB]))}


def _is_allowed(name: str, allow: Sequence[str]) -> bool:
    if not _NAME.fullmatch(name):  # a function exported by bash, for example, which no script could export again
        return False
    if _matches(name, allow):
        return True
    return _matches(name, ALLOWED) and not _matches(name, REFUSED)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _without_proxy_inside(environment: Mapping[str, str]) -> dict[str, str]:
    if not any(name.lower().endswith("_proxy") for name in environment):
        return dict(environment)
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    names = [name.strip() for name in given.split(",") if name.strip()]
    text = ",".join(dict.fromkeys([*names, *_LOOPBACK]))
    return {**environment, "no_proxy": text, "NO_PROXY": text}


def _problem(name: str, value: str) -> str:
    if not _NAME.fullmatch(name):
        return f"environment: {name!r} cannot be the name of a variable: expected letters, digits and '_', such as 'VLLM_USE_V1'"
    if "\0" in value:
        return f"environment: {name}={value!r} cannot be used: expected text without a zero byte"
    return ""
