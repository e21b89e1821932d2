"""The import graph of the package has no cycles, imports inside functions and under TYPE_CHECKING included; those are few."""

from __future__ import annotations

import ast
from pathlib import Path

import roarfast

ROOT = Path(roarfast.__file__).parent
MAX_LATE = 15
"""Imports of the package itself inside functions: for a quick `--help`, or where torch is not installed."""


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
    found = [sorted(group) for group in strongly_connected(graph())]
    assert found == [], "\n".join(map(str, found))


def late_imports(path: Path) -> list[int]:
    """Lines of imports of the package inside functions."""
    lines = set()
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    own = (node.module or "").split(".")[0] == "roarfast"
                else:
                    own = isinstance(node, ast.Import) and any(a.name.split(".")[0] == "roarfast" for a in node.names)
                if own:
                    lines.add(node.lineno)
    return sorted(lines)


def test_imports_inside_functions_are_few_and_say_why() -> None:
    found = [(path, line) for path in modules().values() for line in late_imports(path)]
    listed = [f"{path.relative_to(ROOT)}:{line}" for path, line in found]
    assert 1 <= len(found) <= MAX_LATE, listed
    silent = [where for where, (path, line) in zip(listed, found) if not reason(path, line)]
    assert silent == [], "say in a comment on the line, or on the one above, why the import waits"


def reason(path: Path, line: int) -> bool:
    lines = path.read_text(encoding="utf-8").splitlines()
    return "#" in lines[line - 1] or lines[line - 2].lstrip().startswith("#")
