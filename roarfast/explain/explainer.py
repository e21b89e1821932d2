"""`Explainer`: attribution maps of many estimators from shared passes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from roarfast._stopwatch import Stopwatch
from roarfast.explain.aggregate import Aggregation
from roarfast.explain.layers import find_layer
from roarfast.explain.model_state import frozen
from roarfast.explain.names import Name, check_custom, parse_all
from roarfast.explain.options import Options
from roarfast.explain.passes import PASSES, Passes
from roarfast.explain.plan import Plan
from roarfast.explain.record import Estimator
from roarfast.ops._renamed import renamed

Estimators = str | Name | Estimator | Iterable[str | Name | Estimator]
Ids = npt.ArrayLike | Tensor
"""Integers `[N]`: sample ids, or classes."""


class Settings(TypedDict, total=False):
    """What `explain` hands on to `Explainer`."""

    options: Options | None
    target: str | int
    aggregate: str | Aggregation
    batch_size: int
    seed: int


class Explainer:
    """Computes attribution maps for batches of images.

    The map of an image depends on the model, the image, its sample id and the seed, not on the batch it is in. The
    model is used in evaluation mode and left exactly as it was, also after an exception.

    Args:
        model: Returns logits `[N, classes]` (before softmax) for images `[N, C, H, W]`. Use `Normalized` to explain
            in the units of the image.
        estimators: Names as in `roarfast.explain.GRAMMAR`, and `Estimator` records or `External` functions.
        options: Steps, noise, conventions; `Options.paper()` for those of the code of Song et al.
        target: The class whose logit is explained: `"predicted"` (for the clean image), `"label"`, or a class.
        aggregate: How channels become one value, as in `"mean(abs)"`; `"none(raw)"` gives per-channel maps. An estimator
            may have its own: `"grad@mean(raw)"` beside `"grad"` costs no other pass.
        batch_size: Rows that go through the model at a time, noisy copies and path steps included. Halved when a
            CUDA device runs out of memory.
        seed: Of the noise and of the random baselines.

    Example:
        >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        >>> explainer = Explainer(net, ["grad", "gi^2", "sg-sq(ig)"], batch_size=32)
        >>> maps = explainer(torch.rand(2, 3, 8, 8))
        >>> {name: tuple(a.shape) for name, a in maps.items()}
        {'grad': (2, 8, 8), 'gi^2': (2, 8, 8), 'sg-sq(ig)': (2, 8, 8)}
    """

    @renamed(aggregation="aggregate=")
    def __init__(
        self,
        model: nn.Module,
        estimators: Estimators,
        *,
        options: Options | None = None,
        target: str | int = "predicted",
        aggregate: str | Aggregation = "mean(abs)",
        batch_size: int = 64,
        seed: int = 0,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        listed = [estimators] if isinstance(estimators, (str, Name, Estimator)) else list(estimators)
        self.own = {check_custom(e.name): e for e in listed if isinstance(e, Estimator)}
        # Given as an object, a user's estimator is meant itself; given also in a name ("mine^2"), in that form too.
        self.names = parse_all([e.name if isinstance(e, Estimator) else e for e in listed], self.own)
        if isinstance(target, bool) or not (isinstance(target, int) or target in ("predicted", "label")):
            raise ValueError(f"target must be 'predicted', 'label' or a class number, got {target!r}")
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size must be an integer >= 1, got {batch_size!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise ValueError(f"seed must be an integer in [0, 2^63), got {seed!r}")
        self.model = model
        self.options = options or Options()
        self.target = target
        self.aggregation = Aggregation.parse(aggregate)
        self.batch_size = batch_size
        self.seed = seed
        self.plan = Plan(self.names, self.options, target == "predicted", self.own)
        self._layer: tuple[str, nn.Module] | None = None
        self._spent = {PASSES: 0.0}  # one for all subsets
        # Convolutions are 1.2 to 1.4 times faster in it on CPUs, and tensor cores want it.
        self._format = torch.channels_last

    @property
    def pass_seconds(self) -> float:
        """Seconds that forward and backward passes of the model took so far, in all calls, also of subsets.

        Not in it: noise, moments, aggregation, moving data. An estimator with passes of its own counts as passes as a whole.
        """
        return self._spent[PASSES]

    def subset(self, names: Sequence[str | Name]) -> Explainer:
        """The same explainer for some of its estimators."""
        wanted = parse_all(names, self.own)
        missing = [str(n) for n in wanted if n not in self.names]
        if missing:
            raise ValueError(f"names must be among this explainer's estimators, got {', '.join(missing)}")
        if wanted == self.names:
            return self
        twin = Explainer.__new__(Explainer)
        twin.__dict__.update(self.__dict__)
        twin.names = wanted
        twin.plan = Plan(wanted, self.options, self.target == "predicted", self.own)
        return twin

    def __call__(
        self,
        x: Tensor,
        index: Ids | None = None,
        labels: Ids | None = None,
        *,
        out_device: torch.device | str | None = None,
    ) -> dict[str, Tensor]:
        """Maps for images.

        Args:
            x: Floating-point images `[N, C, H, W]`, as the model takes them; any number. Batches are moved to the
                device and dtype of the model.
            index: Sample ids int64 `[N]`, which key the noise; 0, 1, 2, … by default.
            labels: True classes `[N]`, for `target="label"`.
            out_device: Where the maps go; by default where `x` is.

        Returns:
            Maps `[N, H, W]` (`[N, C, H, W]` under aggregation `none`) by canonical name, in the order asked for.
        """
        x, index, labels = self._check(x, index, labels)
        place = torch.device(out_device) if out_device is not None else x.device
        parts: dict[str, list[Tensor]] = {str(name): [] for name in self.names}
        with frozen(self.model):
            start = 0
            while start < len(x):
                stop = min(start + self.batch_size, len(x))
                try:
                    maps = self._batch(x[start:stop], index[start:stop], None if labels is None else labels[start:stop])
                except RuntimeError as error:
                    self._adapt(error)
                    continue
                for name, a in maps.items():
                    parts[name].append(a.to(place))
                start = stop
        if not len(x):
            return {str(name): x.new_empty((0, *self.map_shape(name, x)), device=place) for name in self.names}
        return {name: torch.cat(a) for name, a in parts.items()}

    def aggregation_of(self, name: Name) -> Aggregation:
        """How the channels of one of the estimators become one value."""
        return self.aggregation if name.aggregate is None else Aggregation.parse(name.aggregate)

    def map_shape(self, name: Name, x: Tensor) -> tuple[int, ...]:
        """The shape of a map for images `[N, C, H, W]`."""
        if self.aggregation_of(name).reduce != "none":
            return tuple(x.shape[2:])
        return (1 if self.plan.records[name.base].one_channel else x.shape[1], *x.shape[2:])

    def _adapt(self, error: RuntimeError) -> None:
        """Changes what an error asks for; raises it if that is nothing."""
        if isinstance(error, torch.cuda.OutOfMemoryError) and self.batch_size > 1:
            self.batch_size //= 2
            torch.cuda.empty_cache()  # does nothing where CUDA is not in use
            message = f"out of CUDA memory: going on with batch_size={self.batch_size}"
            warnings.warn(message, ResourceWarning, stacklevel=3)
        elif "view size is not compatible" in str(error) and self._format is torch.channels_last:
            self._format = torch.contiguous_format  # the model calls .view() on its feature maps
        else:
            raise error

    def _batch(self, x: Tensor, index: Tensor, labels: Tensor | None) -> dict[str, Tensor]:
        parameter = next((p for p in self.model.parameters() if p.is_floating_point()), None)
        if parameter is not None:
            x = x.to(parameter.device, parameter.dtype)
            index = index.to(parameter.device)
        target = self._given_target(x, labels)
        passes = Passes(self.model, self.plan, self._cam_layer(x), self.seed, self.batch_size, self._format)
        values, target = passes.run(x, index, target)
        passes.watch.collect()
        self._spent[PASSES] += passes.watch.seconds[PASSES]
        result: dict[str, Tensor] = {}
        with torch.no_grad():
            for name in self.names:
                key = (name.ensemble, name.base)
                if key not in values:
                    values[key] = self._other(name.base, x, index, target)
                value = values[key].detach()
                value = value.float() if value.dtype in (torch.float16, torch.bfloat16) else value
                result[str(name)] = self.aggregation_of(name)(value.square() if name.squared else value)
        return result

    def _other(self, base: str, x: Tensor, index: Tensor, target: Tensor | None) -> Tensor:
        estimator = self.plan.records[base]
        if estimator.of_image is not None:
            return estimator.checked(estimator.of_image(x, index, self.seed, self.options), x)
        if target is None:
            raise RuntimeError(f"estimator {base!r} needs the target class")
        seed = (self.seed * 0x9E3779B97F4A7C15 + int(index[0])) % 2**63
        watch = Stopwatch(x.device, (PASSES,))
        watch.start()
        value = estimator(self.model, x, target, seed, self.options)
        watch.lap(PASSES)
        watch.collect()
        self._spent[PASSES] += watch.seconds[PASSES]
        return value

    def _given_target(self, x: Tensor, labels: Tensor | None) -> Tensor | None:
        if self.target == "predicted":
            return None
        if self.target == "label":
            return None if labels is None else labels.to(x.device)
        return torch.full((len(x),), int(self.target), dtype=torch.int64, device=x.device)

    def _cam_layer(self, x: Tensor) -> tuple[str, nn.Module] | None:
        if not any(record.at_layer for record in self.plan.records.values()):
            return None
        if self._layer is None:
            self._layer = find_layer(self.model, self.options.gc_layer, x[:1].clone(), tokens=True)
        return self._layer

    def _check(self, x: object, index: Ids | None, labels: Ids | None) -> tuple[Tensor, Tensor, Tensor | None]:
        if not isinstance(x, Tensor):
            raise TypeError(f"x must be a torch tensor, got {type(x).__name__}")
        if x.ndim != 4:
            raise ValueError(f"x must be images [N, C, H, W], got shape {tuple(x.shape)}")
        if not x.is_floating_point():
            raise TypeError(f"x must be floating-point images as the model takes them, got {x.dtype}")
        index = torch.arange(len(x)) if index is None else _ids("index", index)
        if index.shape != (len(x),):
            raise ValueError(f"index must have one sample id per image, [{len(x)}], got shape {tuple(index.shape)}")
        if self.target != "label":
            return x, index, None
        if labels is None:
            raise ValueError("labels must be given for target='label'")
        labels = _ids("labels", labels)
        if labels.shape != (len(x),):
            raise ValueError(f"labels must have one class per image, [{len(x)}], got shape {tuple(labels.shape)}")
        return x, index, labels


def _ids(name: str, values: Ids) -> Tensor:
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(np.asarray(values))
    if tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, got {tensor.dtype}")
    return tensor.to(torch.int64)


def explain(
    model: nn.Module,
    x: Tensor,
    estimators: Estimators,
    *,
    index: Ids | None = None,
    labels: Ids | None = None,
    **settings: Unpack[Settings],
) -> dict[str, Tensor]:
    """Maps of several estimators for images `[N, C, H, W]`; `settings` are those of `Explainer`.

    Example:
        >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
        >>> maps = explain(net, torch.rand(5, 3, 2, 2), ["grad", "rand"])
        >>> maps["grad"].shape
        torch.Size([5, 2, 2])
    """
    return Explainer(model, estimators, **settings)(x, index, labels)
