"""Lines of bounded length.

Must not know what a line means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

# verl's step lines have 4 to 10 kB; what is longer than this is no line of a log.
LONGEST_LINE = 1 << 20


def bounded_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of an open file, of an over-long one only its start, which is then longer than `LONGEST_LINE`."""
    while line := stream.readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = stream.readline(LONGEST_LINE + 1)
