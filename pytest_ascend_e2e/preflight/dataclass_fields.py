"""The fields of verl's configuration dataclasses, read from its source without importing it.

verl builds a section with a `_target_` as that dataclass and raises on a field it has not; importing verl to look would load torch
and take ten seconds. Must not know: Hydra, or what an override is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=False, slots=True)
class DataclassFields:
    """Reads classes below `root`, the directory of the package verl; each file at most once."""

    root: Path
    sources: dict[Path, str] = field(default_factory=dict)

    def of(self, target: str) -> frozenset[str] | None:
        """Return the field names of a class given as `verl.workers.config.ActorConfig`, None where its source does not tell."""
        module, _, name = target.rpartition(".")
        if not name or not module.startswith(self.root.name):
            return None
        return self._fields(name, module, frozenset())

    def _fields(self, name: str, module: str, seen: frozenset[str]) -> frozenset[str] | None:
        found = self._find(name, module)
        if found is None or name in seen:
            return None
        names = frozenset(_own_fields(found))
        for base in found.bases:
            base_name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
            inherited = self._fields(base_name, module, seen | {name})
            # An unknown base may bring any field: then the class cannot be judged.
            if inherited is None and base_name not in ("object", "ABC", "Mapping", "MutableMapping"):
                return None
            names |= inherited or frozenset()
        return names

    def _find(self, name: str, module: str) -> ast.ClassDef | None:
        """Return the class of this name that is nearest to a module: a package's `__init__` only passes names on."""
        wanted = module.split(".")[1:]
        candidates = [path for path, text in self._texts().items() if f"class {name}(" in text or f"class {name}:" in text]
        for path in sorted(
            candidates, key=lambda path: (-_shared(path.relative_to(self.root).with_suffix("").parts, wanted), str(path))
        ):
            for node in ast.parse(self.sources[path]).body:
                if isinstance(node, ast.ClassDef) and node.name == name:
                    return node
        return None

    def _texts(self) -> Mapping[Path, str]:
        if not self.sources:
            for path in sorted(self.root.rglob("*.py")):
                self.sources[path] = path.read_text(encoding="utf-8", errors="replace")
        return self.sources


def _own_fields(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            is_class_variable = "ClassVar" in ast.unparse(statement.annotation)
            if not is_class_variable:
                yield statement.target.id


def _shared(parts: tuple[str, ...], wanted: list[str]) -> int:
    count = 0
    for one, other in zip(parts, wanted, strict=False):
        if one != other:
            break
        count += 1
    return count
