"""The import graph of the package has no cycles; imports inside functions and under TYPE_CHECKING count."""

from __future__ import annotations

import ast
from pathlib import Path

import roarfast

ROOT = Path(roarfast.__file__).parent
KNOWN = [  # to be untied: a class and the module that draws it, which names it in a type; two halves of one adapter
    {"roarfast.compat._quantus_road", "roarfast.compat.quantus"},
    {"roarfast.metrics.damage_parts", "roarfast.metrics.damage_plot"},
    {"roarfast.metrics.plotting", "roarfast.metrics.results"},
]


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ("roarfast", *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Modules of the package that a file imports anywhere; `from package import module` is the module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module in known and node.level == 0:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else str(node.module))
    return found


def strongly_connected(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules that all reach each other, by reachability: the graph is small."""
    reach = {name: set(targets) for name, targets in graph.items()}
    for middle in graph:
        for targets in reach.values():
            if middle in targets:
                targets |= reach[middle]
    groups = []
    for name in graph:
        group = {other for other in reach[name] if name in reach.get(other, ())} if name in reach[name] else set()
        if group and group not in groups:
            groups.append(group)
    return groups


def graph() -> dict[str, set[str]]:
    known = modules()
    # The package itself re-exports the ops, which is what `import roarfast as rf` in a module is after.
    return {name: imports(path, known) - {"roarfast", name} for name, path in known.items() if name != "roarfast"}


def test_the_check_finds_cycles() -> None:
    assert strongly_connected({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert strongly_connected({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_no_cycles() -> None:
    found = [sorted(group) for group in strongly_connected(graph()) if group not in KNOWN]
    assert found == [], "\n".join(map(str, found))
