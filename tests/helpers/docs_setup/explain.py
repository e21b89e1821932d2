"""What a reader of docs/explain.md brings: a model, its normalisation, images."""

from types import SimpleNamespace

import numpy as np
import torch

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(4, 4, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4),
    torch.nn.Flatten(),
    torch.nn.Linear(64, 5),
).eval()
mean, std = (0.5, 0.5, 0.5), (0.2, 0.2, 0.2)
images = torch.rand(4, 3, 16, 16)
dataset = SimpleNamespace(images=np.random.default_rng(0).integers(0, 256, (200, 16, 16, 3), np.uint8))
