"""Pixel flipping (Wang and Wang): what it rewards, what it is blind to, and what random masks inside a reference do."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast.validate.check import Outcome, check, exactly, show

Floats = npt.NDArray[np.float64]
_PERMUTATIONS = np.array(list(itertools.permutations(range(7))))


def kernel_order(a: Floats) -> npt.NDArray[np.int64]:
    """Features of each row `[N, F]` in the order in which the kernels remove them."""
    features = a.shape[-1]
    # Halfway to the next count: floor(t * F) is then the count that is meant, whatever the rounding of t.
    drops = (*((k + 0.5) / features for k in range(1, features)), 1.0)
    return np.argsort(rf.rank_codes(a, drops, ndim=1), axis=-1, kind="stable")


def deletion_area(contributions: Floats, order: npt.NDArray[np.int64]) -> Floats:
    """Mean score of a linear model over all numbers of removed features, none and all included."""
    left = contributions.sum(-1, keepdims=True) - np.take_along_axis(contributions, order, -1).cumsum(-1)
    return np.asarray((contributions.sum(-1) + left.sum(-1)) / (contributions.shape[-1] + 1), np.float64)


@check(
    "deletion-optimum",
    claim="for a linear model and zero fill, w * x has the smallest deletion area of all 5,040 orders, 50 random cases",
    source="004, 6.2.2",
    paper="optimal",
)
def optimum() -> Outcome:
    """The order is that of rank_codes."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(50):
        c = rng.standard_normal(7) * rng.standard_normal(7)
        ours = float(deletion_area(c[None], kernel_order(c[None]))[0])
        best = float(deletion_area(np.broadcast_to(c, _PERMUTATIONS.shape), _PERMUTATIONS).min())
        worst = max(worst, abs(ours - best))
    return exactly({"largest distance from the minimum": round(worst, 12)}, {"largest distance from the minimum": 0})


@check(
    "indicator",
    claim="accuracy as indicator prefers the less important pixel: x = (1, 1), W = [[2, √6, √5], [1, 0, 0]]",
    source="004, 6.2.1",
    paper="removing the pixel of attribution 2 keeps the class, of 1 changes it",
)
def indicator() -> Outcome:
    """The example, and how often it happens in random linear problems of ten classes."""
    weights = np.array([[2, 6**0.5, 5**0.5], [1, 0, 0]])
    kept = {}
    for name, a in (("by w * x", weights[:, 0]), ("the other", -weights[:, 0])):
        removed = rf.removal_mask(a[None].astype(np.float64), 0.5, ndim=1)[0]
        kept[f"class kept, {name}"] = float((np.where(removed, 0, 1) @ weights).argmax() == 0)
    rng = np.random.default_rng(1)
    problems, slower, margin_slower = 200, 0, 0
    for _ in range(problems):
        w, x = rng.standard_normal((7, 10)), rng.random(7)
        scores = x @ w
        target, runner_up = np.argsort(-scores)[:2]
        needed = [
            int(_until_changed(w, x, int(target), kernel_order(a[None])[0]))
            for a in (w[:, target] * x, (w[:, target] - w[:, runner_up]) * x)
        ]
        best = int(_until_changed(w, x, int(target), _PERMUTATIONS).min())
        slower += needed[0] > best
        margin_slower += needed[1] > best
    values = {**kept, "not the fastest, by w * x": slower / problems, "by the margin": margin_slower / problems}
    good = kept == {"class kept, by w * x": 1.0, "class kept, the other": 0.0} and slower > margin_slower > 0
    return Outcome(show(values), "holds" if good else "fails", values)


def _until_changed(w: Floats, x: Floats, target: int, orders: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many features must go until another class wins, for orders `[..., F]`; one more than there are if never."""
    left = x @ w - np.cumsum((x[:, None] * w)[orders], -2)
    changed = np.concatenate([left.argmax(-1) != target, np.ones((*orders.shape[:-1], 1), bool)], -1)
    return np.asarray(changed.argmax(-1) + 1)


@check(
    "goals",
    claim="sensitivity is not contribution: ranked by w, flipping is slower than by w * x, unless x is constant",
    source="004, 6.2.2",
)
def goals() -> Outcome:
    """Areas over 2,000 random linear models."""
    rng = np.random.default_rng(2)
    w, x = rng.standard_normal((2000, 20)), rng.random((2000, 20))
    c = w * x
    by_w, by_c = deletion_area(c, kernel_order(w)), deletion_area(c, kernel_order(c))
    same = w * 0.5
    equal = np.abs(deletion_area(same, kernel_order(w)) - deletion_area(same, kernel_order(same))).max()
    values = {
        "share slower": float((by_w > by_c + 1e-12).mean()),
        "share faster": float((by_w < by_c - 1e-12).mean()),
        "mean difference": float((by_w - by_c).mean()),
        "difference for constant x": float(equal),
    }
    good = values["share faster"] == 0 and values["share slower"] > 0.9 and values["difference for constant x"] == 0
    return Outcome(show(values), "holds" if good else "fails", values)


@check(
    "reference-dice",
    claim="n pixels drawn from a reference of N: E[Dice] = n / N, Var = (1 - n/N)² / (N - 1)",
    source="004, Proposition 1 (F)",
    paper="n / N, called an expected distance",
)
def dice() -> Outcome:
    """All 220 subsets for (9, 12); 20,000 masks of the kernels for (50, 200)."""
    top = set(range(9))
    exact = np.array([len(top & set(s)) / 9 for s in itertools.combinations(range(12), 9)])
    maps = np.where(np.arange(400) < 200, rf.pixel_random((20_000, 1, 400), seed=3)[:, 0], -1.0)
    drawn = rf.removal_mask(maps, 50 / 400, ndim=1)[:, :50].sum(1) / 50
    error = ((1 - 0.25) ** 2 / 199 / len(drawn)) ** 0.5
    values = {
        "(9, 12) mean": float(exact.mean()),
        "variance": float(exact.var()),
        "(50, 200) mean": float(drawn.mean()),
        "standard errors off": abs(float(drawn.mean()) - 0.25) / error,
        "variance ratio": float(drawn.var()) / ((1 - 0.25) ** 2 / 199),
    }
    exact_good = abs(values["(9, 12) mean"] - 0.75) < 1e-12 and abs(values["variance"] - 0.0625 / 11) < 1e-12
    good = exact_good and values["standard errors off"] < 3 and abs(values["variance ratio"] - 1) < 0.05
    return Outcome(show(values), "holds" if good else "fails", values)


@check(
    "pgd-formula",
    claim="the printed formula takes the gradient at x, not at x^t: 30 steps of 0.03 within 0.3 are one step of 0.3·sign",
    source="004, B.1",
    paper="a projected gradient descent",
)
def pgd() -> Outcome:
    """A two-layer ReLU net, its gradient by hand."""
    rng = np.random.default_rng(4)
    w1, w2 = rng.standard_normal((16, 8)), rng.standard_normal((8, 3))
    x = rng.standard_normal((200, 16))
    y = rng.integers(0, 3, 200)

    def loss_gradient(x: Floats) -> tuple[Floats, Floats]:
        hidden = x @ w1
        logits = np.maximum(hidden, 0) @ w2
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        back = p - np.eye(3)[y]
        return -np.log(p[np.arange(len(y)), y]), ((back @ w2.T) * (hidden > 0)) @ w1.T

    ends = {}
    for name in ("literal", "descent"):
        at = x.copy()
        for _ in range(30):
            at = np.clip(at - 0.03 * np.sign(loss_gradient(x if name == "literal" else at)[1]), x - 0.3, x + 0.3)
        ends[name] = at
    one_step = x - 0.3 * np.sign(loss_gradient(x)[1])
    values = {
        "literal - one step": round(float(np.abs(ends["literal"] - one_step).max()), 12),
        "loss, literal": float(loss_gradient(ends["literal"])[0].mean()),
        "loss, at x^t": float(loss_gradient(ends["descent"])[0].mean()),
    }
    good = values["literal - one step"] == 0 and values["loss, at x^t"] < values["loss, literal"]
    return Outcome(show(values), "differs" if good else "fails", values)
