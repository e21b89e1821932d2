"""DeConvNet (Zeiler and Fergus, 2014): the gradient with ReLUs that pass back what is positive, whatever came in."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from roarfast.explain.guided import deconv_relus
from roarfast.explain.record import Estimator


def deconvnet(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Maps `[B, C, H, W]` of the target logits of images.

    Example:
        >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
        >>> deconvnet(net, torch.zeros(1, 1, 2, 2), torch.tensor([1])).shape
        torch.Size([1, 1, 2, 2])
    """
    with torch.enable_grad(), deconv_relus(model):
        x = x.detach().requires_grad_()
        score = model(x.clone()).gather(1, target[:, None]).sum()
        return torch.autograd.grad(score, x)[0]


ESTIMATORS = (Estimator("deconvnet", "DeConvNet", function=deconvnet),)
