"""A sparse linear model that is right, and whose explanation can be pointed anywhere (Wang and Wang, 6.1).

Pixels are shifted and scaled, x = (pixel - mean) / std, so that the background is not 0. Then a weight on a corner that
is background in every image adds the same number to every logit: no answer changes, and the corner gets the largest
attribution of all. On raw pixels, where the background is 0, no weight can do that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MNIST_MEAN, MNIST_STD = 0.1307, 0.3081


@dataclass(frozen=True)
class SparseLinear:
    """Multinomial logistic regression with few weights.

    Attributes:
        weights: float64 `[classes, H, W]`.
        bias: float64 `[classes]`.
        mean: Of the shift, in units of 0..1.
        std: Of the scaling.
    """

    weights: Floats
    bias: Floats
    mean: float = MNIST_MEAN
    std: float = MNIST_STD

    def inputs(self, images: npt.ArrayLike) -> Floats:
        """uint8 images `[N, H, W]` (or `[N, H, W, 1]`) as the model sees them."""
        x = np.asarray(images)
        x = x[..., 0] if x.ndim == 4 else x
        return np.asarray((x / 255.0 - self.mean) / self.std, np.float64)

    def logits(self, images: npt.ArrayLike) -> Floats:
        """float64 `[N, classes]`."""
        x = self.inputs(images)
        return np.asarray(x.reshape(len(x), -1) @ self.weights.reshape(len(self.bias), -1).T + self.bias)

    def maps(self, images: npt.ArrayLike, target: npt.ArrayLike) -> Floats:
        """The contribution w_t * x of each pixel to the logit of class t, `[N, H, W]`."""
        return np.asarray(self.weights[np.asarray(target)] * self.inputs(images))


def fit(
    images: npt.ArrayLike,
    labels: npt.ArrayLike,
    classes: int,
    *,
    penalty: float = 0.01,
    steps: int = 300,
    mean: float = MNIST_MEAN,
    std: float = MNIST_STD,
) -> SparseLinear:
    """Fits by FISTA: cross entropy plus `penalty` times the sum of absolute weights; the bias is free.

    Args:
        images: uint8 `[N, H, W]` or `[N, H, W, 1]`.
        labels: `[N]`.
        classes: How many.
        penalty: Larger is sparser.
        steps: Of the iteration.
        mean: Of the shift.
        std: Of the scaling.
    """
    if not penalty >= 0:
        raise ValueError(f"penalty must be >= 0, got {penalty}")
    empty = SparseLinear(np.zeros((classes, *np.shape(images)[1:3])), np.zeros(classes), mean, std)
    shaped = empty.inputs(images)
    x = np.concatenate([shaped.reshape(len(shaped), -1), np.ones((len(shaped), 1))], 1)
    wanted = np.eye(classes)[np.asarray(labels)]
    # The softmax's curvature is at most 1/2, so this step never overshoots.
    step = 2 / np.linalg.eigvalsh(x.T @ x / len(x))[-1]
    w = y = np.zeros((classes, x.shape[1]))
    momentum = 1.0
    for _ in range(steps):
        logits = x @ y.T
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        moved = y - step * ((p - wanted).T @ x) / len(x)
        shrunk = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0)
        shrunk[:, -1] = moved[:, -1]
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        y = shrunk + (momentum - 1) / following * (shrunk - w)
        w, momentum = shrunk, following
    return replace(empty, weights=w[:, :-1].reshape(empty.weights.shape).copy(), bias=w[:, -1].copy())


def point_at(model: SparseLinear, images: npt.ArrayLike, row: int = 0, column: int = 0) -> SparseLinear:
    """The same classifier with an explanation that points at one pixel.

    Args:
        model: Stays as it is.
        images: The images it is used on: the pixel must have the same value in all of them.
        row: Of the pixel.
        column: Of the pixel.

    Raises:
        ValueError: The pixel varies, or the model sees it as 0: then no weight can move its attribution.
    """
    x = model.inputs(images)
    values = np.unique(x[:, row, column])
    if values.size != 1:
        raise ValueError(f"pixel ({row}, {column}) must be the same in all images, got {values.size} values")
    background = float(values[0])
    if background == 0:
        raise ValueError(
            f"the model sees pixel ({row}, {column}) as 0, so its attribution is 0 for any weight: shift the input first"
        )
    weights, bias = model.weights.copy(), model.bias + model.weights[:, row, column] * background
    weights[:, row, column] = 0
    largest = max(float((w * x).max()) for w in weights)
    weights[:, row, column] = 1.01 * largest / background
    return replace(model, weights=weights, bias=bias)
