"""What captum's DeepLift does not see: it takes the plain gradient at activations it has no rule for, without a word."""

from __future__ import annotations

import warnings

from torch import nn


def unseen_activations(model: nn.Module) -> list[str]:
    """Kinds of activations in a model that captum's DeepLift and DeepLiftShap have no rule for, as `ReLU6`.

    Contributions then do not add up; where all activations are of such a kind, they are gradient x (input - baseline).
    """
    from captum.attr._core.deep_lift import SUPPORTED_NON_LINEAR

    kinds = {type(m) for m in model.modules() if type(m).__module__ == nn.ReLU.__module__}
    return sorted(kind.__name__ for kind in kinds - set(SUPPORTED_NON_LINEAR) - {nn.MultiheadAttention})


def warn_of_unseen(model: nn.Module, made: type) -> None:
    """Warns if `made`, a class, is a DeepLift of captum's that does not see some activations of the model."""
    if not any(base.__module__ == "captum.attr._core.deep_lift" for base in made.__mro__):
        return
    if kinds := unseen_activations(model):
        warnings.warn(
            f"captum's {made.__name__} has no rule for {', '.join(kinds)}: it takes the plain gradient there, and contributions do not "
            "add up; build these activations of ReLUs (roarfast.train.lite does so for ReLU6)",
            UserWarning,
            stacklevel=3,
        )
