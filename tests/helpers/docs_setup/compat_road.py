"""What a reader of docs/compat/road.md brings: a model, images with labels, maps."""

import numpy as np
import torch

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4)).eval()
_rng = np.random.default_rng(0)
data = [(torch.rand(3, 8, 8), i % 4) for i in range(8)]
explanations = _rng.random((8, 8, 8, 3), np.float32)


def transform(image):
    return (image - 0.5) / 0.25
