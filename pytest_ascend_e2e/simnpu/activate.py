"""Registers the platform of the simulated NPU with verl; importing this module does it.

verl imports what VERL_USE_EXTERNAL_MODULES names, and offers a module no other moment to act: this is the one module of the
package that works when it is imported.
"""

from __future__ import annotations

from verl.plugin.platform import PlatformRegistry

from .patches import require_installed
from .platform import NAME, SimulatedNpu

require_installed()
PlatformRegistry.register(platform=NAME)(SimulatedNpu)
