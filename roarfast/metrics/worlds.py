"""Worlds with a known answer: data and models in which accuracy after removal has a closed form.

They need no training and no images, and tell a right score from a wrong one: `roarfast validate` measures in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import nn

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class GaussianVotes:
    """Two classes, y = ±1 with equal odds; feature i is y·strength_i + N(0, 1).

    The model is the Bayes-optimal f(x) = sum strength_i x_i; class 1 is y = +1. A removed feature becomes 0, which
    marginalises it out exactly, so the accuracy with the features S left is Φ(√φ(S)), φ(S) = Σ_S strength². Accuracy is
    thus a strictly rising function of φ(S): the assumption 4.10 of Li et al. holds both ways.

    Attributes:
        strength: float64 `[F]`; features of strength 0 say nothing.

    Example:
        >>> world = GaussianVotes.uniform(features=200, predictive=100, strength=0.2)
        >>> round(float(world.accuracy(np.ones(200, bool))), 4)
        0.9772
    """

    strength: Floats

    @classmethod
    def uniform(cls, features: int = 200, predictive: int = 100, strength: float = 0.2) -> GaussianVotes:
        """The first `predictive` of the features have the same strength, the others none."""
        return cls(np.where(np.arange(features) < predictive, float(strength), 0.0))

    @property
    def predictive(self) -> Bools:
        """Which features say something of the class: I of the paper."""
        return np.asarray(self.strength != 0)

    def information(self, left: npt.ArrayLike) -> Floats:
        """φ of what is left: bool `[..., F]` to float64 `[...]`."""
        return np.asarray(np.asarray(left, bool) @ self.strength**2, np.float64)

    def accuracy(self, left: npt.ArrayLike) -> Floats:
        """Exact accuracy of the model on the features that are left, bool `[..., F]`, the others 0."""
        from scipy.special import ndtr

        return np.asarray(ndtr(np.sqrt(self.information(left))), np.float64)

    def draw(self, count: int, seed: int = 0) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Samples: features float32 `[count, F]` and classes 0 or 1 `[count]`."""
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, count)
        x = (2 * labels - 1)[:, None] * self.strength + rng.standard_normal((count, self.strength.size))
        return x.astype(np.float32), labels

    def model(self) -> nn.Linear:
        """The optimal model as an `nn.Linear` with two logits."""
        import torch

        layer = torch.nn.Linear(self.strength.size, 2, bias=False)
        weight = torch.from_numpy(self.strength.astype(np.float32))
        with torch.no_grad():
            layer.weight.copy_(torch.stack([-weight, weight]))
        return layer

    def soundness(self, attribution: npt.ArrayLike, level: float, step: int = 2) -> float:
        """Definition 4.8 where the accuracy first reaches `level`: the share of the included attribution that is true.

        Args:
            attribution: float64 `[F]`, or `[N, F]`, one per sample; the accuracy is then the mean over the samples.
            level: An accuracy.
            step: Features included at a time, the most important first.

        Returns:
            The mean share; NaN if the accuracy never gets there.
        """
        a = np.atleast_2d(np.asarray(attribution, np.float64))
        order = np.argsort(-a, 1, kind="stable")
        stops = np.arange(step, a.shape[1] + 1, step) - 1
        truth = np.take_along_axis(np.broadcast_to(self.strength**2, a.shape), order, 1)
        mass = np.take_along_axis(a, order, 1)
        from scipy.special import ndtr

        reached = np.flatnonzero(ndtr(np.sqrt(truth.cumsum(1)))[:, stops].mean(0) >= level)
        if reached.size == 0:
            return float("nan")
        stop = stops[reached[0]]
        return float(((mass * (truth > 0)).cumsum(1)[:, stop] / mass.cumsum(1)[:, stop]).mean())


def voting_maps(world: GaussianVotes, kind: str, samples: int = 400, seed: int = 0) -> Floats:
    """Maps of known quality for `GaussianVotes.uniform(200, 100)`.

    Args:
        world: With 200 features, the first 100 predictive.
        kind: `"truth"`; `"removed"`: 40 of the predictive features lose their attribution; `"first"`: 30 false features
            above all; `"middle"`: 30 false ones in a block between the true; `"mixed"`: 50 false ones at random ranks,
            others in each sample.
        samples: How many maps, for `"mixed"`.
        seed: Of `"removed"` and `"mixed"`.

    Returns:
        float64 `[200]`, or `[samples, 200]` for `"mixed"`.
    """
    if world.strength.size != 200 or not np.array_equal(world.predictive, np.arange(200) < 100):
        raise ValueError("world must be GaussianVotes.uniform(features=200, predictive=100)")
    rng = np.random.default_rng(seed)
    a = np.where(world.predictive, np.linspace(1, 0.5, 200), 0.0)
    if kind == "removed":
        a[rng.choice(100, 40, replace=False)] = 0
    elif kind == "first":
        a[100:130] = np.linspace(2, 1.5, 30)
    elif kind == "middle":
        a[100:130] = np.linspace(0.93, 0.92, 30)
    elif kind == "mixed":
        a = np.repeat(a[None], samples, 0)
        for row in a:
            row[100 + rng.choice(100, 50, replace=False)] = rng.uniform(0.5, 1, 50)
    elif kind != "truth":
        raise ValueError(f"kind must be 'truth', 'removed', 'first', 'middle' or 'mixed', got {kind!r}")
    return a


def sum_of_gaussians(
    count: int = 1000, features: int = 200, seed: int = 0
) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """The synthetic world of Li et al. (5.1, G.1): x from N(0, I), class = sign of the sum, attribution = contributions to it.

    Kept because papers cite it; it does not validate soundness. By area, with removed features at 0, the first 2 % of
    the features already decide every sample: nothing that is added later can be told from noise.

    Returns:
        Samples `[count, features]`, classes 0 or 1 `[count]`, maps `[count, features]` >= 0.

    Example:
        >>> x, y, a = sum_of_gaussians(10)
        >>> bool((a >= 0).all()), bool(((x.sum(1) > 0) == y).all())
        (True, True)
    """
    x = np.random.default_rng(seed).standard_normal((count, features))
    labels = (x.sum(1) > 0).astype(np.int64)
    return x, labels, np.maximum(x * (2 * labels - 1)[:, None], 0)


@dataclass(frozen=True)
class LinearModels:
    """Linear models that agree in part: where shape, image and model parts of a removal score are known.

    y = ±1 with equal odds, x = y·signal + N(0, 1); model z answers class 1 if weights_z · x > 0. Its map is the
    contribution of each feature to its answer, ±weights_z ⊙ x.

    Attributes:
        signal: float64 `[F]`.
        weights: float64 `[Z, F]`, one row per model.

    Example:
        >>> world = LinearModels.sharing(0.5)
        >>> world.weights.shape
        (2, 24)
    """

    signal: Floats
    weights: Floats

    @classmethod
    def sharing(cls, shared: float, features: int = 24, models: int = 2, seed: int = 0) -> LinearModels:
        """Models whose weights are the optimal ones times exp(√(1 - shared)·N(0, 1)): equal for shared = 1."""
        if not 0 <= shared <= 1:
            raise ValueError(f"shared must be in [0, 1], got {shared}")
        rng = np.random.default_rng(seed)
        signal = 0.15 + 0.5 * rng.random(features)
        return cls(signal, signal * np.exp(np.sqrt(1 - shared) * rng.standard_normal((models, features))))

    def draw(self, count: int, seed: int = 0) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Samples float32 `[count, F]` and classes 0 or 1 `[count]`."""
        return GaussianVotes(self.signal).draw(count, seed)

    def maps(self, x: npt.NDArray[np.float32], z: int, noise: float = 0.0, seed: int = 0) -> npt.NDArray[np.float32]:
        """Contributions `[N, F]` to the answer of model z, plus noise in units of their standard deviation."""
        a = x * self.weights[z]
        a *= np.where(a.sum(1, keepdims=True) > 0, 1, -1)
        if noise:
            a = a + noise * a.std() * np.random.default_rng(seed).standard_normal(a.shape)
        return a.astype(np.float32)

    def correct(
        self, x: npt.NDArray[np.float32], y: npt.NDArray[np.int64], z: int, codes: npt.NDArray[np.uint8], rates: int
    ) -> Bools:
        """Whether model z is right with the features of rank codes `[N, F]` at 0, at each rate: bool `[rates, N]`."""
        answers = [(np.where(codes <= j, 0, x) @ self.weights[z] > 0) == (y == 1) for j in range(rates)]
        return np.stack(answers)

    def model(self, z: int) -> nn.Linear:
        """Model z as an `nn.Linear` with two logits."""
        return GaussianVotes(self.weights[z]).model()
