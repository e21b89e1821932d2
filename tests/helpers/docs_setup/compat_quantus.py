"""What a reader of docs/compat/quantus.md brings: a model, images and maps."""

import numpy as np
import quantus
import torch

import roarfast.compat

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 4)).eval()
_rng = np.random.default_rng(0)
x, a = _rng.random((4, 3, 16, 16), np.float32), _rng.random((4, 1, 16, 16), np.float32)
y = np.arange(4)
__all__ = ["a", "model", "quantus", "roarfast", "x", "y"]
