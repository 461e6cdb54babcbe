"""Stands where the Python of a training stands when a tiny model is made: writes a whole model of no use, as it is told to.

`python -m MODULE --out=DIRECTORY ...` is answered by the settings in `model_maker.json` beside this interpreter: {"do": "make" |
"fail" | "half" | "hang"}. Each call adds a line to `calls` there.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def install(directory: Path, do: str) -> str:
    """Write an interpreter that behaves so into `directory` and return its path."""
    directory.mkdir(exist_ok=True)
    (directory / "model_maker.json").write_text(json.dumps({"do": do}))
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I {__file__} {directory} "$@"\n')
    python.chmod(0o755)
    return str(python)


def calls(directory: Path) -> int:
    """Return how often the interpreter of `directory` was started."""
    path = directory / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def main(directory: Path, arguments: list[str]) -> int:
    """Behave as the settings say."""
    do = json.loads((directory / "model_maker.json").read_text())["do"]
    with (directory / "calls").open("a") as file:
        file.write("called\n")
    out = Path(next(argument.removeprefix("--out=") for argument in arguments if argument.startswith("--out=")))
    if do == "fail":
        sys.stdout.write("these rows cannot be learned\n")
        return 1
    out.mkdir()
    (out / "model.safetensors").write_bytes(b"weights")
    if do == "hang":
        time.sleep(600)
    if do != "half":
        (out / "config.json").write_text('{"model_type": "qwen3"}')
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
