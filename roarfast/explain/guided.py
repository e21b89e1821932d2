"""Guided backpropagation (Springenberg et al., 2015): ReLUs that pass back positive gradients only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_RELU = {torch.relu, Tensor.relu}
_RELU_IN_PLACE = {torch.relu_, Tensor.relu_, F.relu_}


class _GuidedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, in_place: bool) -> Tensor:
        if in_place:
            y = x.relu_()
            ctx.mark_dirty(y)
        else:
            y = x.relu()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (y,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0].relu(), y, 0), None


class _GuidedMode(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.relu:
            return _relu(*args, **kwargs)
        if func in _RELU:
            return _relu(args[0] if args else kwargs["input"], False)
        if func in _RELU_IN_PLACE:
            return _relu(args[0] if args else kwargs["input"], True)
        return func(*args, **kwargs)


def _relu(input: Tensor, inplace: bool = False) -> Tensor:  # the parameter names of F.relu
    return _GuidedReLU.apply(input, inplace)  # type: ignore[no-any-return, no-untyped-call]


@contextmanager
def guided_relus(model: nn.Module) -> Iterator[None]:
    """Inside, every ReLU that runs in Python gets the guided rule.

    Modules (reused and in-place ones too), `F.relu`, `torch.relu`, `x.relu()` and `x.relu_()`: the calls are
    intercepted, so the model is not touched.
    """
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise ValueError(
                f"guided backprop cannot see the ReLUs inside a TorchScript module ({name or 'the model'}): "
                "pass the Python module it was made from"
            )
    with _GuidedMode():
        yield
