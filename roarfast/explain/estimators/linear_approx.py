"""Linear approximation at a layer (TorchRay): activation times gradient, summed over channels; signed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from roarfast.explain.layers import captured, find_layer
from roarfast.explain.record import Estimator


def linear_approx(model: nn.Module, x: Tensor, target: Tensor, *, layer: str | None = None) -> Tensor:
    """Maps `[B, 1, h, w]` at a layer: how much the target logit would change, to first order, if its activation went.

    Args:
        model: Returns logits.
        x: Images `[B, C, H, W]`.
        target: Classes `[B]`.
        layer: Name of a module that returns `[B, K, h, w]`; None: the layer of Grad-CAM.
    """
    name, module = find_layer(model, layer, x[:1].clone())
    with torch.enable_grad(), captured(module) as capture:
        score = model(x.detach().requires_grad_()).gather(1, target[:, None]).sum()
        assert capture is not None
        activation = capture.take(name)
        gradient = torch.autograd.grad(score, activation)[0]
    return (activation.detach() * gradient).sum(1, keepdim=True)


ESTIMATORS = (
    Estimator(
        "linear-approx",
        "activation times gradient at a layer",
        function=linear_approx,
        arguments={"layer": "gc_layer"},
        options=("gc_layer",),
        one_channel=True,
    ),
)
