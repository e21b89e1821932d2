"""Optimisers by name: what `optimizer` of a recipe means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from roarfast.train.recipe import Recipe

Groups = list[dict[str, Any]]


def _sgd(groups: Groups, recipe: Recipe) -> torch.optim.Optimizer:
    return torch.optim.SGD(groups, lr=recipe.lr, momentum=recipe.momentum, nesterov=recipe.nesterov, fused=True)


def _adam(groups: Groups, recipe: Recipe) -> torch.optim.Optimizer:
    return torch.optim.Adam(groups, lr=recipe.lr, betas=recipe.betas, fused=True)


def _adamw(groups: Groups, recipe: Recipe) -> torch.optim.Optimizer:
    return torch.optim.AdamW(groups, lr=recipe.lr, betas=recipe.betas, fused=True)


BUILDERS: dict[str, Callable[[Groups, Recipe], torch.optim.Optimizer]] = {"sgd": _sgd, "adam": _adam, "adamw": _adamw}


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The optimiser of a recipe for the parameters of a model that are trained.

    Weight decay is an L2 penalty for `sgd` and `adam`, decoupled from the gradient for `adamw`; without `decay_norm`
    vectors (biases, normalisation weights) have none.

    Example:
        >>> type(make_optimizer(nn.Linear(2, 2), Recipe(optimizer="adamw", lr=1e-3))).__name__
        'AdamW'
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    decayed = [p for p in parameters if recipe.decay_norm or p.ndim > 1]
    plain = [p for p in parameters if not (recipe.decay_norm or p.ndim > 1)]
    groups: Groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return BUILDERS[recipe.optimizer]([g for g in groups if g["params"]], recipe)
