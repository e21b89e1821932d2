"""Small models for the tests of roarfast.explain, and a fixture to import: `one_thread`. Skips where torch is missing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from helpers.threads import one_thread  # noqa: E402, F401


def seeded(make, seed=0):
    """A model with fixed weights and batch-norm statistics that are not the identity, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = make()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.2)
                module.running_var.uniform_(0.5, 2)
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, 0, 0.2)
    return model.eval()


def images(n=4, channels=3, size=8, seed=1, dtype=torch.float32):
    return torch.rand((n, channels, size, size), generator=torch.Generator().manual_seed(seed)).to(dtype)


def small_net(in_place=False, classes=4):
    """Conv-BN-ReLU twice, pooling, linear."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=in_place),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, padding=1),
        nn.ReLU(inplace=in_place),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, classes),
    )


class ReluStyles(nn.Module):
    """The same function with its two ReLUs written in different ways."""

    def __init__(self, style):
        super().__init__()
        self.style = style
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 6, 3, padding=1)
        self.fc = nn.Linear(6, 4)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.shared = nn.ReLU()
        self.in_place = nn.ReLU(inplace=True)

    def relu(self, x, which):
        if self.style == "modules":
            return (self.relu1, self.relu2)[which](x)
        if self.style == "shared":
            return self.shared(x)
        if self.style == "shared in place":
            return self.in_place(x)
        if self.style == "F.relu":
            return F.relu(x)
        if self.style == "F.relu(inplace)":
            return F.relu(x, inplace=True)
        if self.style == "torch.relu":
            return torch.relu(x)
        if self.style == "x.relu()":
            return x.relu()
        if self.style == "torch.relu_":
            return torch.relu_(x)
        x.relu_()  # the return value is not used
        return x

    def forward(self, x):
        x = self.relu(self.conv1(x), 0)
        x = self.relu(self.conv2(x), 1)
        return self.fc(x.mean((2, 3)))


RELU_STYLES = (
    "modules",
    "shared",
    "shared in place",
    "F.relu",
    "F.relu(inplace)",
    "torch.relu",
    "x.relu()",
    "torch.relu_",
    "x.relu_()",
)


class Linear(nn.Module):
    """logits = W x + b."""

    def __init__(self, size=(3, 4, 4), classes=3, dtype=torch.float64):
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(torch.randn(classes, *size, dtype=dtype))
        self.bias = nn.Parameter(torch.randn(classes, dtype=dtype))

    def forward(self, x):
        return torch.einsum("nchw,kchw->nk", x, self.weight) + self.bias


class Quadratic(Linear):
    """logits = sum of W x^2 / 2, so the gradient is W x."""

    def forward(self, x):
        return torch.einsum("nchw,kchw->nk", x.square() / 2, self.weight) + self.bias
