"""A network trained on ImageNet, made ready to be trained further on other classes.

In a config: `model.name = "roarfast.train.finetune:efficientnet_lite"`, with its input normalised as it was trained with:
`data.mean = [0.498039, 0.498039, 0.498039]`, `data.std = [0.501961, 0.501961, 0.501961]`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from roarfast.train import lite
from roarfast.train.batch_norm import fix_batch_norm


def efficientnet_lite(
    num_classes: int,
    size: int = 0,
    fixed_blocks: int = 0,
    fixed_norm: bool = False,
    dropout: float = 0.2,
    drop_connect: float = 0.0,
) -> nn.Module:
    """EfficientNet-Lite with its ImageNet weights and a new last layer, for images of any multiple of 32 pixels.

    Args:
        num_classes: Of the new last layer.
        size: 0, 1 or 2, as `roarfast.train.lite.efficientnet_lite`.
        fixed_blocks: Keep the stem and the first so many blocks (of 16 in Lite0) as they are, weights and statistics: no
            gradient goes through them in training, which costs less.
        fixed_norm: Keep the statistics of batch normalisation everywhere; its weights are trained where others are.
        dropout: Before the last layer.
        drop_connect: Of whole blocks, rising from 0 at the first towards this.

    Returns:
        The network, in training mode.

    Raises:
        ModuleNotFoundError: The packages with the network and its weights are not installed; says which.
    """
    net: Any = lite.efficientnet_lite(num_classes, size)
    if not 0 <= fixed_blocks <= len(net._blocks):
        raise ValueError(f"fixed_blocks must be 0 to {len(net._blocks)}, got {fixed_blocks}")
    net._dropout.p = dropout
    net._global_params = net._global_params._replace(drop_connect_rate=drop_connect)
    net._fc = nn.Linear(net._fc.in_features, num_classes)  # new also where ImageNet's number of classes is asked for
    with torch.no_grad():  # small: the first steps should not pull the trained layers after random logits
        net._fc.weight.normal_(0, 0.01)
        net._fc.bias.zero_()
    if fixed_norm:
        fix_batch_norm(net)
    if fixed_blocks:
        net._bn0 = fix_batch_norm(net._bn0)
        for part in (net._conv_stem, net._bn0, *net._blocks[:fixed_blocks]):
            fix_batch_norm(part).requires_grad_(False)
    return net.train()
