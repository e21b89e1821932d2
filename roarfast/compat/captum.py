"""A perturbation for `captum.metrics.infidelity`: pixels removed at random and imputed as ROAD does, instead of noise.

Infidelity asks how well attributions predict the change of the output under small changes of the input. Additive noise,
the usual choice, leaves the images' distribution; removal with imputation stays near it. captum need not be installed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from roarfast.compat import _status
from roarfast.compat._options import Options
from roarfast.ops import _check as check
from roarfast.ops import block_random, impute_linear, pixel_random, removal_mask

if TYPE_CHECKING:
    import torch

SHAPES = ("pixel", "block")


class RandomRemoval:
    """A `perturb_func` for `captum.metrics.infidelity`: random pixels or one random rectangle, imputed linearly.

    Args:
        drop: Share of pixels removed, in [0, 1].
        shape: `"pixel"` for pixels at random, `"block"` for one rectangle.
        noise: Standard deviation of the noise on imputed pixels.
        seed: Two objects with one seed draw the same masks and noise, in the order of their calls.
        tol: As in `impute_linear`.

    Calling it with images `[B, C, H, W]` gives captum's pair: the perturbations `x - x'`, and the perturbed images `x'`.
    Every row gets its own mask, so captum's repeated inputs are perturbed in `n_perturb_samples` different ways.

    Example:
        >>> import torch
        >>> from roarfast.compat.captum import RandomRemoval
        >>> images = torch.rand(4, 3, 16, 16)
        >>> perturbations, perturbed = RandomRemoval(drop=0.3)(images)
        >>> bool(torch.allclose(images - perturbations, perturbed, atol=1e-6))
        True
    """

    def __init__(
        self, drop: float = 0.1, shape: str = "pixel", noise: float = 0.01, seed: int = 0, tol: float | None = None
    ) -> None:
        self.drop = check.number("drop", drop, 0, 1, "rates are fractions, so 30 % is 0.3")
        check.one_of("shape", shape, SHAPES)
        self.shape = shape
        self.noise = check.number("noise", noise, low=0)
        self.options = Options(noise="philox", seed=seed, tol=tol)
        self._next_id = 0
        self._lock = threading.Lock()

    @overload
    def __call__(self, inputs: torch.Tensor, baselines: object = None) -> tuple[torch.Tensor, torch.Tensor]: ...

    @overload
    def __call__(
        self, inputs: tuple[torch.Tensor, ...], baselines: object = None
    ) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]: ...

    def __call__(
        self, inputs: torch.Tensor | tuple[torch.Tensor, ...], baselines: object = None
    ) -> tuple[torch.Tensor, torch.Tensor] | tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        """(perturbations, perturbed inputs), tuples if `inputs` is one; `baselines` are ignored."""
        if isinstance(inputs, tuple):
            pairs = [self._perturb(x) for x in inputs]
            return tuple(p for p, _ in pairs), tuple(x for _, x in pairs)
        return self._perturb(inputs)

    def _perturb(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        check.array("inputs", x, ("float16", "bfloat16", "float32", "float64"), 4, "[B, C, H, W]")
        ids = self._take_ids(len(x))
        size = (len(x), *x.shape[-2:])
        seed = self.options.seed
        if self.shape == "block":
            removed = block_random(size, self.drop, seed, ids, device=x.device)
        else:
            removed = removal_mask(pixel_random(size, seed, ids, device=x.device), self.drop)
        detached = x.detach()
        tol = self.options.tol_for(str(x.dtype).removeprefix("torch."))
        perturbed = impute_linear(detached, removed, self.noise, seed, np.asarray(ids), tol)
        _status.fast("captum", "RandomRemoval")
        return detached - perturbed, perturbed

    def _take_ids(self, n: int) -> Sequence[int]:
        with self._lock:
            first = self._next_id
            self._next_id += n
        return list(range(first, first + n))


__all__ = ["RandomRemoval"]
