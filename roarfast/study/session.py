"""Objects of Python in a study: `Study(config, estimators=[f])` becomes the config that a TOML file would have given.

What can be imported is named `package.module:object`, so that worker processes find it and keys hash its files, exactly as if the file
named it. Lambdas, functions of a script or notebook and instances cannot: they stay in this process, which then does all
the work, and keys hash their source and what they hold (`fingerprint`), or the `version` they are given.
"""

from __future__ import annotations

import copy
import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from roarfast._objects import keep_object, make_importable
from roarfast.data import Dataset, from_torch
from roarfast.explain import Estimator, External
from roarfast.study.errors import StudyError
from roarfast.study.fingerprint import NoFingerprint, fingerprint
from roarfast.study.keys import digest
from roarfast.study.usercode import is_own


class Objects(TypedDict, total=False):
    """What `with_objects` takes beside a config."""

    estimators: Sequence[object]
    postprocessings: Sequence[object]
    data: object
    model: object


_ENTRY_KEYS = {"name", "object", "options", "version"}


def with_objects(
    raw: Mapping[str, object],
    estimators: Sequence[object] = (),
    postprocessings: Sequence[object] = (),
    data: object = None,
    model: object = None,
) -> dict[str, object]:
    """A config with objects in it as one without.

    Args:
        raw: The config as a dict; its grids may hold objects beside names.
        estimators: Names, functions `f(model, x, target)`, classes like captum's, `Estimator`, `External`, or tables like those of a config:
            `{"name": …, "object": …, "options": …, "version": …}`. Those that no grid names join every grid.
        postprocessings: The same; functions `f(maps)`.
        data: (train, test), each a `Dataset` or a data set of torch; or a class or function that `data.name` could name.
        model: A factory, as `model.name` could name it.

    Raises:
        StudyError: Something cannot be named or hashed; the message says what to give.
    """
    # Objects are not copied: two copies of a function would be two functions.
    made: dict[str, Any] = {key: value if key == "grid" else copy.deepcopy(value) for key, value in raw.items()}
    blocks = made.get("grid")
    if isinstance(blocks, list):
        made["grid"] = blocks = [dict(block) if isinstance(block, Mapping) else block for block in blocks]
    for kind, key, given in (
        ("estimators", "estimators", estimators),
        ("postprocessings", "postprocess", postprocessings),
    ):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise StudyError(f"{kind} must be a list, got {given!r}")
        table = [*(made.get(kind) or ())]
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and isinstance(block.get(key), list):
                block[key] = [_text(thing, kind, table) for thing in block[key]]
        _join([_text(thing, kind, table) for thing in given], blocks, key)
        if table:
            made[kind] = table
    if data is not None:
        made["data"] = _data(dict(made.get("data") or {}), data)
    if model is not None:
        factory = model if isinstance(model, str) else reference(model, "model", None)
        made["model"] = dict(made.get("model") or {}) | {"name": factory}
    return made


def _join(texts: list[str], blocks: Iterable[object] | None, key: str) -> None:
    """Adds names to every grid, except those that some grid has already."""
    known = [block for block in blocks or () if isinstance(block, dict)]
    named = {step for block in known for text in block.get(key, ()) for step in re.split(r"\||\^", str(text))}
    for text in texts:
        if text.removesuffix("^2") not in named:
            for block in known:
                block[key] = [*block.get(key, ["plain"] if key == "postprocess" else []), text]


def _text(thing: object, kind: str, table: list[object]) -> str:
    """The name of an entry of a list; one that is an object gets a row in the table of its kind."""
    if isinstance(thing, str):
        return thing
    entry = _entry(thing, kind)
    if entry not in table:
        table.append(entry)
    return str(entry["name"])


def _entry(thing: object, kind: str) -> dict[str, Any]:
    if isinstance(thing, Mapping):
        if unknown := set(thing) - _ENTRY_KEYS:
            raise StudyError(
                f"{kind}: there is no key {sorted(unknown)[0]!r}; known are {', '.join(sorted(_ENTRY_KEYS))}"
            )
        if "object" not in thing:
            raise StudyError(f"{kind}: {dict(thing)!r} has no 'object'")
        entry = dict(thing)
    elif isinstance(thing, External):
        entry = {"name": thing.name, "object": thing.function}
    elif isinstance(thing, Estimator):
        entry = {"name": thing.name, "object": thing}
    elif isinstance(thing, functools.partial) and not thing.args:
        entry = {"object": thing.func, "options": dict(thing.keywords)}
    else:
        entry = {"object": thing}
    found = entry["object"]
    if "name" not in entry:
        entry["name"] = _default_name(found, kind)
    if not isinstance(found, str):
        _check(found, kind)
        entry["object"] = reference(found, entry["name"], entry.get("version"))
    return {key: value for key, value in entry.items() if value is not None and value != {}}


def _check(found: object, kind: str) -> None:
    if not isinstance(found, type) and callable(getattr(found, "attribute", None)):
        raise StudyError(
            f"{kind}: this {type(found).__name__} was made for one model, and a study explains models of its own: give the class, "
            f"as in {{'object': {type(found).__name__}, 'options': {{…}}}}"
        )
    if not callable(found):
        raise StudyError(f"{kind}: {found!r} is no function, class or name")


def _default_name(found: object, kind: str) -> str:
    called = found.partition(":")[2] if isinstance(found, str) else getattr(found, "__name__", type(found).__name__)
    name = re.sub(r"[^a-z0-9]+", "_", str(called).lower()).strip("_")
    if not name[:1].isalpha() or "<" in str(called):
        raise StudyError(f"{kind}: {found!r} has no name: give {{'name': 'mine', 'object': …}}")
    return name


def reference(found: object, name: str, version: int | None) -> str:
    """What a config says instead of an object: where to import it from, or under which key this process keeps it."""
    if (text := importable(found)) is not None:
        return text
    if version is not None:
        return keep_object(name, found)
    try:
        return keep_object(f"{name}.{fingerprint(found)[:16]}", found)
    except NoFingerprint as error:
        raise StudyError(
            f"{name}: results are found again by what made them, and this object cannot be hashed: {error}. Put it into a module, or "
            f"give it a version that you raise when it changes: {{'name': {name!r}, 'object': …, 'version': 1}}"
        ) from None


def importable(found: object) -> str | None:
    """`package.module:object` if another process finds the same there; of an installed package, where it is public.

    Example:
        >>> importable(Path), importable(lambda: 0)
        ('pathlib:Path', None)
    """
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", "<")
    if module in (None, "__main__") or "<" in name or _look_up(module, name) is not found:
        return None
    if is_own(module):
        file = Path(str(sys.modules[module].__file__)).resolve()
        make_importable(file.parents[len(module.split(".")) - (file.name != "__init__.py")])
        return f"{module}:{name}"
    parts = module.split(".")
    homes = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return next(f"{home}:{name}" for home in homes if _look_up(home, name) is found)


def _look_up(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _data(section: dict[str, object], data: object) -> dict[str, object]:
    if isinstance(data, str):
        return section | {"name": data}
    if callable(data) and (text := importable(data)) is not None:
        return section | {"name": text}
    if isinstance(data, tuple | list) and len(data) == 2:
        parts: tuple[object, object] = (data[0], data[1])
    elif callable(data):
        parts = _called(data)
    else:
        raise StudyError(
            f"data must be (train, test), or a class or function that makes them, got {type(data).__name__}"
        )
    name = section.get("name") or getattr(parts[0], "name", None) or "own"
    train, test = (
        part if isinstance(part, Dataset) else from_torch(part, str(name), split)
        for part, split in zip(parts, ("train", "test"))
    )
    key = digest([train.data_hash, test.data_hash, train.class_names])[:16]
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(str(name)).name).strip("-._") or "own"
    return section | {"name": safe, "session": keep_object(key, (train, test))}


def _called(make: Callable[[str], object]) -> tuple[object, object]:
    return make("train"), make("test")
