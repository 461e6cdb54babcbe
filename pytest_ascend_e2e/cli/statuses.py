"""The exit statuses that the help of each command ends with: what a script may conclude from each.

Must not know: how a command comes to one.
"""

from __future__ import annotations

from collections.abc import Mapping

_MISTAKE = "wrong arguments"

STATUSES: Mapping[str, Mapping[int, str]] = {
    "doctor": {
        0: "nothing keeps a case from running here",
        1: "something that a case needs is missing",
        2: f"{_MISTAKE}, an unknown runner, or cases that cannot be collected",
    },
    "preflight": {
        0: "every case can work",
        1: "a case cannot work, or the cases cost more than the budget",
        2: f"{_MISTAKE}, or cases that cannot be collected",
    },
    "devices": {
        0: "the devices are shown",
        2: f"{_MISTAKE}, no NPU on this host, or an output of npu-smi that cannot be read",
    },
    "metrics": {
        0: "the metrics are shown, whatever they are",
        2: f"{_MISTAKE}, or a log that cannot be read",
    },
    "diagnose": {
        0: "the log was read, whatever it tells",
        2: f"{_MISTAKE}, or a log that cannot be read",
    },
    "baseline": {
        0: "the baseline is written or shown",
        2: f"{_MISTAKE}, or runs that are refused: nothing is written",
    },
    "history": {
        0: "the runs are shown, written or added",
        1: "there is no such run",
        2: f"{_MISTAKE}, or a file that cannot be read or written",
    },
    "judge": {
        0: "every run is green",
        1: "a run is red: a check fails, or its training did",
        2: f"{_MISTAKE}, or a run or baseline that cannot be read",
    },
    "repeat": {
        0: "the repeat is green",
        1: "the repeat is red, or the run was by what only its test can check",
        2: f"{_MISTAKE}, or a run that cannot be repeated here",
    },
    "report": {
        0: "the report is written, whatever the verdicts are",
        1: "the report is written, without a run whose record cannot be read",
        2: f"{_MISTAKE}, or no run to report",
    },
    "new-case": {
        0: "the case is written; stderr tells whether verl composes it to the same",
        2: f"{_MISTAKE}, a script that starts no training of verl, or a case that cannot be written",
    },
    "matrix": {
        0: "the matrix is printed",
        2: f"{_MISTAKE}, or cases that cannot be collected",
    },
    "workflow": {
        0: "the workflow is written or unchanged",
        1: "with --check: the file is not what would be written",
        2: f"{_MISTAKE}, or cases that cannot be collected",
    },
    "merge": {
        0: "every case reported, and none is red",
        1: "a case is red, was reported twice, or did not report",
        2: f"{_MISTAKE}, or no list of cases: nothing is merged",
    },
    "rules": {
        0: "the rules are shown",
        2: f"{_MISTAKE}, or an id that no rule has",
    },
    "completion": {
        0: "the script is printed",
        2: f"{_MISTAKE}, or shtab is not installed or does not know the shell",
    },
}


def statuses_text(command: str) -> str:
    """Return the exit statuses of a command as the end of its help, empty where none are written down."""
    statuses = STATUSES.get(command, {})
    return "\n".join(["exit status:", *(f"  {number}  {meaning}" for number, meaning in statuses.items())]) if statuses else ""
