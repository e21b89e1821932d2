"""Grad-CAM (Selvaraju et al., 2017): the channels of a layer, weighted by their mean gradients."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from roarfast.explain.layers import token_grid
from roarfast.explain.options import Options
from roarfast.explain.record import Estimator, Gradients


def cam(activation: Tensor, gradient: Tensor, size: tuple[int, int], relu: bool, combine: str) -> Tensor:
    """Grad-CAM maps `[N, 1, H, W]` from a layer's activations and their gradients, `[N, K, h, w]` or tokens `[N, T, K]`."""
    if activation.ndim == 3:
        extra, h, w = token_grid(int(activation.shape[1]), *size)
        activation, gradient = (t[:, extra:].mT.unflatten(2, (h, w)) for t in (activation, gradient))
    weighted = activation * gradient.mean((2, 3), keepdim=True)
    weighted = weighted.sum(1, keepdim=True) if combine == "sum" else weighted.abs().mean(1, keepdim=True)
    if relu:
        weighted = weighted.relu()
    return F.interpolate(weighted, size, mode="bilinear", align_corners=False)


def gradcam(x: Tensor, gradients: Gradients, options: Options) -> Tensor:
    """`cam` with the conventions of the options."""
    size = (int(x.shape[-2]), int(x.shape[-1]))
    activation, gradient = gradients.have("activation"), gradients.have("layer")
    return cam(activation, gradient, size, options.gc_relu, options.gc_combine).to(x.dtype)


ESTIMATORS = (
    Estimator(
        "gc",
        "Grad-CAM",
        of_pass=gradcam,
        at_layer=True,
        one_channel=True,
        options=("gc_layer", "gc_relu", "gc_combine"),
    ),
)
