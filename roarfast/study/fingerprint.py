"""A digest of a Python object that says whether it would do the same: for functions that no other process can import."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from roarfast.explain.hashing import checksum, model_hash
from roarfast.study.keys import digest
from roarfast.study.usercode import is_own, source_of


class NoFingerprint(ValueError):
    """Something that cannot be told from another of its kind."""


def fingerprint(value: object) -> str:
    """Equal for objects of the same source that hold the same values, in this process and the next.

    Of a function: its source, its defaults, what it closes over, and the globals it names, functions among them likewise. Code of
    installed packages counts by name and version.

    Raises:
        NoFingerprint: The source cannot be found, or a value is of a kind that is not known here; the message names it.

    Example:
        >>> fingerprint([1, "a"]) == fingerprint([1, "a"]) != fingerprint([2, "a"])
        True
    """
    return digest(_describe(value, {}))


def _describe(value: object, seen: dict[int, int]) -> list[object]:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return [type(value).__name__, repr(value)]
    if id(value) in seen:
        return ["again", seen[id(value)]]
    seen[id(value)] = len(seen)
    if isinstance(value, types.ModuleType):
        return ["module", value.__name__, source_of(value.__name__)]
    if isinstance(value, functools.partial):
        return ["partial", *(_describe(part, seen) for part in (value.func, value.args, value.keywords))]
    if isinstance(value, types.MethodType):
        return ["method", value.__name__, _describe(value.__self__, seen)]
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return _code(value, seen)
    return _held(value, seen)


def _held(value: object, seen: dict[int, int]) -> list[object]:
    """Of containers, arrays and instances."""
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.str, list(value.shape), checksum(value)]
    if isinstance(value, torch.Tensor):
        return ["tensor", _describe(value.detach().cpu().float().numpy(), seen), str(value.dtype)]
    if isinstance(value, torch.nn.Module):
        return ["net", model_hash(value), _describe(type(value), seen)]
    if isinstance(value, Mapping):
        return ["map", [[_describe(k, seen), _describe(v, seen)] for k, v in value.items()]]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [_describe(part, seen) for part in value]]
    if isinstance(value, set | frozenset):
        return ["set", sorted(digest(_describe(part, dict(seen))) for part in value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return ["record", _describe(type(value), seen), _describe(fields, seen)]
    if is_own(type(value).__module__) and hasattr(value, "__dict__"):
        return ["instance", _describe(type(value), seen), _describe(vars(value), seen)]
    raise NoFingerprint(f"it holds a {type(value).__module__}.{type(value).__qualname__}")


def _code(value: type | Callable[..., object], seen: dict[int, int]) -> list[object]:
    """Of functions and classes."""
    module, name = value.__module__, value.__qualname__
    if not is_own(module):
        root = (module or "").split(".")[0]
        return ["installed", module, name, str(getattr(sys.modules.get(root), "__version__", ""))]
    try:
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        raise NoFingerprint(f"the source of {name} cannot be found") from None
    functions = [value] if inspect.isfunction(value) else [f for f in vars(value).values() if inspect.isfunction(f)]
    parts = []
    for function in functions:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        named = {
            n: function.__globals__[n] for n in sorted(set(_names(function.__code__))) if n in function.__globals__
        }
        parts += [function.__defaults__, function.__kwdefaults__, cells, named]
    bases = [base for base in getattr(value, "__bases__", ()) if base is not object]
    return ["code", source, [_describe(part, seen) for part in parts], [_describe(base, seen) for base in bases]]


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that code and the functions in it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
