"""Estimators from elsewhere: captum objects and plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor, nn

from roarfast.explain.deeplift import warn_of_unseen
from roarfast.explain.names import check_custom
from roarfast.explain.record import Estimator

Function = Callable[[nn.Module, Tensor, Tensor], Tensor]


class Attribution(Protocol):
    """An object like `captum.attr.Occlusion(model)`; what `attribute` takes besides inputs and target differs by class."""

    @property
    def attribute(self) -> Callable[..., Tensor | tuple[Tensor, ...]]:
        """The maps of inputs."""


class External(Estimator):
    """A user's function as an estimator, with the same squaring, aggregation, post-processing and storage as ours.

    Args:
        name: Lower-case, as in `"occlusion"`; `"occlusion^2"` is then its square.
        function: `f(model, x, target) -> map`: images `[B, C, H, W]` and classes `[B]` to `[B, C, H, W]`,
            `[B, 1, h, w]` (upsampled bilinearly) or `[B, H, W]`. The model is in evaluation mode and frozen.

    Its batches are bounded by `batch_size`, what it does inside is not. An `Estimator` can say more: that it asks no model,
    or that it wants the gradients of a pass that others share.

    Example:
        >>> brightness = External("brightness", lambda model, x, target: x.mean(1))
    """

    def __init__(self, name: str, function: Function) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable as f(model, x, target), got {function!r}")
        super().__init__(check_custom(name), function=function, random=True)


def of_captum_class(made: type, options: Mapping[str, object]) -> Function:
    """`f(model, x, target)` that makes an object of a class like `captum.attr.DeepLift` for the model and asks it.

    Options that the class takes go to it, the others to `.attribute`; a `layer` is a name of `model.named_modules()`.
    """
    taken = [name for name in list(inspect.signature(made).parameters)[1:] if name in options]

    def function(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        own = {name: options[name] for name in taken}
        if isinstance(layer_name := own.get("layer"), str):
            layers = {name.removeprefix("model."): layer for name, layer in model.named_modules()}
            if layer_name not in layers:
                raise ValueError(f"layer {layer_name!r} is none of the model's: {', '.join(list(layers)[1:20])}")
            own["layer"] = layers[layer_name]
        rest = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in options.items()
            if name not in taken
        }
        warn_of_unseen(model, made)
        x = x.detach().requires_grad_()
        result = made(model, **own).attribute(x, target=target, **rest)  # type: ignore[attr-defined]
        return result[0] if isinstance(result, tuple) else result  # type: ignore[no-any-return]

    return function


def from_captum(attribution: Attribution, name: str | None = None, **arguments: object) -> External:
    """Makes an estimator of a `captum.attr` object, or of anything with `.attribute(inputs, target=…)`.

    Args:
        attribution: As in `captum.attr.Occlusion(model)`. It must have been made for the model that is explained;
            another one is an error when it is used.
        name: Name of the estimator; by default the class's name in lower case.
        **arguments: Passed to `.attribute`, as in `sliding_window_shapes=(3, 4, 4)`.

    Example:
        >>> import captum.attr  # doctest: +SKIP
        >>> occlusion = from_captum(captum.attr.Occlusion(model), sliding_window_shapes=(3, 4, 4))  # doctest: +SKIP
    """
    if not callable(getattr(attribution, "attribute", None)):
        raise TypeError(f"attribution must have a method attribute(inputs, target=...), got {attribution!r}")

    def function(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        own = getattr(attribution, "forward_func", None)
        if isinstance(own, nn.Module) and own is not model:
            raise ValueError(
                f"{type(attribution).__name__} was made for another model ({type(own).__name__}) than the one explained"
            )
        warn_of_unseen(model, type(attribution))
        result = attribution.attribute(x, target=target, **arguments)
        return result[0] if isinstance(result, tuple) else result

    return External(name or type(attribution).__name__.lower(), function)
