"""The simulated NPU: what lets verl's real trainer and vLLM's real engine run on a CPU as if they had NPUs.

Lives in the processes of the training only. Importing this package does nothing: two doors lead in, and
`launch.simulation.simulation_env` opens both by environment variables.

* `site/sitecustomize.py`, first on PYTHONPATH: every Python process of the run, from its first line. Installs `patches`.
* `activate`, named by VERL_USE_EXTERNAL_MODULES: every process that imports verl. Registers `platform`.

What is simulated is the device alone: memory calls, device strings, the collectives' backend (gloo), and what the CPU builds
of the libraries lack. Trainer, rollout engine, weight synchronisation and Ray are the real ones.

Must not know: recipes, runs, pytest, or anything else of this package.
"""

from __future__ import annotations

from .errors import SimulationError

__all__ = ["SimulationError"]
