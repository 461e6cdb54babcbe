"""Reading a file while it grows: complete lines, each once, in bounded memory.

Must not know: what the lines mean.
"""

from __future__ import annotations

import os
import re
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import final

CHUNK_BYTES = 1 << 18
LINE_LIMIT_BYTES = 1 << 16

# A progress bar ends its "lines" with a carriage return; a message that follows it must not hide behind it.
_LINE_END = re.compile(rb"[\r\n]+")


@final
class Tail:
    """The growing end of one file, which need not exist yet.

    A line longer than `LINE_LIMIT_BYTES` is given in pieces. `size` is the number of bytes read so far.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._carry = b""
        self.size = 0

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> list[bytes]:
        """Return the complete lines of the next chunk, without their ends; `size` has grown if anything was there.

        No line does not mean the end of the file: `size` tells.
        """
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except FileNotFoundError:
                return []
        if os.fstat(self._file.fileno()).st_size < self._file.tell():  # begun anew by its writer
            self._file.seek(0)
        chunk = self._file.read(CHUNK_BYTES) or b""
        self.size += len(chunk)
        *lines, self._carry = _LINE_END.split(self._carry + chunk)
        if len(self._carry) > LINE_LIMIT_BYTES:
            lines.append(self._carry)
            self._carry = b""
        return [line for line in lines if line]

    def rest(self) -> list[bytes]:
        """Return the last line even though it has no end: nobody will write one any more."""
        rest, self._carry = self._carry, b""
        return [rest] if rest else []
