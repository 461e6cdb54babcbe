"""One run as a supervised process: its command, its directory, its end. Must not know: recipes, devices, what a metric means."""

from __future__ import annotations

from .closing import UNFINISHED, Book
from .environment import build_environment, own_modules
from .processes import OWNER, RUN_ID
from .ray_home import home_variables, make_ray_home, name_ray_home, ray_overrides
from .recorded import RecordedCommand, read_command, with_changes
from .redaction import Redactor
from .run_directory import Command, RunDirectory, new_run_id
from .simulation import simulation_env, simulation_overrides
from .supervisor import Exit, Supervisor
from .sweeping import Leftovers, sweep, sweep_dead_sessions
from .watch import Limits

__all__ = [
    "OWNER",
    "RUN_ID",
    "UNFINISHED",
    "Book",
    "Command",
    "Exit",
    "Leftovers",
    "Limits",
    "RecordedCommand",
    "Redactor",
    "RunDirectory",
    "Supervisor",
    "build_environment",
    "home_variables",
    "make_ray_home",
    "name_ray_home",
    "new_run_id",
    "own_modules",
    "ray_overrides",
    "read_command",
    "simulation_env",
    "simulation_overrides",
    "sweep",
    "sweep_dead_sessions",
    "with_changes",
]
