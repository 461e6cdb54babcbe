"""Programs that check what the project writes, from the list of what its development needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def run_tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program that stands beside this interpreter, or on PATH; one that is missing is an error, since it hides a check."""
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.is_file() else shutil.which(name)
    if program is None:
        raise FileNotFoundError(f"{name}: not installed; requirements/dev.txt has it")
    return subprocess.run([program, *arguments], check=False, capture_output=True, text=True)
