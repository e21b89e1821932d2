"""A net of three convolutions, trained in seconds: for tools that need any trained net."""

from __future__ import annotations

import torch
from torch import nn

from roarfast.train import build_model, get_recipe, train


def small_net(num_classes, in_channels=3):
    """Three convolutions and a linear layer: about 3 million multiplications."""

    def stage(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))

    return nn.Sequential(
        stage(in_channels, 16), stage(16, 32), stage(32, 64), nn.Flatten(), nn.Linear(64 * 16, num_classes)
    )


def base_model(path, training, test, epochs):
    """The net, trained or read, and its test accuracy."""
    if not path.exists():
        recipe = get_recipe("quick", model="convnet", epochs=epochs, optimizer="adam", lr=2e-3, batch_size=128)
        result = train(small_net, training, test, recipe, seed=0, progress="none")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": result.model.state_dict(), "accuracy": result.accuracy}, path)
    state = torch.load(path, weights_only=True)
    model = build_model(small_net, training.num_classes, 3, seed=0)
    model.load_state_dict(state["model"])
    return model.eval(), float(state["accuracy"])
