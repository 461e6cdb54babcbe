"""Models: the weights of a real one found and proven whole, and tiny ones of the same architecture for simulated NPUs.

Must not know: recipes, devices. What imports torch runs in a child process only (`tiny` and what it imports).
"""

from __future__ import annotations

from .architectures import Architecture, architecture_of, tiny_sizes
from .weights import find_model
from .workshop import WARMUPS, Warmup, make_tiny

__all__ = ["WARMUPS", "Architecture", "Warmup", "architecture_of", "find_model", "make_tiny", "tiny_sizes"]
