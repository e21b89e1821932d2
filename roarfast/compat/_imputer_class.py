"""The class `NoisyLinearImputer` of road_evaluation: ours, and a fast `__call__` for theirs and for copies of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypedDict

import numpy as np

from roarfast.compat import _impute, _slots, _status
from roarfast.compat._options import Options

if TYPE_CHECKING:
    import torch


class PeerImputer(Protocol):
    """What is read of a `NoisyLinearImputer` of a peer, or of a copy; it may have a `weighting`."""

    noise: float


class WeightedImputer(PeerImputer, Protocol):
    """One that has it."""

    weighting: _impute.Weighting | None


ImputerCall: TypeAlias = "Callable[[PeerImputer, torch.Tensor, torch.Tensor], torch.Tensor]"
"""The `__call__(self, img, mask)` of one."""


class ImputerOptions(TypedDict, total=False):
    """The arguments of our `NoisyLinearImputer`."""

    noise: float
    weighting: _impute.Weighting | None
    mode: str
    noise_source: str
    tol: float | None
    seed: int


class NoisyLinearImputer:
    """ROAD's noisy linear imputation, as in road_evaluation and pytorch-grad-cam.

    Args:
        noise: Standard deviation of the noise on imputed pixels.
        weighting: A list of ((dy, dx), weight). The originals ignore it, and so does `mode="faithful"`, with a
            warning; `mode="fixed"` honours point-symmetric weights of the eight neighbours.
        mode: As in `roarfast.compat.patch`.
        noise_source: `"peer"` for torch's generator, in the original's order; `"philox"` for ours.
        tol: As in `patch`.
        seed: For `noise_source="philox"`.

    Example:
        >>> import torch
        >>> from roarfast.compat.grad_cam import NoisyLinearImputer
        >>> image, mask = torch.rand(3, 8, 8), torch.ones(8, 8)
        >>> mask[2:5, 2:5] = 0  # 0 = removed
        >>> NoisyLinearImputer(noise=0.01)(image, mask).shape
        torch.Size([3, 8, 8])
    """

    peer = "imputer"

    def __init__(
        self,
        noise: float = 0.01,
        weighting: _impute.Weighting | None = _impute.NEIGHBORS_WEIGHTS,
        *,
        mode: str = "faithful",
        noise_source: str = "peer",
        tol: float | None = None,
        seed: int = 0,
    ) -> None:
        self.noise = noise
        self.weighting = weighting
        self.options = Options(mode, noise_source, tol, seed)

    def __call__(self, img: torch.Tensor, mask: torch.Tensor, *, sample: int | None = None) -> torch.Tensor:
        """The image `[C, H, W]` with the pixels where `mask` `[H, W]` is 0 imputed.

        Args:
            img: The image.
            mask: 0 = removed, 1 = known.
            sample: Which sample this is, for `noise_source="philox"`: the same sample gets the same noise wherever it is
                imputed. Default: every call counts as a new one.
        """
        with _status.refusal("img must be a finite [C, H, W] tensor and mask [H, W] of 0 and 1"):
            _impute.check_image(img, mask)
            return self._imputed(img[None], mask[None], None if sample is None else [sample])[0]

    def batched_call(self, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Images `[B, C, H, W]` and masks `[B, H, W]`, all solved in one call."""
        with _status.refusal("img must be finite [B, C, H, W] and mask [B, H, W] of 0 and 1"):
            _impute.check_batch(img, mask)
            return self._imputed(img, mask, None)

    def _imputed(self, img: torch.Tensor, mask: torch.Tensor, ids: Sequence[int] | None) -> torch.Tensor:
        weights = chosen_weights(self.peer, self.weighting, self.options)
        result = _impute.impute_torch(img.detach(), _impute.removed_of(mask), self.noise, self.options, weights, ids)
        _status.fast(self.peer, "NoisyLinearImputer")
        return result


def chosen_weights(peer: str, weighting: _impute.Weighting | None, options: Options) -> _impute.Weights:
    """3×3 weights, or None for ROAD's: what the originals always take."""
    if weighting is None or weighting is _impute.NEIGHBORS_WEIGHTS or list(weighting) == _impute.NEIGHBORS_WEIGHTS:
        return None
    if options.fixed:
        return _impute.weights_3x3(weighting)
    _status.warn_once(peer, 'weighting is ignored, as the original ignores it; mode="fixed" honours it')
    return None


def fast_call(trial: Trial, peer: str, options: Options) -> ImputerCall:
    """A `__call__(self, img, mask)` for a class.

    Args:
        trial: Of the class; its original takes calls outside the domain.
        peer: For `status()`.
        options: Those of the patch.
    """

    def __call__(self: PeerImputer, img: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        try:
            _impute.check_image(img, mask)
            trial.require(self)
            weights = chosen_weights(peer, getattr(self, "weighting", None), options)
            removed = _impute.removed_of(mask)[None]
            result = _impute.impute_torch(img.detach()[None], removed, float(self.noise), options, weights)[0]
        except _status.Outside as outside:
            _status.passed_on(peer, "NoisyLinearImputer", str(outside))
            return trial.original(self, img, mask)
        _status.fast(peer, "NoisyLinearImputer")
        return result

    return __call__


class Trial:
    """Whether instances of a class give road_evaluation's numbers, noise included; tried once per kind.

    Args:
        original: The `__call__(self, img, mask)` of the class.
        options: Those of the patch.
        tested: Whether the class is known to: then nothing is tried.
    """

    def __init__(self, original: ImputerCall, options: Options, tested: bool = False) -> None:
        self.original = original
        self.tested = tested
        self.tol = Options(tol=options.tol)
        self.known: dict[tuple[type, object, str], bool] = {}
        self.lock = threading.Lock()

    def require(self, instance: PeerImputer) -> None:
        """`Outside` unless this instance gives those numbers on a small image."""
        _status.require(self.tested or self._agrees(instance), "other numbers than road_evaluation on a trial image")

    def _agrees(self, instance: PeerImputer) -> bool:
        key = (type(instance), getattr(instance, "noise", None), repr(getattr(instance, "weighting", None)))
        with self.lock:
            if key not in self.known:
                self.known[key] = self._try(instance)
            return self.known[key]

    def _try(self, instance: PeerImputer) -> bool:
        import torch

        generator = torch.Generator().manual_seed(0)
        image = torch.rand((3, 9, 11), generator=generator)
        mask = (torch.rand((9, 11), generator=generator) < 0.5).float()
        numpy_state = np.random.get_state()  # noqa: NPY002 - the copy may draw from it
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                theirs = self.original(instance, image.clone(), mask.clone())
                state = torch.random.get_rng_state()
                torch.manual_seed(1)
                ours = _impute.impute_torch(image[None], mask[None] == 0, float(instance.noise), self.tol)[0]
                same_state = bool(torch.equal(state, torch.random.get_rng_state()))
            return same_state and bool(torch.allclose(theirs, ours, rtol=0, atol=5e-5))
        except Exception:  # whatever a class we know nothing of may raise: it is not ours to take over
            return False
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002


def targets(cls: type, name: str, options: Options) -> list[_slots.Target]:
    """What `patch(SomeClass)` replaces."""
    if not hasattr(cls, "setup_sparse_system") or "__call__" not in dir(cls):
        raise TypeError(
            f"{name} is no copy of road_evaluation's NoisyLinearImputer: it needs setup_sparse_system and __call__"
        )
    trial = Trial(_slots.original(cls, "__call__"), options)
    return [_slots.Target(cls, "__call__", fast_call(trial, name, options))]
