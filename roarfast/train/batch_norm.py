"""Batch normalisation of large batches, and of fine-tuning.

Ghost batch normalisation (Hoffer et al., 2017): a large batch is normalised in groups of fixed size.

The original ROAR trains ImageNet with batches of 4096 and statistics over 128. It also makes data-parallel training
equal to one process: when the groups are what each process sees anyway, the statistics are the same.

Fixed batch normalisation: statistics of a trained network stay as they are, where the images are too few to tell them anew.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class GhostBatchNorm2d(nn.BatchNorm2d):
    """`nn.BatchNorm2d` whose training statistics are over groups of `ghost_batch` samples.

    A batch that is no multiple of `ghost_batch` is cut into near-equal groups of at most that size. The running
    statistics move once per batch, towards the mean of the groups' statistics, so averaging them over the processes of a
    data-parallel training gives what one process would have.
    """

    def __init__(self, num_features: int, ghost_batch: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        if ghost_batch < 1:
            raise ValueError(f"ghost_batch must be at least 1, got {ghost_batch}")
        super().__init__(num_features, eps=eps, momentum=momentum)
        self.ghost_batch = ghost_batch

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """`[B, C, H, W]` → the same shape."""
        groups = -(-input.shape[0] // self.ghost_batch)
        if not self.training or groups <= 1:
            return super().forward(input)
        self._check_input_dim(input)
        # momentum 1 makes a row a group's own statistics (zeros, not empty: the old row is multiplied by 0, not ignored).
        means = input.new_zeros((groups, self.num_features), dtype=torch.float32)
        variances = torch.zeros_like(means)
        parts = [
            F.batch_norm(part, means[i], variances[i], self.weight, self.bias, True, 1.0, self.eps)
            for i, part in enumerate(torch.tensor_split(input, groups))
        ]
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            momentum = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
            self.running_mean.lerp_(means.mean(0), momentum)
            self.running_var.lerp_(variances.mean(0), momentum)
        return torch.cat(parts)


def use_ghost_batch_norm(model: nn.Module, ghost_batch: int) -> nn.Module:
    """Replaces every `nn.BatchNorm2d` of a model, in place; weights and running statistics stay.

    Args:
        model: Any model.
        ghost_batch: Samples per group.

    Returns:
        The same model.

    Example:
        >>> use_ghost_batch_norm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), 32)[1].ghost_batch
        32
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.BatchNorm2d:
                ghost = GhostBatchNorm2d(child.num_features, ghost_batch, child.eps, child.momentum)
                ghost.load_state_dict(child.state_dict())
                setattr(parent, name, ghost)
    return model


class FixedBatchNorm2d(nn.BatchNorm2d):
    """`nn.BatchNorm2d` that normalises by its running statistics and keeps them, also in training mode."""

    def train(self, mode: bool = True) -> FixedBatchNorm2d:
        """Stays in evaluation mode, whatever `mode` is."""
        super().train(False)
        return self


def fix_batch_norm(model: nn.Module) -> nn.Module:
    """Replaces every `nn.BatchNorm2d` of a model, in place, by one that keeps its statistics; weights stay.

    Args:
        model: Any model.

    Returns:
        The same model; if it is an `nn.BatchNorm2d` itself, its replacement.

    Example:
        >>> fix_batch_norm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))).train()[1].training
        False
    """
    if type(model) is nn.BatchNorm2d:
        fixed = FixedBatchNorm2d(model.num_features, eps=model.eps, momentum=model.momentum)
        fixed.load_state_dict(model.state_dict())
        return fixed.train()
    for name, child in list(model.named_children()):
        setattr(model, name, fix_batch_norm(child))
    return model
