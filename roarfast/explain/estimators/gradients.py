"""Gradients at the input: plain, times input, integrated along a path, and guided."""

from __future__ import annotations

from torch import Tensor

from roarfast.explain.options import Options
from roarfast.explain.record import Estimator, Gradients


def gradient(x: Tensor, gradients: Gradients, options: Options) -> Tensor:
    """The gradient of the target logit (Simonyan et al., 2014)."""
    return gradients.have("input")


def gradient_times_input(x: Tensor, gradients: Gradients, options: Options) -> Tensor:
    """Gradient times input (Shrikumar et al., 2016)."""
    return gradients.have("input") * x


def integrated_gradients(x: Tensor, gradients: Gradients, options: Options) -> Tensor:
    """Integrated gradients (Sundararajan et al., 2017): their mean along a path, times the way."""
    return (x - gradients.have("start")).mul_(gradients.have("input"))


ESTIMATORS = (
    Estimator("grad", "gradient", of_pass=gradient),
    Estimator("gi", "gradient times input", of_pass=gradient_times_input),
    Estimator(
        "ig",
        "integrated gradients",
        of_pass=integrated_gradients,
        path=True,
        options=("ig_steps", "ig_method", "ig_baseline", "abs_before_average"),
    ),
    Estimator("gb", "guided backpropagation", of_pass=gradient, guided=True),
)
