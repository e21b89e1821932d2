"""What a reader of docs/explain.md has in the working folder: images in a file, and a network's weights."""

import numpy as np
import torch

from roarfast.train import build_model

_rng = np.random.default_rng(0)
np.savez("cifar10_test.npz", images=_rng.integers(0, 256, (20, 32, 32, 3), np.uint8), labels=np.arange(20) % 10)
torch.save(build_model("resnet18", 10, 3).state_dict(), "r18.pt")
