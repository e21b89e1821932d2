"""Extremal perturbation (Fong, Patrick and Vedaldi, 2019): the smooth mask of a given area that keeps the class best.

The mask shows the image inside and a blurred image outside. It is the maximum of bumps with free heights on a coarse grid, so it is
smooth and still reaches 1; its area is held by comparing its sorted values with those of a mask of that area. The published
code steps through eight blurs where the mask is between 0 and 1; here values are mixed linearly.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import roarfast as rf
from roarfast.explain.record import Estimator

STEPS, RATE = 200, 0.05  # of Adam
# The price of a wrong area rises to the paper's: from the start it would settle the area before the class has a say in where.
FIRST_PRICE, LAST_PRICE = 1.0, 300.0
SMOOTHNESS, BLUR, CELL = 21 / 224, 20 / 224, 7 / 224  # of the shorter side, as published for 224 pixels
TEMPERATURE = 20.0


def extremal(model: nn.Module, x: Tensor, target: Tensor, *, area: float = 0.1, steps: int = STEPS) -> Tensor:
    """Masks `[B, 1, H, W]` in [0, 1].

    Args:
        model: Returns logits.
        x: Images `[B, C, H, W]`.
        target: Classes `[B]`.
        area: Share of the image that is shown, in (0, 1).
        steps: Of the optimiser.
    """
    if not 0 < area < 1:
        raise ValueError(f"area must be in (0, 1), got {area}")
    if steps < 1:
        raise ValueError(f"steps must be >= 1, got {steps}")
    batch, (height, width) = x.shape[0], x.shape[-2:]
    side = min(height, width)
    cell = max(1, round(CELL * side))
    blurred = rf.gaussian_filter(x.detach().contiguous(), BLUR * side)
    rows, columns = math.ceil(height / cell), math.ceil(width / cell)
    bump = _bumps(rows, columns, cell / (SMOOTHNESS * side)).to(x)
    heights = torch.full((batch, rows * columns), 0.5, dtype=x.dtype, device=x.device, requires_grad=True)
    wanted = (torch.arange(height * width, device=x.device) >= round((1 - area) * height * width)).to(x.dtype)
    optimizer = torch.optim.Adam([heights], lr=RATE)
    with torch.enable_grad():
        for step in range(steps):
            price = FIRST_PRICE * (LAST_PRICE / FIRST_PRICE) ** (step / max(steps - 1, 1))
            mask = _mask(heights, bump, rows, columns, (height, width))
            score = model(mask * x + (1 - mask) * blurred).gather(1, target[:, None]).sum()
            wrong = (mask.flatten(1).sort(1).values - wanted).square().mean(1).sum()
            optimizer.zero_grad()
            (price * wrong - score).backward()
            optimizer.step()
            with torch.no_grad():
                heights.clamp_(0, 1)
    with torch.no_grad():
        return _mask(heights, bump, rows, columns, (height, width))


def _bumps(rows: int, columns: int, unit: float) -> Tensor:
    """`[G, G]`: the bump of each cell at each cell, exp(-max(0, d - 1)^2 / 4), d the distance in units of the smoothness."""
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    place = torch.stack([y.reshape(-1), x.reshape(-1)], 1).double()
    return torch.exp(-(torch.cdist(place, place) * unit - 1).clamp_min(0).square() / 4)


def _mask(heights: Tensor, bump: Tensor, rows: int, columns: int, size: tuple[int, int]) -> Tensor:
    """The smooth maximum of the bumps, scaled up."""
    values = heights[:, None, :] * bump  # [B, G, G]
    coarse = (values * (TEMPERATURE * values).softmax(2)).sum(2).reshape(len(heights), 1, rows, columns)
    return F.interpolate(coarse, size, mode="bilinear", align_corners=False)


ESTIMATORS = (
    # It looks at no layer, but the first maps that were stored say at which it does not.
    Estimator("experturb", "extremal perturbation", function=extremal, options=("gc_layer",), one_channel=True),
)
