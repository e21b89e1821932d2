"""The user's code behind a name: which files it is, so that a change of any of them is a change of the study."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import roarfast

_PYTHON = [path for path in sysconfig.get_paths().values() if path and Path(path) != Path(sys.prefix)]
_INSTALLED = tuple(Path(path).resolve() for path in (*_PYTHON, str(Path(roarfast.__file__).parent)))


def source_of(reference: str) -> dict[str, str]:
    """Module → hash of its file, for the module that `"package.module:object"` names and all it imports, directly or not.

    Modules of installed packages and of Python are left out, whatever they are: of the package that is named itself, its
    version is given. Imports made by name at run time, and data files, are not seen: `version` in the config is for those.

    Example:
        >>> source_of("math:pi")
        {}
    """
    found: dict[str, str] = {}
    _collect(reference.partition(":")[0], found)
    if not found:
        root = reference.partition(":")[0].split(".")[0]
        version = getattr(sys.modules.get(root), "__version__", None)
        return {root: f"version {version}"} if version else {}
    return dict(sorted(found.items()))


_LOADED: dict[str, tuple[object, str]] = {}
"""Module → its spec, which a reload replaces, and the hash of its file when a study first met it."""


def stale_modules(code: dict[str, str]) -> list[str]:
    """Those of the modules (name → hash of the file) that this process imported before their file was changed."""
    stale = []
    for name, digest in code.items():
        spec = getattr(sys.modules.get(name), "__spec__", None)
        known = _LOADED.get(name)
        if spec is None:
            continue
        if known is None or known[0] is not spec:
            _LOADED[name] = spec, digest
        elif known[1] != digest:
            stale.append(name)
    return stale


def source_files(reference: str) -> dict[str, str]:
    """Path of a module below a folder of modules → its text, for the modules that `source_of` hashes."""
    found: dict[str, str] = {}
    _collect(reference.partition(":")[0], found)
    files = {}
    for name in found:
        path = _own_file(name)
        if path is not None:
            place = name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
            files[place] = path.read_text(encoding="utf-8")
    return files


def _collect(module: str, found: dict[str, str]) -> None:
    """Adds a module, the packages it is in, and what they import."""
    parts = module.split(".")
    for name in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
        if name in found:
            continue
        path = _own_file(name)
        if path is None:
            return
        content = path.read_bytes()
        found[name] = hashlib.blake2b(content.replace(b"\r\n", b"\n"), digest_size=16).hexdigest()
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for imported in _imports(ast.parse(content, str(path)), package):
            _collect(imported, found)


def is_own(module: str | None) -> bool:
    """Whether a module is the user's: a file that is neither installed nor Python's, or no file at all (a notebook)."""
    if module in (None, "builtins"):
        return False
    file = getattr(sys.modules.get(str(module)), "__file__", None)
    if file is None:
        return module == "__main__"
    return not any(Path(file).resolve().is_relative_to(folder) for folder in _INSTALLED)


def _own_file(module: str) -> Path | None:
    """The source file of a module that is neither installed nor Python's own."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin).resolve()
    return None if any(path.is_relative_to(folder) for folder in _INSTALLED) else path


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Names of modules that a file imports anywhere in it; of `from a import b`, also `a.b`, which may be one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
