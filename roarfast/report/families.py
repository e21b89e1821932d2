"""Families of estimators, as in Hooker et al.: a method as it is, averaged over noise (SG), squared (SQ), mean of squares (SG-SQ)."""

from __future__ import annotations

from dataclasses import replace

from roarfast.explain.names import split_name
from roarfast.report.grid import BASELINES, Panel

FAMILIES = {"raw": (None, False), "SG": ("sg", False), "SQ": (None, True), "SG-SQ": ("sg-sq", False)}
"""Name → ensemble, squared."""


def family(estimator: str) -> tuple[str, str] | None:
    """(method, family) of an estimator; None for baselines and others.

    Example:
        >>> family("sg-sq(ig)@mean(raw)"), family("gb^2"), family("vg"), family("rand")
        (('ig@mean(raw)', 'SG-SQ'), ('gb', 'SQ'), None, None)
    """
    if estimator in BASELINES:
        return None
    try:
        name = split_name(estimator)
    except ValueError:
        return None
    found = [label for label, kind in FAMILIES.items() if kind == (name.ensemble, name.squared)]
    return (str(replace(name, ensemble=None, squared=False)), found[0]) if found else None


def methods(panel: Panel) -> dict[str, dict[str, str]]:
    """Method → family → estimator, of the methods that a panel has in two families or more, in the order of the study."""
    found: dict[str, dict[str, str]] = {}
    for estimator in panel.estimators:
        if (one := family(estimator)) is not None:
            found.setdefault(one[0], {})[one[1]] = estimator
    return {method: members for method, members in found.items() if len(members) > 1}
