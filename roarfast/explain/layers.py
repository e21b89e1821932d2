"""The layer that Grad-CAM and its relatives look at: finding it, and catching what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from roarfast.explain.model_state import Normalized

_CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d, nn.LazyConv2d)


def token_grid(tokens: int, height: int, width: int) -> tuple[int, int, int]:
    """How tokens lie on an image `[height, width]`: leading tokens without a place, rows, columns.

    Example:
        >>> token_grid(197, 224, 224), token_grid(64, 32, 32), token_grid(33, 32, 64)
        ((1, 14, 14), (0, 8, 8), (1, 4, 8))
    """
    for extra in (1, 0, 2, 4, 5, 8, 9):  # a class token; none; also a distillation token, or registers
        rows = round(math.sqrt(max(tokens - extra, 0) * height / width))
        if rows and (tokens - extra) % rows == 0:
            columns = (tokens - extra) // rows
            if height % rows == 0 and width % columns == 0 and height // rows == width // columns:
                return extra, rows, columns
    raise ValueError(f"{tokens} tokens do not lie on a grid of square patches of an image of {height}x{width}")


def find_layer(model: nn.Module, name: str | None, example: Tensor, *, tokens: bool = False) -> tuple[str, nn.Module]:
    """The module called `name`, or the last conv stage; with `tokens`, of a transformer its last norm before attention.

    After the last attention only the class token counts, so what comes behind it has no gradient elsewhere.

    A stage is an outermost module that contains a convolution and returns feature maps `[N, K, h, w]`: `layer1` to
    `layer4` of a ResNet, `features` of a VGG. The last is the one that finishes last in a forward pass with maps of
    more than one pixel, if there is one: a map of one pixel says nothing about where. An `example` `[1, C, H, W]` is
    run through the model to see.
    """
    modules = dict(model.named_modules())
    if name is not None:
        if name not in modules and isinstance(model, Normalized) and f"model.{name}" in modules:
            name = f"model.{name}"  # users name modules of their net, which is inside
        if name not in modules or not name:
            own = model.model if isinstance(model, Normalized) else model
            shown = ", ".join(n for n, _ in own.named_modules() if n) or "none"
            raise ValueError(f"gc_layer must be a module of the model, got {name!r}. Its modules: {shown}")
        return name, modules[name]
    finished: list[tuple[bool, str]] = []
    norms: list[str] = []
    before_attention: list[str] = []

    def recorder(name: str) -> Callable[[nn.Module, object, object], None]:
        def record(module: nn.Module, inputs: object, output: object) -> None:
            if isinstance(output, Tensor) and output.ndim == 4:
                finished.append((output.shape[-2] * output.shape[-1] > 1, name))

        return record

    def norm(name: str) -> Callable[[nn.Module, object, object], None]:
        def record(module: nn.Module, inputs: object, output: object) -> None:
            if isinstance(output, Tensor) and output.ndim == 3:
                norms.append(name)

        return record

    def attention(module: nn.Module, inputs: object, output: object) -> None:
        before_attention.extend(norms[-1:])

    hooks = []
    if tokens:
        hooks += [m.register_forward_hook(norm(n)) for n, m in modules.items() if isinstance(m, nn.LayerNorm)]
        hooks += [m.register_forward_hook(attention) for m in modules.values() if "Attention" in type(m).__name__]
    hooks += [
        module.register_forward_hook(recorder(name))
        for name, module in modules.items()
        if name and any(isinstance(m, _CONVOLUTIONS) for m in module.modules())
    ]
    try:
        with torch.no_grad():
            model(example)
    finally:
        for hook in hooks:
            hook.remove()
    if before_attention:
        return before_attention[-1], modules[before_attention[-1]]
    inside = {name for _, name in finished if any(name.startswith(f"{other}.") for _, other in finished)}
    stages = [(larger, name) for larger, name in finished if name not in inside]
    spatial = [name for larger, name in stages if larger] or [name for _, name in stages]
    if not spatial:
        raise ValueError(
            "Grad-CAM found no module with a convolution that returns [N, K, h, w]; name a layer with gc_layer"
        )
    return spatial[-1], modules[spatial[-1]]


class Capture:
    """The activation a layer returned in the last forward pass."""

    def __init__(self) -> None:
        self._activation: Tensor | None = None

    def take(self, layer: str, *, tokens: bool = False) -> Tensor:
        """The activation, which is then forgotten; `[N, K, h, w]`, or with `tokens` also `[N, T, K]`."""
        activation, self._activation = self._activation, None
        if activation is None:
            raise ValueError(f"Grad-CAM: layer {layer!r} did not run in the forward pass")
        if activation.ndim != 4 and not (tokens and activation.ndim == 3):
            raise ValueError(
                f"Grad-CAM needs a layer that returns [N, K, h, w]; {layer!r} returns {tuple(activation.shape)}"
            )
        return activation

    def hook(self, module: nn.Module, inputs: object, output: object) -> Tensor:
        """Forward hook. Hands a copy on, so that a later in-place ReLU leaves the captured activation alone."""
        if not isinstance(output, Tensor):
            raise ValueError(f"Grad-CAM needs a layer that returns a tensor, got {type(output).__name__}")
        if not output.requires_grad:  # nothing before this layer needs gradients: start the graph here
            output = output.detach().requires_grad_()
        self._activation = output
        return output.clone()


@contextmanager
def captured(layer: nn.Module | None) -> Iterator[Capture | None]:
    """Captures the activations of `layer` inside; nothing for None."""
    if layer is None:
        yield None
        return
    capture = Capture()
    handle = layer.register_forward_hook(capture.hook)
    try:
        yield capture
    finally:
        handle.remove()
