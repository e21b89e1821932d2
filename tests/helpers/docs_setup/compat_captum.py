"""What a reader of docs/compat/captum.md brings: a model, images and maps."""

import torch

model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 1))
images, attributions = torch.rand(4, 3, 8, 8), torch.rand(4, 3, 8, 8)
