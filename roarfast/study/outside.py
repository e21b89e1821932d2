"""Things in a config that somebody else wrote: `package.module:object`, their options, and what keys hash of their code."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from roarfast._objects import is_reference, load_object
from roarfast.explain.external import External, of_captum_class
from roarfast.explain.record import Estimator as EstimatorRecord
from roarfast.study import stored_maps
from roarfast.study.usercode import source_of

if TYPE_CHECKING:
    from torch import Tensor, nn


class Section(BaseModel):
    """A section of a config: no other keys than its own, and nothing changes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def importable(text: str) -> str:
    """A reference to something that can be imported, or to stored maps that are there."""
    if stored_maps.is_stored(text):
        stored_maps.place(text)
    else:
        load_object(text)
    return text


def record_of(reference: object) -> EstimatorRecord | None:
    """The record that a reference names, if it names one: what is wrong with others is told where they are listed."""
    try:
        found = load_object(reference) if isinstance(reference, str) else None
    except (ValueError, TypeError, AttributeError):
        return None
    return found if isinstance(found, EstimatorRecord) else None


class OutsideConfig(Section):
    """An estimator or post-processing that somebody else wrote.

    `object` is `package.module:object`: of an estimator `f(model, x, target, **options)`, a class like those of captum, or a
    `roarfast.explain.Estimator`, whose passes may be shared with other estimators; of a post-processing `f(maps, **options)`; one with the attribute `random = True` also
    gets `seed` and `index`, the sample ids, and must draw from these alone. The keys of results hash the files of the
    function (`usercode`); with `version` they hash that number instead.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*(-[a-z0-9_]+)*$")
    object: Annotated[str, AfterValidator(importable)]
    options: dict[str, Any] = {}
    version: int | None = Field(None, ge=1)

    def function(self) -> Callable[..., Any]:
        """The function with its options; of a class like those of captum, one that makes and asks an object of it."""
        found = load_object(self.object)
        if inspect.isclass(found) and callable(getattr(found, "attribute", None)):
            return of_captum_class(found, self.options)
        if not self.options:
            return found  # type: ignore[no-any-return]
        bound = functools.partial(found, **self.options)
        bound.random = getattr(found, "random", False)  # type: ignore[attr-defined]
        return bound

    def estimator(self) -> EstimatorRecord:
        """The record under the name that it has here, with its options."""
        if stored_maps.is_stored(self.object):
            return External(self.name, _stored)
        found = load_object(self.object)
        if isinstance(found, EstimatorRecord):
            return found.named(self.name, self.options)
        return External(self.name, self.function())


def _stored(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    raise RuntimeError("maps of the user's are read, not computed")


def code_of(reference: str, version: int | None) -> dict[str, object]:
    """What keys hash of code from outside: its files, or the version that its author gives it; of maps, their files."""
    if stored_maps.is_stored(reference):
        return {"maps": stored_maps.checksums(reference)}
    if version is not None:
        return {"version": version}
    source = source_of(reference) if is_reference(reference) else {}
    return {"source": source} if source else {}


def name_references(raw: dict[str, object]) -> None:
    """Gives `package.module:function` in a grid the name of the function, and an entry in the table of its kind."""
    blocks = raw.get("grid")
    for block in blocks if isinstance(blocks, list) else []:
        for key, kind in (("estimators", "estimators"), ("postprocess", "postprocessings")):
            texts = block.get(key) if isinstance(block, dict) else None
            if isinstance(texts, list) and isinstance(table := raw.setdefault(kind, []), list):
                block[key] = [_named(text, table) if isinstance(text, str) else text for text in texts]


def _name_of(reference: str) -> str:
    called = Path(reference).stem if stored_maps.is_stored(reference) else reference.partition(":")[2]
    name = re.sub(r"[^a-z0-9]+", "_", called.removeprefix(stored_maps.PREFIX).lower()).strip("_")
    return name if name[:1].isalpha() else f"maps_{name}"


def _named(text: str, table: list[object]) -> str:
    steps = []
    for step in text.split("|"):
        reference = step.strip().removesuffix("^2")
        if not is_reference(reference):
            steps.append(step)
            continue
        name = _name_of(reference)
        if {"name": name, "object": reference} not in table:
            table.append({"name": name, "object": reference})
        steps.append(name + step.strip()[len(reference) :])
    return "|".join(steps)
