"""Excitation backpropagation (Zhang et al., 2016): a unit of probability flows from the target down to a layer.

Each neuron hands its probability to the neurons that excited it, in proportion to a_j w_ij+: activation times positive
weight. Linear and convolution layers, average pooling and sums of branches split it so; ReLU, normalisation and dropout,
where one neuron feeds one, pass it on; maximum pooling gives all of it to the winner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from roarfast.explain.layers import captured, find_layer
from roarfast.explain.record import Estimator

_ADDITIONS = {torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, Tensor.__iadd__}
_RELUS = {F.relu, torch.relu, Tensor.relu, torch.relu_, Tensor.relu_}
_ONE_TO_ONE = {F.batch_norm, F.instance_norm, F.dropout, F.hardtanh, F.relu6, F.gelu, F.silu, F.leaky_relu}
_AVERAGES = {F.avg_pool2d, torch._C._nn.avg_pool2d, F.adaptive_avg_pool2d}


class _Context(Protocol):
    """What autograd hands from `forward` to `backward`."""

    excited: Callable[[Tensor], Tensor]

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]: ...

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class _Split(torch.autograd.Function):
    """A linear map: forward as it is, backward in proportion to positive input times positive weight."""

    @staticmethod
    def forward(ctx: _Context, y: Tensor, excited: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        ctx.excited = excited
        ctx.save_for_backward(x)
        return y.clone()

    @staticmethod
    def backward(ctx: _Context, *gradients: Tensor) -> tuple[None, None, Tensor]:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            a = x.detach().relu().requires_grad_()
            total = ctx.excited(a)
            share = torch.where(total > 0, gradients[0] / total.clamp_min(torch.finfo(total.dtype).tiny), 0)
            flow = torch.autograd.grad(total, a, share.detach())[0]
        return None, None, a.detach() * flow


class _Pass(torch.autograd.Function):
    """Forward as it is, backward unchanged."""

    @staticmethod
    def forward(ctx: object, y: Tensor, x: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def backward(ctx: object, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, gradients[0]


class _Merge(torch.autograd.Function):
    """A sum of two branches: backward in proportion to what is positive of each."""

    @staticmethod
    def forward(ctx: _Context, y: Tensor, u: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(u, v)
        return y.clone()

    @staticmethod
    def backward(ctx: _Context, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        u, v = (t.relu() for t in ctx.saved_tensors)
        total = u + v
        share = torch.where(total > 0, gradients[0] / total.clamp_min(torch.finfo(total.dtype).tiny), 0)
        return None, share * u, share * v


class _ExcitationMode(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        kwargs = dict(kwargs or {})
        x = args[0] if args else kwargs.get("input")
        if not isinstance(x, Tensor) or not x.requires_grad:
            return func(*args, **kwargs)
        if func in (F.linear, F.conv2d, torch.conv2d):
            return self._split(func, args, kwargs)
        if func in _AVERAGES:
            rest = args[1:]
            with torch.no_grad():
                y = func(*args, **kwargs)
            return _Split.apply(y, lambda a: func(a, *rest, **kwargs), x)  # type: ignore[no-untyped-call]
        if func in _RELUS or func in _ONE_TO_ONE:
            with torch.no_grad():
                y = func(x.clone(), *args[1:], **kwargs)  # a copy: in-place ones must not touch what is saved
            return _Pass.apply(y, x)  # type: ignore[no-untyped-call]
        if func in _ADDITIONS and len(args) > 1 and isinstance(args[1], Tensor) and args[1].shape == x.shape:
            with torch.no_grad():
                y = x + args[1]
            return _Merge.apply(y, x, args[1])  # type: ignore[no-untyped-call]
        return func(*args, **kwargs)

    def _split(self, func: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, object]) -> object:
        x, weight, *rest = args
        with torch.no_grad():
            y = func(*args, **kwargs)
        positive = weight.detach().relu()
        # Without the bias: it is no neuron below that could have excited this one.
        kept = {k: v for k, v in kwargs.items() if k != "bias"}
        after_bias = rest[1:]
        return _Split.apply(y, lambda a: func(a, positive, None, *after_bias, **kept), x)  # type: ignore[no-untyped-call]


def excitation(model: nn.Module, x: Tensor, target: Tensor, *, layer: str | None = None) -> Tensor:
    """Maps `[B, 1, h, w]` at a layer: the probability that the target's evidence came from there; sums to at most 1.

    Args:
        model: Returns logits; made of convolutions, linear layers, ReLUs, pooling, normalisation and sums.
        x: Images `[B, C, H, W]`.
        target: Classes `[B]`.
        layer: Name of a module that returns `[B, K, h, w]`; None: the layer of Grad-CAM.
    """
    name, module = find_layer(model, layer, x[:1].clone())
    with torch.enable_grad(), captured(module) as capture, _ExcitationMode():
        logits = model(x.detach().requires_grad_())
        assert capture is not None
        activation = capture.take(name)
        one = F.one_hot(target, logits.shape[1]).to(logits.dtype)
        flow = torch.autograd.grad(logits, activation, one)[0]
    return flow.sum(1, keepdim=True)


ESTIMATORS = (
    Estimator(
        "excitation",
        "excitation backpropagation",
        function=excitation,
        arguments={"layer": "gc_layer"},
        options=("gc_layer",),
        one_channel=True,
    ),
)
