"""ReLUs with another rule for what they pass back.

Guided backpropagation (Springenberg et al., 2015): positive gradients, where the input was positive. DeConvNet (Zeiler
and Fergus, 2014): positive gradients, whatever the input was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_RELU = {torch.relu, Tensor.relu}
_RELU_IN_PLACE = {torch.relu_, Tensor.relu_, F.relu_}


class _Context(Protocol):
    """What autograd hands from `forward` to `backward`."""

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...

    def save_for_backward(self, *tensors: Tensor) -> None: ...

    def mark_dirty(self, *tensors: Tensor) -> None: ...


class _GuidedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _Context, x: Tensor, in_place: bool) -> Tensor:
        if in_place:
            y = x.relu_()
            ctx.mark_dirty(y)
        else:
            y = x.relu()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: _Context, *gradients: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0].relu(), y, 0), None


class _DeconvReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: _Context, x: Tensor, in_place: bool) -> Tensor:
        if not in_place:
            return x.relu()
        y = x.relu_()
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx: _Context, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].relu(), None


class _ReluMode(TorchFunctionMode):
    def __init__(self, rule: type[torch.autograd.Function]) -> None:
        super().__init__()
        self.rule = rule

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if func is F.relu:
            return self._relu(*args, **kwargs)
        if func in _RELU:
            return self._relu(args[0] if args else kwargs["input"], False)
        if func in _RELU_IN_PLACE:
            return self._relu(args[0] if args else kwargs["input"], True)
        return func(*args, **kwargs)

    def _relu(self, input: Tensor, inplace: bool = False) -> object:  # the parameter names of F.relu
        return self.rule.apply(input, inplace)  # type: ignore[no-untyped-call]


def guided_relus(model: nn.Module) -> AbstractContextManager[None]:
    """Inside, every ReLU that runs in Python gets the guided rule.

    Modules (reused and in-place ones too), `F.relu`, `torch.relu`, `x.relu()` and `x.relu_()`: the calls are
    intercepted, so the model is not touched.
    """
    return _with_rule(model, _GuidedReLU, "guided backprop")


def deconv_relus(model: nn.Module) -> AbstractContextManager[None]:
    """Inside, every ReLU that runs in Python gets the rule of DeConvNet; as `guided_relus`."""
    return _with_rule(model, _DeconvReLU, "DeConvNet")


@contextmanager
def _with_rule(model: nn.Module, rule: type[torch.autograd.Function], method: str) -> Iterator[None]:
    for name, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            raise ValueError(
                f"{method} cannot see the ReLUs inside a TorchScript module ({name or 'the model'}): "
                "pass the Python module it was made from"
            )
    with _ReluMode(rule):
        yield
