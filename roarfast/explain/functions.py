"""Estimators with passes of their own: one file each, loaded when they are asked for."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from roarfast.explain.external import External
from roarfast.explain.options import Options

HOMES = {
    "deconvnet": "roarfast.explain.deconvnet:deconvnet",
    "linear-approx": "roarfast.explain.linear_approx:linear_approx",
    "excitation": "roarfast.explain.excitation:excitation",
    "iba": "roarfast.explain.bottleneck:bottleneck",
    "rollout": "roarfast.explain.rollout:rollout",
    "experturb": "roarfast.explain.extremal:extremal",
    "deepshap": "roarfast.explain.deepshap:deepshap",
}
"""Where each is: a function `f(model, x, target, *, layer) -> map`, as `External` takes, with the layer of Grad-CAM."""


class BuiltIn(External):
    """An estimator of this package that works like a user's."""

    def __post_init__(self) -> None:
        """The name is built in, so it is not checked against the built-in ones."""


def built_in(name: str, options: Options) -> External:
    """The estimator of a name in `HOMES`.

    Example:
        >>> built_in("deconvnet", Options()).name
        'deconvnet'
    """
    module, _, function = HOMES[name].partition(":")
    found: Any = getattr(importlib.import_module(module), function)
    return BuiltIn(name, partial(found, layer=options.gc_layer))
