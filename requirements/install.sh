#!/bin/sh
# Creates the environment of the simulation and of the project's tests.
#
# No resolver: verl, vLLM and transformers name ranges that contradict each other, and the lists hold a complete set that was
# seen to work together. torch comes first and by itself: the CPU build is wanted, which some indexes do not carry.
set -eu
venv=${VENV:-.venv}
here=$(cd "$(dirname "$0")" && pwd)

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

torch=$(grep -o '^torch==[0-9.]*' "$here/sim.txt")
has_cpu_torch() { "$venv/bin/python" -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch") != sys.argv[1] + "+cpu")' "${torch#torch==}" 2>/dev/null; }
if ! has_cpu_torch; then
    # "==V+cpu" asks for the CPU build by name; where no index known to pip has it, PyTorch's own does.
    pip install --no-deps "$torch+cpu" || pip install --no-deps --index-url "$TORCH_INDEX" "$torch+cpu"
fi
grep -v '^torch==' "$here/sim.txt" > "$venv/sim-without-torch.txt"
pip install --no-deps -r "$venv/sim-without-torch.txt" -r "$here/dev.txt"
pip install --no-deps --upgrade --target "$venv/megatron" -r "$here/megatron.txt"
pip install --no-deps --no-build-isolation --editable "$here/.."
