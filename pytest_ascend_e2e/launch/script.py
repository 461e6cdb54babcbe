"""The script that repeats a run by hand: same directory, same environment, same arguments, new places for what it writes.

Must not know: how the run was supervised. Its words are quoted for bash; secrets are asked for, never written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from .redaction import Piece, Redactor

_HEAD = """\
#!/usr/bin/env bash
# Repeats run {run} by hand. Arguments are added to the training's own and win: ./command.sh trainer.total_training_steps=1
# It writes into a directory repeat-1, repeat-2, ... beside this file. It holds no lease: see that the devices it names are free.
set -euo pipefail

# Only the variables of the run: a RAY_ADDRESS of this shell, for example, would lead it into another Ray.
for name in $(compgen -e); do
  case $name in
    {kept}) ;;
    *) unset -v "$name" ;;
  esac
done
"""
_PLACES = """
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
number=1
until mkdir -- "$here/repeat-$number" 2>/dev/null; do
  if [ ! -e "$here/repeat-$number" ]; then
    echo "command.sh: $here cannot be written to; copy this file to a directory of your own" >&2
    exit 2
  fi
  number=$((number + 1))
done
repeat_dir=$here/repeat-$number
"""
_RAY = """\
ray_home=$(mktemp -d /tmp/e2e-XXXXXX)
mkdir -- "$ray_home/tmp"
trap 'rm -rf -- "$ray_home"' EXIT
"""
_RUN = """
echo "command.sh: writing to $repeat_dir" >&2
cd -- {cwd}
{arguments} "$@" </dev/null 2>&1 | tee -- "$repeat_dir/train.log"
"""


def write_script(
    argv: tuple[str, ...], environment: Mapping[str, str], *, cwd: Path, run_dir: Path, ray_home: Path | None, redactor: Redactor
) -> str:
    """Return the text of `command.sh`, in which `run_dir` and `ray_home` are replaced by new directories wherever they stand."""
    places = {str(run_dir): "$repeat_dir"}
    if ray_home is not None:
        places[str(ray_home)] = "$ray_home"
    secrets: dict[str, str] = {}
    exports = [_export(name, value, places, redactor) for name, value in environment.items()]
    words = [_word(pieces, places, secrets, environment) for pieces in redactor.arguments(argv)]
    kept = {name: "the environment" for name, value in environment.items() if redactor.is_secret(name, value)}
    asked = {**kept, **secrets}
    parts = [
        _HEAD.format(run=run_dir.name, kept="|".join(sorted({"PATH", *asked}))),
        *(f': "${{{name}:?set it first: a secret of the run ({origin}), not written down}}"\n' for name, origin in asked.items()),
        _PLACES,
        _RAY if ray_home is not None else "",
        "\n",
        *(f"{line}\n" for line in exports),
        _RUN.format(cwd=_quote(str(cwd), places), arguments=" \\\n  ".join(words)),
    ]
    return "".join(parts)


def _export(name: str, value: str, places: Mapping[str, str], redactor: Redactor) -> str:
    return f"export {name}" if redactor.is_secret(name, value) else f"export {name}={_quote(value, places)}"


def _word(pieces: Iterable[Piece], places: Mapping[str, str], secrets: dict[str, str], environment: Mapping[str, str]) -> str:
    return "".join(
        f'"${{{_variable_of(piece, secrets, environment)}}}"' if piece.secret_of else _quote(piece.text, places) for piece in pieces
    )


def _variable_of(piece: Piece, secrets: dict[str, str], environment: Mapping[str, str]) -> str:
    if environment.get(piece.secret_of) == piece.text:
        return piece.secret_of
    variable = f"SECRET_{len(secrets) + 1}"
    secrets[variable] = piece.secret_of
    return variable


def _quote(text: str, places: Mapping[str, str]) -> str:
    """Quote one word for bash, with each place in it replaced by the shell variable that stands for it."""
    spots = "|".join(f"{re.escape(place)}(?![A-Za-z0-9._-])" for place in places)  # not where it only begins a longer name
    parts = re.split(f"({spots})", text)
    return "".join(f'"{places[part]}"' if part in places else shlex.quote(part) for part in parts if part) or "''"
