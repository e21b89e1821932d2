"""Sanity checks (Adebayo et al.): an explanation of a model must change when the model does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from roarfast._types import Array
from roarfast.metrics.baselines import spearman
from roarfast.metrics.resampling import bootstrap, weighted_mean

Floats = npt.NDArray[np.float64]
ORDERS = ("top_down", "independent")
ModuleT = TypeVar("ModuleT", bound=nn.Module)


@dataclass(frozen=True)
class Randomization:
    """How similar maps stay when layers lose what they learnt.

    Attributes:
        layers: The layers, in the order in which they were randomised.
        similarity: float64 `[L]`, mean over images of Spearman's correlation with the original maps.
        low: Lower ends of the 95 % intervals over images.
        high: Upper ends.
        per_image: float64 `[L, N]`.
        order: `"top_down"` or `"independent"`.
    """

    layers: tuple[str, ...]
    similarity: Floats
    low: Floats
    high: Floats
    per_image: Floats
    order: str

    def __str__(self) -> str:
        width = max([5, *(len(name) for name in self.layers)])
        head = f"{'layer'.ljust(width)}  similarity  95 % interval   ({self.order})"
        rows = [
            f"{name.ljust(width)}  {s:10.3f}  [{a:.3f}, {b:.3f}]"
            for name, s, a, b in zip(self.layers, self.similarity, self.low, self.high)
        ]
        return "\n".join([head, *rows])


def parameter_randomization(
    model: ModuleT,
    images: Tensor,
    explain: Callable[[ModuleT, Tensor], Array | Mapping[str, Array]],
    *,
    order: str = "top_down",
    absolute: bool = True,
    seed: int = 0,
    resamples: int = 1000,
) -> Randomization:
    """Maps of a model whose layers are re-initialised: from the output down, or each one alone.

    A faithful estimator's maps lose their similarity as soon as the last layers are random; an edge detector's keep it.

    Args:
        model: Left as it is; a copy is randomised.
        images: What `explain` takes.
        explain: `explain(model, images)` returns maps `[N, H, W]` or attributions `[N, C, H, W]`.
        order: `"top_down"`: cumulatively, the last layer first; `"independent"`: one layer at a time.
        absolute: Compare absolute values, as signs may flip without meaning.
        seed: Of the random weights.
        resamples: Of the images, for the intervals.

    Returns:
        The similarity after each layer.

    Example:
        >>> net = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
        >>> edges = lambda model, x: x[:, 0]
        >>> float(parameter_randomization(net, torch.rand(4, 1, 4, 4), edges).similarity[0])
        1.0
    """
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {order!r}")
    layers = [name for name, module in model.named_modules() if _can_reset(module)]
    if not layers:
        raise ValueError("model has no layer with reset_parameters: nothing can be randomised")
    original = _maps(explain(model, images), absolute)
    changed = copy.deepcopy(model)
    values = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name in reversed(layers):
            if order == "independent":
                changed = copy.deepcopy(model)
            changed.get_submodule(name).reset_parameters()  # type: ignore[operator]
            values.append(spearman(original, _maps(explain(changed, images), absolute)))
    per_image = np.stack(values)
    found = bootstrap(weighted_mean(per_image), per_image.shape[1], resamples, seed)
    low, high = found.interval()
    return Randomization(tuple(reversed(layers)), found.value, low, high, per_image, order)


def untrained(model: ModuleT, seed: int = 0) -> ModuleT:
    """A copy of a model whose layers are initialised anew: it has learnt nothing.

    Example:
        >>> net = nn.Linear(2, 2)
        >>> bool((untrained(net).weight != net.weight).all())
        True
    """
    fresh = copy.deepcopy(model)
    layers = [module for module in fresh.modules() if _can_reset(module)]
    if not layers:
        raise ValueError("model has no layer with reset_parameters: it cannot be made untrained")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in layers:
            layer.reset_parameters()  # type: ignore[operator]
    return fresh


def _can_reset(module: nn.Module) -> bool:
    own = any(True for _ in module.parameters(recurse=False))
    return own and callable(getattr(module, "reset_parameters", None))


def _maps(found: Array | Mapping[str, Array], absolute: bool) -> Floats:
    if isinstance(found, Mapping):
        if len(found) != 1:
            raise ValueError(f"explain must return one set of maps, got {len(found)}: {', '.join(map(str, found))}")
        found = next(iter(found.values()))
    a = np.asarray(found.detach().cpu() if isinstance(found, Tensor) else found, np.float64)
    a = a.sum(1) if a.ndim == 4 else a
    return np.abs(a) if absolute else a
