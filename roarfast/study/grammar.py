"""Names in a config, checked against what the other packages know; they are imported only when asked."""

from __future__ import annotations

import re
from typing import Any

from roarfast.study.errors import nearest


def canonical_estimator(text: str) -> str:
    """The canonical spelling of an estimator name: `"SG-SQ"` → `"sg-sq"`, `"Grad²"` → `"grad^2"`."""
    from roarfast.explain import names

    if text.strip().lower() == "block":
        return "block"  # no map, so not a name of `explain`: a new rectangle per drop rate
    try:
        return str(names.parse(text))
    except ValueError as error:
        known = [*names.PAPER, *names.BASES, *names.ENSEMBLES, "block"]
        hint = nearest(text.lower(), dict.fromkeys(known))
        raise ValueError(str(error).split(". The grammar is")[0] + hint) from None


def estimator_slug(name: str) -> str:
    """The name in characters that are safe in file names."""
    return name.replace("(", ".").replace(")", "").replace("^", ".")


def canonical_postprocess(text: str) -> str:
    """The canonical spelling of a post-processing: `"max"` → `"max(3)"`, `"gaussian(1.0)"` → `"gaussian(1)"`."""
    from roarfast.explain import postprocess

    try:
        return str(postprocess.PostProcess.parse(text))
    except ValueError as error:
        hint = nearest(text.lower().split("(")[0], ("plain", "max", "gaussian"))
        raise ValueError(str(error).split(". The grammar is")[0] + hint) from None


def train_problems(section: Any, model: Any) -> list[tuple[str, str]]:
    """(path, message) for everything wrong with the `[train]` section: recipe, unknown fields, bad values."""
    if not isinstance(section, dict):
        return []
    from roarfast.study import pipeline

    recipe = section.get("recipe", "quick")
    known = pipeline.recipe_names()
    if not isinstance(recipe, str) or recipe not in known:
        return [("train.recipe", f"there is no recipe {recipe!r}{nearest(str(recipe), known)}")]
    overrides = {name: value for name, value in section.items() if name != "recipe"}
    fields = pipeline.recipe_fields()
    problems = [
        (f"train.{name}", f"there is no such key{nearest(name, ['recipe', *fields])}")
        for name in overrides
        if name not in fields
    ]
    if not problems:
        try:
            pipeline.resolve_recipe(recipe, model if isinstance(model, str) else None, overrides)
        except (ValueError, TypeError) as error:
            problems.append((_blamed("train", overrides, str(error)), str(error)))
    return problems


def name_problems(raw: dict[str, Any]) -> list[tuple[str, str]]:
    """(path, message) for unknown models, data sets and explain options."""
    from roarfast.study import pipeline

    problems = []
    model, data, explain = (raw.get(name) for name in ("model", "data", "explain"))
    if isinstance(model, dict) and isinstance(name := model.get("name", "convnet"), str):
        known = pipeline.model_names()
        if ":" not in name and name not in known:
            problems.append(
                ("model.name", f"there is no model {name!r}{nearest(name, known)} (or 'package.module:function')")
            )
    if (
        isinstance(data, dict)
        and isinstance(name := data.get("name"), str)
        and not (data.get("train") or data.get("path"))
    ):
        known = pipeline.dataset_names()
        if name not in known:
            hint = nearest(name, known)
            problems.append(
                ("data.name", f"there is no data set {name!r}{hint} (or give data.path, or data.train and data.test)")
            )
    if isinstance(explain, dict):
        options = explain.get("options", {})
        problems += pipeline.explain_problems(explain, options if isinstance(options, dict) else {})
    return problems


def _blamed(section: str, values: dict[str, Any], message: str) -> str:
    named = [name for name in values if re.search(rf"\b{re.escape(name)}\b", message)]
    return f"{section}.{named[0]}" if named else section
