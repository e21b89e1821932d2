"""Per-sample information bottleneck attribution, IBA (Schulz et al., 2020): how many bits each place must let through.

Noise is mixed into the features R of a layer, Z = λR + (1 - λ)ε with ε ~ N(μ, σ²) of the features, and λ is optimised
for each image: little information, but the class must still be found. The map is the information in bits.

Mean and spread are those of each channel over the batch and all places (the paper: of each neuron over a data set).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from roarfast.explain.layers import find_layer
from roarfast.explain.record import Estimator

STEPS, COPIES, LEARNING_RATE, START = 10, 10, 1.0, 5.0  # the paper's


def bottleneck(model: nn.Module, x: Tensor, target: Tensor, *, layer: str | None = None, beta: float = 10.0) -> Tensor:
    """Maps `[B, 1, h, w]` of bits that pass the bottleneck at a layer.

    Args:
        model: Returns logits.
        x: Images `[B, C, H, W]`.
        target: Classes `[B]`.
        layer: Name of a module that returns `[B, K, h, w]`; None: the layer of Grad-CAM.
        beta: Price of information, per mean nat of the layer, as in the paper.
    """
    if not beta > 0:
        raise ValueError(f"beta must be > 0, got {beta}")
    _, module = find_layer(model, layer, x[:1].clone())
    kept: list[Tensor] = []
    handle = module.register_forward_hook(lambda module, inputs, output: kept.append(output.detach().clone()))
    try:
        with torch.no_grad():
            model(x)
    finally:
        handle.remove()
    features = kept[-1]
    mean = features.mean((0, 2, 3), keepdim=True)
    spread = features.std((0, 2, 3), keepdim=True, correction=0).clamp_min(1e-2)  # of dead channels too
    standard = (features - mean) / spread
    alpha = torch.full_like(features, START).requires_grad_()
    optimizer = torch.optim.Adam([alpha], lr=LEARNING_RATE)
    noise = torch.empty_like(features)

    def inject(module: nn.Module, inputs: object, output: Tensor) -> Tensor:
        gate = torch.sigmoid(alpha)
        return mean + spread * (gate * standard + (1 - gate) * noise)

    handle = module.register_forward_hook(inject)
    try:
        with torch.enable_grad():
            for _ in range(STEPS):
                optimizer.zero_grad()
                for _ in range(COPIES):
                    noise.normal_()
                    wrong = F.cross_entropy(model(x), target, reduction="sum") / COPIES
                    wrong.backward()
                # Each image pays for its own bits, so the images of a batch do not disturb each other.
                nats = information(torch.sigmoid(alpha), standard) * math.log(2)
                price = beta * nats.mean((1, 2, 3)).sum()
                price.backward()
                optimizer.step()
    finally:
        handle.remove()
    with torch.no_grad():
        return information(torch.sigmoid(alpha), standard).sum(1, keepdim=True)


def information(gate: Tensor, standard: Tensor) -> Tensor:
    """Bits of N(λr, (1 - λ)²) against N(0, 1), element by element: what a feature r tells through a gate λ.

    Example:
        >>> information(torch.tensor(0.0), torch.tensor(3.0)).item()
        0.0
    """
    variance = ((1 - gate) ** 2).clamp_min(1e-12)
    return 0.5 * ((gate * standard) ** 2 + variance - variance.log() - 1) / math.log(2)


ESTIMATORS = (
    Estimator(
        "iba",
        "information bottleneck",
        function=bottleneck,
        arguments={"layer": "gc_layer"},
        options=("gc_layer",),
        one_channel=True,
        random=True,
    ),
)
