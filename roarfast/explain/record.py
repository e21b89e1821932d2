"""`Estimator`: the record of one way to make attribution maps. Names, passes, identities and studies read its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from roarfast._objects import check_name
from roarfast.explain.options import Options


@dataclass
class Gradients:
    """What a forward and backward pass over the model finds for each of R rows: images, or noisy copies of images.

    Attributes:
        target: The classes `[R]`.
        input: Gradients of the target logits with respect to the rows `[R, C, H, W]`; along a path, their weighted mean.
        start: Where the path starts, `[R, C, H, W]`; None without one.
        activation: What the layer of Grad-CAM returned, `[R, K, h, w]` or tokens `[R, T, K]`; None if nothing looks at it.
        layer: The gradients with respect to it.
    """

    target: Tensor
    input: Tensor | None = None
    start: Tensor | None = None
    activation: Tensor | None = None
    layer: Tensor | None = None

    def have(self, name: str) -> Tensor:
        """A field that must be there: the pass of an estimator computes what its record asks for."""
        value: Tensor | None = getattr(self, name)
        if value is None:
            raise RuntimeError(f"this pass did not compute {name!r}: the record of the estimator does not ask for it")
        return value


@dataclass(frozen=True, eq=False)
class Estimator:
    """One way to make attribution maps, `[B, C, H, W]` or `[B, 1, h, w]`, which is scaled up to the image.

    Exactly one of `of_pass`, `of_image` and `function` says how. A file of `roarfast/explain/estimators/` has the records
    of its estimators in `ESTIMATORS`; one of your own is given to `Explainer`, or named in a study as `package.module:object`.

    Attributes:
        name: Lower-case, as in `"occlusion"`; `"occlusion^2"` is then its square.
        meaning: What it is, in a few words, for the grammar.
        of_pass: `f(x, gradients, options) -> map` from the `Gradients` of a pass, which is shared with every other estimator
            that wants the same. Ensembles can average these: `"sg(name)"`.
        of_image: `f(x, index, seed, options) -> map`: asks no model. `index` are the sample ids `[B]`.
        function: `f(model, x, target) -> map` with passes of its own: images `[B, C, H, W]` and classes `[B]`. The model is
            in evaluation mode and frozen.
        path: `of_pass` wants the gradients along the path of integrated gradients.
        guided: `of_pass` wants them with the guided-backprop rule at ReLUs.
        at_layer: `of_pass` wants activation and gradients at the layer of Grad-CAM, not at the input.
        arguments: Arguments of `function` that are taken from `Options`: argument → field.
        options: Fields of `Options` that the maps depend on: stored maps made with others are not used again.
        one_channel: Whether the maps have one channel, whatever the images have.
        random: Whether the maps depend on the seed.
        version: Raised when the maps change: stored ones of another version are not used again.
    """

    name: str
    meaning: str = ""
    of_pass: Callable[..., Tensor] | None = None
    of_image: Callable[..., Tensor] | None = None
    function: Callable[..., Tensor] | None = None
    path: bool = False
    guided: bool = False
    at_layer: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    one_channel: bool = False
    random: bool = False
    version: int = 1

    def __post_init__(self) -> None:
        check_name(self.name, "an estimator")
        given = [name for name in ("of_pass", "of_image", "function") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"estimator {self.name!r} must have one of of_pass, of_image and function, got {given}")
        if not callable(getattr(self, given[0])):
            raise TypeError(f"{given[0]} of estimator {self.name!r} must be callable, got {getattr(self, given[0])!r}")
        if (self.path or self.guided or self.at_layer) and self.of_pass is None:
            raise ValueError(f"estimator {self.name!r}: path, guided and at_layer say which pass of_pass wants")
        if self.path and self.at_layer:
            raise ValueError(f"estimator {self.name!r}: along a path there are only gradients at the input")

    def named(self, name: str, arguments: Mapping[str, object]) -> Estimator:
        """The same estimator under another name, with some arguments of its function set.

        Example:
            >>> tone = Estimator("tone", of_image=lambda x, index, seed, options, gain=1: gain * x)
            >>> tone.named("louder", {"gain": 2}).of_image(torch.ones(1), None, 0, None)
            tensor([2.])
        """

        def bind(function: Callable[..., Tensor] | None) -> Callable[..., Tensor] | None:
            return partial(function, **arguments) if function is not None and arguments else function

        return replace(
            self,
            name=name,
            of_pass=bind(self.of_pass),
            of_image=bind(self.of_image),
            function=bind(self.function),
        )

    def __call__(self, model: nn.Module, x: Tensor, target: Tensor, seed: int, options: Options) -> Tensor:
        """What `function` returns, checked, as `[B, C, H, W]` or `[B, 1, H, W]`.

        torch's random generator is seeded for each batch and restored after, so a rerun gives the same maps, but a method
        with its own noise depends on the batch.
        """
        assert self.function is not None
        arguments = {argument: getattr(options, name) for argument, name in self.arguments.items()}
        devices = [x.device] if x.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.enable_grad():
            torch.manual_seed(seed)
            result = self.function(model, x.detach().clone(), target, **arguments)
        return self.checked(result, x)

    def checked(self, result: Tensor, x: Tensor) -> Tensor:
        """A map as `[B, C, H, W]` or `[B, 1, H, W]` of the size of the images."""
        if not isinstance(result, Tensor):
            raise TypeError(f"estimator {self.name!r} must return a tensor, got {type(result).__name__}")
        result = result.detach()
        if result.ndim == 3:
            result = result.unsqueeze(1)
        if result.ndim != 4 or result.shape[0] != x.shape[0]:
            raise ValueError(
                f"estimator {self.name!r} must return [{x.shape[0]}, C, H, W] or [{x.shape[0]}, H, W], "
                f"got {tuple(result.shape)}"
            )
        if result.shape[-2:] != x.shape[-2:]:
            result = F.interpolate(result, x.shape[-2:], mode="bilinear", align_corners=False)
        return result.to(x.dtype)
