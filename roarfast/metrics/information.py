"""Exact information of finite models, in bits: what the theorems about removal scores speak of.

A joint distribution is an array of probabilities, one axis per variable; axes in front of those named are a batch of
models. Everything is float64 and exact up to rounding: no estimation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SUM_TOLERANCE = 1e-9


def entropy(p: npt.ArrayLike, axes: int = 1) -> Floats:
    """Entropy in bits over the last `axes` axes.

    Args:
        p: Probabilities `[..., A]` (or more axes), which sum to 1 over the last `axes`.
        axes: How many trailing axes make up the distribution.

    Returns:
        float64 `[...]`.

    Example:
        >>> float(entropy([0.5, 0.25, 0.25]))
        1.5
    """
    p = _distribution("p", p, axes)
    return _entropy(p, tuple(range(p.ndim - axes, p.ndim)))


def mutual_information(joint: npt.ArrayLike) -> Floats:
    """I(A; B) in bits of joints `[..., A, B]`; float64 `[...]`.

    Example:
        >>> float(mutual_information([[0.5, 0.0], [0.0, 0.5]]))
        1.0
    """
    p = _distribution("joint", joint, 2)
    return _entropy(p.sum(-1), (-1,)) + _entropy(p.sum(-2), (-1,)) - _entropy(p, (-2, -1))


def conditional_mutual_information(joint: npt.ArrayLike) -> Floats:
    """I(Z; A | X) in bits of joints `[..., X, Z, A]`; float64 `[...]`.

    Example:
        >>> p = np.zeros((2, 2, 2))
        >>> for x in range(2):
        ...     for z in range(2):
        ...         p[x, z, x ^ z] = 0.25  # A = X xor Z says nothing of Z, unless X is known
        >>> float(mutual_information(p.sum(0))), float(conditional_mutual_information(p))
        (0.0, 1.0)
    """
    p = _distribution("joint", joint, 3)
    return (
        _entropy(p.sum(-1), (-2, -1))
        + _entropy(p.sum(-2), (-2, -1))
        - _entropy(p.sum((-2, -1)), (-1,))
        - _entropy(p, (-3, -2, -1))
    )


def through(joint: npt.ArrayLike, channel: npt.ArrayLike) -> Floats:
    """The last variable of a joint sent through a channel: a post-processing k(A, U), random or not.

    Args:
        joint: `[..., A]`.
        channel: `[A, B]`, each row the distribution of the result for one a; or `[..., A, B]`, whose leading axes are
            matched with those of the joint but its second last: a mapping of (x, a) for joints `[X, Z, A]` is `[X, A, B]`.

    Returns:
        float64 `[..., B]`.

    Example:
        >>> through([[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.0], [1.0, 0.0]]).tolist()  # a constant k forgets everything
        [[0.5, 0.0], [0.5, 0.0]]
    """
    p, k = np.asarray(joint, np.float64), _distribution("channel", channel, 1)
    if k.ndim < 2 or p.ndim < 1 or k.shape[-2] != p.shape[-1]:
        raise ValueError(f"channel must be [..., {p.shape[-1] if p.ndim else 'A'}, B], got shape {k.shape}")
    return np.asarray(p @ k, np.float64)


def function_channel(values: npt.ArrayLike, size: int | None = None) -> Floats:
    """The channel of a function: value numbers `[..., A]` to 0/1 `[..., A, B]`.

    Args:
        values: The number of each result, integers >= 0.
        size: B; by default the largest number plus 1.

    Example:
        >>> function_channel([0, 1, 0]).tolist()
        [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    v = np.asarray(values)
    if v.dtype.kind not in "iu" or (v.size and v.min() < 0):
        raise ValueError("values must be integers >= 0, the number of each result")
    count = int(v.max(initial=-1)) + 1 if size is None else size
    if v.max(initial=-1) >= count:
        raise ValueError(f"size must be larger than every value, got {size} for {int(v.max())}")
    return (v[..., None] == np.arange(count)).astype(np.float64)


def bayes_accuracy(joint: npt.ArrayLike) -> Floats:
    """Accuracy of the best classifier that sees X', from joints `[..., X', Y]`; float64 `[...]`.

    Example:
        >>> float(bayes_accuracy([[0.5, 0.25], [0.0, 0.25]]))
        0.75
    """
    return np.asarray(_distribution("joint", joint, 2).max(-1).sum(-1), np.float64)


def error_bounds(information: float, entropy_bits: float, classes: int) -> tuple[float, float]:
    """Between which errors the best classifier lies when its input carries so many bits of the label.

    Args:
        information: I(X'; Y) in bits.
        entropy_bits: H(Y) in bits.
        classes: Number of classes, at least 2.

    Returns:
        Fano's lower bound: the smallest error e with h(e) + e log2(classes - 1) >= H(Y | X'); and the upper bound of
        Hellman and Raviv, H(Y | X') / 2.

    Example:
        >>> [round(e, 4) for e in error_bounds(0.0, 1.0, 2)]
        [0.5, 0.5]
    """
    if classes < 2:
        raise ValueError(f"classes must be at least 2, got {classes}")
    left = entropy_bits - information
    if not -1e-9 <= left <= entropy_bits + 1e-9 or entropy_bits > np.log2(classes) + 1e-9:
        raise ValueError(
            f"information must be in [0, {entropy_bits}] and entropy_bits in [0, log2({classes})], got {information} and {entropy_bits}"
        )
    left = max(left, 0.0)
    low, high = 0.0, 1 - 1 / classes  # h(e) + e log2(classes - 1) rises from 0 to log2(classes) between them
    for _ in range(60):
        e = (low + high) / 2
        reached = -e * np.log2(e) - (1 - e) * np.log2(1 - e) + e * np.log2(classes - 1)
        low, high = (low, e) if reached >= left else (e, high)
    return high if left > 0 else 0.0, left / 2


def _entropy(p: Floats, axis: tuple[int, ...]) -> Floats:
    logarithm = np.log2(p, where=p > 0, out=np.zeros_like(p))
    return np.asarray(-(p * logarithm).sum(axis), np.float64)


def _distribution(name: str, values: npt.ArrayLike, axes: int) -> Floats:
    p = np.asarray(values, np.float64)
    if p.ndim < axes:
        raise ValueError(f"{name} must have at least {axes} axes, got shape {p.shape}")
    if p.size == 0:
        return p
    if not p.min() >= 0:  # also for NaN
        raise ValueError(f"{name} must hold probabilities >= 0, got {p.min()}")
    sums = p.sum(tuple(range(p.ndim - axes, p.ndim)))
    if np.abs(sums - 1).max() > _SUM_TOLERANCE:
        worst = sums.flat[int(np.abs(sums - 1).argmax())]
        raise ValueError(f"{name} must sum to 1 over its last {axes} axes, got {worst}")
    return p
