"""Quadrature on [0, 1] for integrated gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Rule = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def _left(n: int) -> Rule:
    return np.arange(n) / n, np.full(n, 1 / n)


def _right(n: int) -> Rule:
    return np.arange(1, n + 1) / n, np.full(n, 1 / n)


def _middle(n: int) -> Rule:
    return (np.arange(n) + 0.5) / n, np.full(n, 1 / n)


def _trapezoid(n: int) -> Rule:
    weights = np.full(n, 1 / (n - 1))
    weights[[0, -1]] /= 2
    return np.linspace(0, 1, n), weights


def _gauss_legendre(n: int) -> Rule:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2


METHODS: dict[str, Callable[[int], Rule]] = {
    "left": _left,
    "right": _right,
    "middle": _middle,
    "trapezoid": _trapezoid,
    "gausslegendre": _gauss_legendre,
}


def quadrature(method: str, steps: int) -> Rule:
    """Nodes and weights `[steps]`; the weights of every method sum to one.

    captum's `riemann_trapezoid` weights sum to (steps - 1) / steps instead, so its maps are smaller by that factor.

    Example:
        >>> nodes, weights = quadrature("trapezoid", 3)
        >>> nodes.tolist(), weights.tolist()
        ([0.0, 0.5, 1.0], [0.25, 0.5, 0.25])
    """
    return METHODS[method](steps)
