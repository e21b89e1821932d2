"""Names in a config, checked against what the other packages know."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from roarfast._objects import is_reference, load_object
from roarfast._types import ArrayT
from roarfast.data.load import SOURCES as DATASETS
from roarfast.explain import names, postprocess, steps
from roarfast.explain.aggregate import Aggregation
from roarfast.explain.estimators import find, known
from roarfast.explain.options import Options
from roarfast.explain.oracles import ORACLES
from roarfast.explain.record import Estimator
from roarfast.study.errors import nearest
from roarfast.train.models import MODELS
from roarfast.train.recipe import PRESETS as RECIPES
from roarfast.train.recipe import Recipe, get_recipe

KEPT_APART = "aggregation 'none' keeps the channels apart: that is for a whole study, as explain.aggregate"


def canonical_estimator(text: str, outside: Collection[str] = ()) -> str:
    """The canonical spelling of an estimator name: `"SG-SQ"` → `"sg-sq"`, `"Grad²"` → `"grad^2"`."""
    bare = "".join(text.lower().split())
    if bare == "block" or bare in ORACLES:
        return bare  # not names of `explain`: a new rectangle per drop rate has no map, and oracles see the label
    try:
        return str(names.parse(text, outside))
    except ValueError as error:
        allowed = [*outside, *names.PAPER, *known(), *names.ENSEMBLES, "block", *ORACLES]
        hint = nearest(text.lower(), dict.fromkeys(allowed))
        raise ValueError(str(error).split(". The grammar is")[0] + hint) from None


def _unused(maps: ArrayT) -> ArrayT:
    return maps


def canonical_postprocess(text: str, outside: Collection[str] = ()) -> str:
    """The canonical spelling of a post-processing: `"max"` → `"max(3)"`, `"gaussian(1.0)"` → `"gaussian(1)"`."""
    try:
        return str(postprocess.PostProcess.parse(text, dict.fromkeys(outside, _unused)))
    except ValueError as error:
        message = str(error).split(". The grammar is")[0]
        if "there is no post-processing" in message and "did you mean" not in message:
            message += f"; allowed: {', '.join(['plain', *steps.KINDS, *outside])}"
        raise ValueError(message) from None


def shared_passes(estimator: str, outside: Mapping[str, Estimator]) -> str:
    """Estimators with the same answer come from the same passes over a model, or cost next to nothing beside them."""
    name = names.parse(estimator, outside)
    record = find(name.base, outside)
    if name.base in outside and record.of_pass is None:
        return name.base
    if name.ensemble is not None:
        return "noisy" if name.base == "grad" else f"noisy({name.base})"
    return "path" if record.path else "clean"


TRAIN_KEYS = ("recipe", "function", "version", "start")
"""Keys of `[train]` that are no fields of a recipe."""


def train_problems(section: object, model: object) -> list[tuple[str, str]]:
    """(path, message) for everything wrong with the `[train]` section: recipe, unknown fields, bad values."""
    if not isinstance(section, dict):
        return []
    recipe = section.get("recipe", "quick")
    known = ["quick", *RECIPES]
    problems = []
    if not isinstance(recipe, str) or recipe not in known:
        problems.append(("train.recipe", f"there is no recipe {recipe!r}{nearest(str(recipe), known)}"))
        recipe = "quick"
    overrides = {name: value for name, value in section.items() if name not in TRAIN_KEYS}
    fields = [field.name for field in dataclasses.fields(Recipe)]
    for name in [name for name in overrides if name not in fields]:
        problems.append((f"train.{name}", f"there is no such key{nearest(name, [*TRAIN_KEYS, *fields])}"))
        del overrides[name]
    while True:  # a recipe reports one bad value at a time
        try:
            get_recipe(recipe, model if isinstance(model, str) else None, **overrides)
            return problems
        except (ValueError, TypeError) as error:
            blamed = _blamed("train", overrides, str(error))
            problems.append((blamed, str(error)))
            if blamed == "train":
                return problems
            del overrides[blamed.removeprefix("train.")]


def name_problems(raw: Mapping[str, object]) -> list[tuple[str, str]]:
    """(path, message) for unknown models, data sets and explain options."""
    problems = []
    model, data, explain = (raw.get(name) for name in ("model", "data", "explain"))
    name = model.get("name") if isinstance(model, dict) else None
    if isinstance(name, str) and not is_reference(name) and name not in MODELS:
        hint = nearest(name, MODELS)
        problems.append(("model.name", f"there is no model {name!r}{hint} (or 'package.module:function')"))
    if (
        isinstance(data, dict)
        and isinstance(name := data.get("name"), str)
        and not any(data.get(key) for key in ("train", "test", "path", "session"))
    ):
        if is_reference(name):
            problems += [("data.name", problem) for problem in _unloadable(name)]
        elif name not in DATASETS:
            hint = nearest(name, DATASETS)
            problems.append(
                ("data.name", f"there is no data set {name!r}{hint} (or give data.path, or data.train and data.test)")
            )
    if isinstance(explain, dict):
        options = explain.get("options", {})
        problems += explain_problems(explain, options if isinstance(options, dict) else {})
    return problems


def _unloadable(text: str) -> list[str]:
    try:
        load_object(text)
    except ValueError as error:
        return [str(error)]
    return []


def _blamed(section: str, values: Iterable[str], message: str) -> str:
    named = [name for name in values if re.search(rf"\b{re.escape(name)}\b", message)]
    return f"{section}.{named[0]}" if named else section


def explain_problems(section: Mapping[str, object], options: dict[str, Any]) -> list[tuple[str, str]]:
    """(path, message) for everything wrong with `[explain]` that needs the explain package to know."""
    fields = [field.name for field in dataclasses.fields(Options)]
    problems = [
        (f"explain.options.{name}", f"there is no such option{nearest(name, fields)}")
        for name in options
        if name not in fields
    ]
    if not problems:
        try:
            Options(**options)
        except (ValueError, TypeError) as error:
            named = [name for name in options if name in str(error)]
            problems.append((f"explain.options.{named[0]}" if named else "explain.options", str(error)))
    if isinstance(aggregate := section.get("aggregate"), str):
        try:
            Aggregation.parse(aggregate)
        except ValueError as error:
            problems.append(("explain.aggregate", str(error)))
    return problems
