"""DeepSHAP (Lundberg and Lee, 2017) by captum's `DeepLiftShap`: contributions against several baselines, averaged.

The baselines are the same for every image and batch: zeros (the mean image, where the input is normalised) and images of standard normal
noise. For others, name a function of your own as `package.module:function`.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from roarfast.explain.deeplift import warn_of_unseen
from roarfast.explain.record import Estimator

BASELINES, SEED = 6, 0x5EED


def baselines(shape: torch.Size, count: int = BASELINES) -> Tensor:
    """`[count, C, H, W]`: one of zeros, the rest noise, always the same.

    Example:
        >>> float(baselines(torch.Size([1, 2, 2]))[0].abs().max())
        0.0
    """
    noise = torch.randn(count - 1, *shape, generator=torch.Generator().manual_seed(SEED))
    return torch.cat([torch.zeros(1, *shape), noise])


def deepshap(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Maps `[B, C, H, W]`, signed; they add up to f(x) minus the mean of f over the baselines.

    Args:
        model: Returns logits; made of modules, each used once, as captum's DeepLift needs.
        x: Images `[B, C, H, W]`.
        target: Classes `[B]`.
    """
    try:
        from captum.attr import DeepLiftShap
    except ImportError:
        raise ImportError("estimator 'deepshap' needs captum: pip install captum") from None
    warn_of_unseen(model, DeepLiftShap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that hooks are set, which are removed after
        found = DeepLiftShap(model).attribute(x, baselines(x.shape[1:]).to(x), target=target)
    return found.detach()  # type: ignore[no-any-return]


ESTIMATORS = (Estimator("deepshap", "DeepSHAP, by captum", function=deepshap),)
