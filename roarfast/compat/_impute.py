"""ROAD's imputation with the noise of another package: solve here without noise, then add theirs in their order."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from roarfast import _backend
from roarfast._types import Numpy
from roarfast.compat import _random
from roarfast.compat._options import Options
from roarfast.compat._status import Outside, require
from roarfast.ops import _check as check
from roarfast.ops.impute_linear import ROAD_WEIGHTS, impute_linear

if TYPE_CHECKING:
    import torch

EitherT = TypeVar("EitherT", Numpy, "torch.Tensor")
"""One library for all arrays of a call."""

Weighting: TypeAlias = Sequence[tuple[tuple[int, int], float]]
"""((dy, dx), weight) of neighbours."""

Weights: TypeAlias = npt.NDArray[np.float64] | None
"""3×3; None for ROAD's."""

# road_evaluation's list of (offset, weight), which grad-cam and Quantus share: equal, in its order.
NEIGHBORS_WEIGHTS: list[tuple[tuple[int, int], float]] = [
    ((dy, dx), ROAD_WEIGHTS[dy + 1][dx + 1])
    for dy, dx in ((1, 1), (0, 1), (-1, 1), (1, -1), (0, -1), (-1, -1), (1, 0), (-1, 0))
]

# Sample ids of images that come without one, for Philox noise: no two in a process share their noise.
_ids = itertools.count()


def sample_ids(n: int) -> list[int]:
    """The next `n` ids. Those of a DataLoader's workers start apart: forked ones would go on from the same id."""
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data else None
    first = 0 if worker is None else (worker.seed % (2**31 - 1) + 1) << 32
    return [first + next(_ids) for _ in range(n)]


def weights_3x3(weighting: Weighting) -> Weights:
    """The 3×3 weights of a list of (offset, weight); None for ROAD's own.

    Raises:
        ValueError: If an offset is not a neighbour, or the weights are not point-symmetric.
    """
    weights = np.zeros((3, 3))
    for (dy, dx), weight in weighting:
        if max(abs(dy), abs(dx)) != 1:
            raise ValueError(f"weighting must be of the eight neighbours, got the offset {(dy, dx)}")
        weights[dy + 1, dx + 1] += weight
    if not np.allclose(weights, weights[::-1, ::-1], rtol=1e-12, atol=0):
        raise ValueError(f"weighting must be point-symmetric, got {weights.tolist()}")
    return None if np.allclose(weights, ROAD_WEIGHTS, rtol=1e-12) else weights


def solve(
    x: EitherT,
    removed: EitherT,
    options: Options,
    weights: Weights = None,
    noise: float = 0.0,
    ids: npt.NDArray[np.int64] | None = None,
) -> EitherT:
    """Imputes images `[..., C, H, W]`, with Philox noise or none; float16 in float32, uint8 as float32.

    Raises:
        Outside: If a known pixel is NaN or infinite: the peers' sparse solvers spread it.
    """
    dtype = check.dtype_name(x)
    if dtype in ("float16", "bfloat16"):
        x = x.astype(np.float32) if isinstance(x, np.ndarray) else x.float()
    try:
        return impute_linear(
            x, removed, noise, options.seed, ids, options.tol_for(dtype), weights=weights, empty_value=0.0
        )
    except ValueError as error:
        if "finite at known pixels" in str(error):
            raise Outside("NaN or infinity in a known pixel") from None
        raise


def removed_of(mask: torch.Tensor) -> torch.Tensor:
    """Where a mask of the peers, 0 = removed, is 0; they leave values in (0, 0.5] neither known nor removed."""
    import torch

    between = "a mask with values between 0 and 1"
    if mask.device.type == "cpu" and mask.dtype in (torch.float32, torch.float64):
        kept = np.ascontiguousarray(mask.detach().numpy())
        removed = np.empty(kept.shape, np.bool_)
        read = getattr(_backend.cpu(), f"removed_pixels_{check.dtype_name(kept)}")
        require(read(kept, removed, kept.size) >= 0, between)
        return torch.from_numpy(removed)
    gone = mask == 0
    if mask.dtype not in (torch.bool, torch.uint8):
        require(bool((gone | (mask > 0.5)).all()), between)
    return gone


def check_image(image: torch.Tensor, mask: torch.Tensor) -> None:
    """`Outside` unless these are an image [C, H, W] and a mask [H, W] of torch, on one device."""
    import torch

    require(isinstance(image, torch.Tensor) and isinstance(mask, torch.Tensor), "an argument that is no tensor")
    require(image.ndim == 3 and tuple(mask.shape) == tuple(image.shape[1:]), "an image that is not [C, H, W]")
    require(image.numel() > 0, "an image without pixels")
    require(image.device == mask.device, "image and mask on two devices")
    known = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.uint8)
    require(image.dtype in known, f"an image of dtype {image.dtype}")


def check_batch(images: torch.Tensor, masks: torch.Tensor) -> None:
    """`Outside` unless these are images [B, C, H, W] and masks [B, H, W] of torch, on one device."""
    four = getattr(images, "ndim", 0) == 4 and getattr(masks, "ndim", 0) == 3
    require(four and len(images) == len(masks) > 0, "other shapes than [B, C, H, W] and [B, H, W]")
    check_image(images[0], masks[0])


def add_torch_noise(solved: EitherT, removed: EitherT, noise: float, dtype: torch.dtype | None = None) -> None:
    """Adds noise as road_evaluation and grad-cam draw it: torch.randn(C, n) per image, pixels in raster order, on the CPU.

    Args:
        solved: `[B, C, H, W]`, float32 or float64, changed in place: NumPy, or torch on another device.
        removed: bool `[B, H, W]`, likewise.
        noise: Its standard deviation.
        dtype: In which it is drawn; default torch's. Other dtypes take other random numbers.
    """
    import torch

    channels = solved.shape[1]
    if isinstance(removed, np.ndarray):
        counts = [int(np.count_nonzero(g)) for g in removed]
    else:
        counts = removed.flatten(1).sum(1).tolist()
    # Drawn even for noise 0, as theirs is: the generator must be left in the same state.
    sizes = [channels * n for n in counts]
    drawn: Numpy | None = _random.torch_normals(sizes, dtype)
    if drawn is None:
        parts = [torch.randn(n, dtype=dtype) for n in sizes]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts)
        drawn = (whole if whole.dtype == torch.float64 else whole.float()).numpy()
    if noise == 0 or not any(sizes):
        return
    if isinstance(solved, np.ndarray) and drawn.dtype == np.float32:
        add = getattr(_backend.cpu(), f"add_in_order_{check.dtype_name(solved)}")
        add(solved, removed, drawn, noise, len(solved), channels, removed[0].size)
    elif isinstance(solved, np.ndarray):
        solved[np.broadcast_to(removed[:, None], solved.shape)] += noise * drawn
    else:
        spread = torch.zeros_like(solved).masked_scatter_(
            removed[:, None].expand_as(solved), torch.from_numpy(drawn).to(solved)
        )
        solved.add_(spread, alpha=noise)


def impute_torch(
    images: torch.Tensor,
    removed: torch.Tensor,
    noise: float,
    options: Options,
    weights: Weights = None,
    ids: Sequence[int] | npt.NDArray[np.int64] | None = None,
    noise_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Images `[B, C, H, W]` with one solve for all of them and the noise of each in turn.

    Args:
        images: Of any dtype of `impute_linear`.
        removed: bool `[B, H, W]`.
        noise: Standard deviation.
        options: `noise="peer"` draws as road_evaluation and grad-cam do.
        weights: 3×3, or None for ROAD's.
        ids: Sample ids for Philox noise; by default every image gets a new one.
        noise_dtype: Of `add_torch_noise`.

    Returns:
        Of the dtype of `images`; uint8 is rounded.
    """
    import torch

    def imputed(x: EitherT, gone: EitherT) -> EitherT:
        if options.noise == "philox":
            chosen = sample_ids(len(x)) if ids is None else ids
            return solve(x, gone, options, weights, float(noise), np.asarray(chosen, np.int64))
        solved = solve(x, gone, options, weights)
        add_torch_noise(solved, gone, float(noise), noise_dtype)
        return solved

    if images.device.type == "cpu":
        # NumPy's way into the kernel is shorter than torch's dispatcher, which counts for small images.
        x = (images.float() if images.dtype == torch.bfloat16 else images).numpy()
        result = torch.from_numpy(imputed(x, np.ascontiguousarray(removed.numpy())))
    else:
        result = imputed(images, removed)
    if images.dtype == torch.uint8:
        result = result.round_().clamp_(0, 255)
    return result if result.dtype == images.dtype else result.to(images.dtype)
