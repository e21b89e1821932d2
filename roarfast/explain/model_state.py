"""The model while it is explained: evaluation mode, frozen, and put back as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without parameter gradients inside; every flag is restored, after an exception too.

    Without parameter gradients, a pass keeps fewer activations. The flags are set one by one: `model.eval()` can be
    overridden, and a part of the model may deliberately be in another mode than the rest.

    Args:
        model: Any model; as it was afterwards.

    Example:
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        >>> with frozen(net):
        ...     print(net.training, net[0].weight.requires_grad)
        False False
        >>> net.training, net[0].weight.requires_grad
        (True, True)
    """
    training = [(module, module.training) for module in model.modules()]
    requires_grad = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        for module, _ in training:
            module.training = False
        for parameter, _ in requires_grad:
            parameter.requires_grad_(False)
        yield
    finally:
        for module, flag in training:
            module.training = flag
        for parameter, flag in requires_grad:
            parameter.requires_grad_(flag)


class Normalized(nn.Module):
    """A model that takes images in [0, 1]: normalises each channel, then calls the model.

    Attributions are then in the units of the image: the zero baseline is black, and a noise level is a fraction of
    the brightness range.

    Args:
        model: Takes normalised images `[N, C, H, W]`.
        mean: Per channel.
        std: Per channel, > 0.

    Example:
        >>> net = Normalized(nn.Flatten(), mean=[0.5], std=[0.25])
        >>> net(torch.ones(1, 1, 1, 1)).tolist()
        [[2.0]]
    """

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, mean: Sequence[float] | Tensor, std: Sequence[float] | Tensor) -> None:
        super().__init__()
        self.model = model
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32).reshape(-1, 1, 1).clone())
        if self.mean.shape != self.std.shape:
            raise ValueError(f"mean and std must be of one length, got {self.mean.numel()} and {self.std.numel()}")
        if not bool((self.std > 0).all()):
            raise ValueError(f"std must be > 0, got {self.std.flatten().tolist()}")
        self.train(model.training)

    def forward(self, x: Tensor) -> Tensor:
        """Images `[N, C, H, W]` in [0, 1] to what the model returns."""
        return self.model((x - self.mean.to(x.dtype)) / self.std.to(x.dtype))  # type: ignore[no-any-return]
