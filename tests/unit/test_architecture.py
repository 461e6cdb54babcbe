"""Who may import whom, and what may never be imported in the pytest process."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_ascend_e2e

PACKAGE = Path(pytest_ascend_e2e.__file__).parent

LEVELS = {
    "errors": 0, "records": 0, "deadline": 0, "files": 0, "nodeids": 0,
    "recipe": 1, "metrics": 1, "diagnosis": 1,
    "verdict": 2, "runners": 2, "datasets": 2, "models": 2, "preflight": 2, "launch": 2, "history": 2,
    "session": 3, "authoring": 3,
    "report": 4,
    "plugin": 5, "cli": 5,
}  # fmt: skip
PURE = {"recipe", "metrics", "diagnosis", "verdict"}
HEAVY = {
    "torch",
    "torch_npu",
    "ray",
    "verl",
    "vllm",
    "transformers",
    "tokenizers",
    "datasets",
    "hydra",
    "omegaconf",
    "pandas",
    "numpy",
}
LAZY = HEAVY | {"pyarrow", "PIL"}
# Modules that only run in a child process: `python -m ...`, or loaded by the training itself.
CHILDREN = {"simnpu", "models/tiny", "models/networks", "models/tokens", "models/warmup", "preflight/compose", "launch/own_job"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def is_child(path: Path) -> bool:
    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return any(name == child or name.startswith(child + "/") for child in CHILDREN)


def imported_rooms(path: Path) -> set[str]:
    """Return the rooms of the package that a module imports, by relative or absolute import."""
    rooms: set[str] = set()
    package = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            full = [*base, *(node.module.split(".") if node.module else [])]
            targets = [[*full, alias.name] for alias in node.names] if len(full) < 2 else [full]
        elif isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        else:
            continue
        rooms |= {target[1] for target in targets if target[0] == PACKAGE.name and len(target) > 1}
    return rooms


def top_level_imports(path: Path) -> set[str]:
    """Return the names of foreign packages that importing a module imports."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_lower_rooms(path: Path) -> None:
    room = room_of(path)
    if room in {"__init__", "__main__"}:
        return

    rooms = imported_rooms(path) - {room}

    if room == "simnpu":
        assert rooms == set()
        return
    assert room in LEVELS, f"{room} has no level"
    assert {other for other in rooms if LEVELS.get(other, 99) >= LEVELS[room] and LEVELS[room] > 0} == set()


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_of_the_pytest_process_imports_a_heavy_library(path: Path) -> None:
    if is_child(path):
        return

    assert top_level_imports(path) & LAZY == set()


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_pytest_is_imported_only_in_the_plugin(path: Path) -> None:
    imports = {name for name in top_level_imports(path) if name in {"pytest", "_pytest", "xdist"}}

    assert imports == set() or room_of(path) == "plugin"


@pytest.mark.parametrize(
    "path", [path for path in modules() if room_of(path) in PURE], ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_a_pure_room_touches_neither_files_nor_environment_nor_clock(path: Path) -> None:
    impure = {"os", "io", "time", "subprocess", "socket", "shutil", "tempfile", "datetime", "random"}
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }

    assert top_level_imports(path) & impure == set()
    assert calls & {"open", "print", "input", "exec", "eval"} == set()


def test_importing_the_package_loads_neither_pytest_nor_a_heavy_library() -> None:
    code = (
        "import sys, pytest_ascend_e2e; from pytest_ascend_e2e import Recipe; print(*sorted(m.split('.')[0] for m in sys.modules))"
    )

    loaded = set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())

    assert loaded & (LAZY | {"pytest", "_pytest"}) == set()


def test_collecting_the_cases_imports_no_heavy_library() -> None:
    code = (
        "import sys, pytest\n"
        "status = pytest.main(['--collect-only', '-q', 'tests/e2e_npu'])\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))\n"
        "sys.exit(status)\n"
    )
    # Other plugins of the environment (Hydra brings one) may load what they like.
    plugins = "-p xdist -p pytest_timeout -p pytest_ascend_e2e.plugin"
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": plugins}

    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=PACKAGE.parent, env=environment
    )

    assert done.returncode == 0, done.stdout + done.stderr
    loaded = set(done.stdout.splitlines()[-1].split()[1:])
    assert loaded & HEAVY == set()


def test_every_module_says_what_it_owns() -> None:
    silent = [path for path in modules() if not ast.get_docstring(ast.parse(path.read_text()))]

    assert silent == []


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    long = {path.name: count for path in modules() if (count := len(path.read_text().splitlines())) > 400}

    assert long == {}


def test_what_pytest_and_the_commands_import_is_declared() -> None:
    declared = {"pytest", "_pytest", "xdist", "yaml", "psutil"}
    found = {
        f"{name} ({path.relative_to(PACKAGE)})"
        for path in modules()
        if not is_child(path)
        for name in imported_from_outside(path)
        if name not in declared | LAZY | sys.stdlib_module_names | {"pytest_ascend_e2e"}
    }

    assert found == set()


def imported_from_outside(path: Path) -> set[str]:
    """Return what a module imports at run time of other packages, by their first names."""
    tree = ast.parse(path.read_text())
    checked = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in checked:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names
