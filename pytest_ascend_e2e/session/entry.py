"""Which of verl's programs trains a recipe, and who starts its processes.

Must not know: arguments of the program, or how a process is supervised.
"""

from __future__ import annotations

from ..recipe import SFT, Recipe


def entry_of(recipe: Recipe | SFT, devices: int) -> tuple[str, ...]:
    """Return what stands between the interpreter and verl's arguments, for a node of so many devices."""
    if isinstance(recipe, Recipe):
        return ("-m", "verl.trainer.main_ppo")
    if recipe.launcher == "ray":
        return ("-m", "verl.trainer.sft_trainer_ray")
    # --standalone: a rendezvous at a free port, so that two trainings of one host do not meet.
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nnodes=1", f"--nproc_per_node={recipe.processes(devices)}")
    return (*launcher, "-m", "verl.trainer.sft_trainer")
