"""Gives a run's job a number of its own in Ray; importing this module does it, which VERL_USE_EXTERNAL_MODULES has verl do.

verl names the sockets by which weights reach the rollout engines by Ray's job id, in /tmp, whatever TMPDIR says. Ids are unique
within one Ray only: the first job of each is number 1. Two runs on one host, each with a Ray of its own, would then meet at one
socket: one takes it from the other, or is refused.

Loaded in the training's processes only.
"""

from __future__ import annotations

import os
import secrets
import warnings

import ray
import ray._private.state

from .processes import RUN_ID
from .ray_remains import job_number

_NUMBER = job_number(os.environ[RUN_ID]) if os.environ.get(RUN_ID) else 1 + secrets.randbelow(2**31)


def _next_job_id() -> ray.JobID:
    return ray.JobID.from_int(_NUMBER)


if hasattr(ray._private.state, "next_job_id"):  # noqa: SLF001  # what Ray's driver asks for its number
    ray._private.state.next_job_id = _next_job_id  # noqa: SLF001  # as above
else:
    # No reason to end a training that may be the only one of its host.
    warnings.warn(
        f"Ray {ray.__version__} takes its job's number from elsewhere than ray._private.state.next_job_id: another training "
        "on this host may meet this one at verl's weight sockets",
        stacklevel=1,
    )
