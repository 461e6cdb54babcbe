"""The exception of the simulated NPU.

Not an `E2EError`: it is raised in the training process, which imports nothing else of this package, and is read in its log.
"""

from __future__ import annotations


class SimulationError(RuntimeError):
    """The simulation does not fit the installed verl, vLLM or torch, or was not started as it must be."""
