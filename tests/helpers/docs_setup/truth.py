"""What a reader of docs/truth.md brings: a model, images, maps by it and by another one, answers of the engine."""

import numpy as np
import torch

from roarfast import metrics

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 4)).eval()
images = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 3), np.uint8)
labels = np.arange(60) % 4
mean, std = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
maps, maps_of_another_model = np.random.default_rng(1).random((2, 60, 16, 16), np.float32)
_drops = [0.1, 0.5, 0.9]
own = {"ig": metrics.respond(model, images, maps, _drops, labels=labels, mean=mean, std=std)}
null = {
    "ig": metrics.respond(
        model, images, metrics.null_maps(maps, "swap", seed=0), _drops, labels=labels, mean=mean, std=std
    )
}
