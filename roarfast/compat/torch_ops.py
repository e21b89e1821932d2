"""`gaussian_blur` of torchvision, `gaussian_blur2d` of kornia and `torch.quantile`: same signatures, for maps without gradients.

Import swaps only. Where a gradient is wanted, or outside the domain, the call goes to the original and `status()` counts
it. torchvision convolves with a two-dimensional kernel, so its cost grows with the square of the kernel's size.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from roarfast._torchvision import import_torchvision
from roarfast._types import ArrayT
from roarfast.compat import _status
from roarfast.ops import gaussian_filter, percentile

if TYPE_CHECKING:
    import torch

NumberT = TypeVar("NumberT", int, float)

_BORDERS = {"reflect": "mirror", "replicate": "nearest", "circular": "wrap", "constant": "constant"}


def gaussian_blur(
    img: torch.Tensor, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None
) -> torch.Tensor:
    """`torchvision.transforms.functional.gaussian_blur` of float tensors `[..., H, W]`.

    Args:
        img: The images.
        kernel_size: Odd; one, or (width, height): torchvision's order.
        sigma: Standard deviation; one, or (along columns, along rows). Default: torchvision's, from the kernel's size.

    Example:
        >>> import torch
        >>> from roarfast.compat.torch_ops import gaussian_blur
        >>> gaussian_blur(torch.rand(3, 32, 32), 9).shape
        torch.Size([3, 32, 32])
    """

    def attempt() -> torch.Tensor:
        _check_tensor(img, 2)
        sizes = _pair(kernel_size, int, "kernel_size")
        _status.require(all(k % 2 == 1 and k > 0 for k in sizes), "an even kernel_size")
        sigmas = [0.15 * k + 0.35 for k in sizes] if sigma is None else _pair(sigma, float, "sigma")
        _status.require(all(s > 0 for s in sigmas), "a sigma that is not positive")
        return _blur(img, sizes[::-1], sigmas[::-1], "mirror")

    return _dispatch("torchvision", "gaussian_blur", attempt, _torchvision_blur, img, kernel_size, sigma)


def gaussian_blur2d(
    input: torch.Tensor,
    kernel_size: int | tuple[int, int],
    sigma: tuple[float, float] | torch.Tensor,
    border_type: str = "reflect",
    separable: bool = True,
) -> torch.Tensor:
    """`kornia.filters.gaussian_blur2d` of float tensors `[B, C, H, W]`.

    Args:
        input: The images.
        kernel_size: Odd; one, or (height, width).
        sigma: (along rows, along columns).
        border_type: `"reflect"`, `"replicate"`, `"circular"` or `"constant"`.
        separable: Without effect on the result.
    """

    def attempt() -> torch.Tensor:
        _check_tensor(input, 4)
        _status.require(input.ndim == 4, "an input that is not [B, C, H, W]")
        sizes = _pair(kernel_size, int, "kernel_size")
        _status.require(all(k % 2 == 1 and k > 0 for k in sizes), "an even kernel_size")
        sigmas = _pair(sigma, float, "sigma")
        _status.require(all(s > 0 for s in sigmas), "a sigma that is not positive")
        known = isinstance(border_type, str) and border_type.lower() in _BORDERS
        _status.require(known, "an unknown border_type")
        return _blur(input, sizes, sigmas, _BORDERS[border_type.lower()])

    return _dispatch(
        "kornia", "gaussian_blur2d", attempt, _kornia_blur, input, kernel_size, sigma, border_type, separable
    )


def quantile(
    input: torch.Tensor,
    q: float | torch.Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """`torch.quantile` with linear interpolation, in float64 between the two values; to 1e-6 of torch's.

    Args:
        input: float32 or float64. May have more than the 16 million values that torch allows.
        q: In [0, 1]; a number, or a tensor of one dimension.
        dim: The dimension to reduce; None: all.
        keepdim: Whether that dimension stays, with length 1.
        interpolation: Others than `"linear"` go to torch.
        out: Goes to torch.
    """
    import torch

    def attempt() -> torch.Tensor:
        _check_tensor(input, 1)
        _status.require(interpolation == "linear" and out is None, "another interpolation, or out=")
        values = q.detach().cpu().reshape(-1).tolist() if isinstance(q, torch.Tensor) else [float(q)]
        _status.require(not isinstance(q, torch.Tensor) or q.ndim <= 1, "q with more than one dimension")
        _status.require(len(values) > 0 and all(0 <= v <= 1 for v in values), "q outside [0, 1]")
        several = isinstance(q, torch.Tensor) and q.ndim == 1
        percents = [100 * v for v in values]
        if input.device.type == "cpu":
            # On CPUs by NumPy, whose small steps are quicker than torch's.
            a = input.detach().numpy()
            on_host = _percentiles(a.reshape(-1) if dim is None else np.moveaxis(a, dim, -1), percents)
            if not several and on_host.ndim == 1 and not keepdim:
                return torch.tensor(on_host[0], dtype=input.dtype)
            found = torch.from_numpy(on_host)
        else:
            found = _percentiles(input.reshape(-1) if dim is None else input.movedim(dim, -1), percents)
        found = found.to(input.dtype).movedim(-1, 0)
        if keepdim:
            found = found.reshape(-1, *[1] * input.ndim) if dim is None else found.unsqueeze(dim % input.ndim + 1)
        return found if several else found[0]

    def original() -> torch.Tensor:
        return torch.quantile(input, q, dim, keepdim, interpolation=interpolation, out=out)

    return _dispatch("torch", "quantile", attempt, original)


def _percentiles(rows: ArrayT, percents: Sequence[float]) -> ArrayT:
    try:
        return percentile(rows, percents, ndim=1)
    except ValueError as error:
        raise _status.Outside("NaN") from error


def _dispatch(
    peer: str,
    name: str,
    attempt: Callable[[], torch.Tensor],
    original: Callable[..., torch.Tensor],
    *args: object,
) -> torch.Tensor:
    try:
        result = attempt()
    except _status.Outside as outside:
        _status.passed_on(peer, name, str(outside))
        return original(*args)
    _status.fast(peer, name)
    return result


def _torchvision_blur(*args: object) -> torch.Tensor:
    return import_torchvision("transforms.functional").gaussian_blur(*args)


def _kornia_blur(*args: object) -> torch.Tensor:
    return importlib.import_module("kornia.filters").gaussian_blur2d(*args)


def _check_tensor(a: torch.Tensor, ndim: int) -> None:
    import torch

    if not isinstance(a, torch.Tensor):
        raise _status.Outside(f"an input of type {type(a).__name__}")
    if a.dtype not in (torch.float32, torch.float64):  # the text is made only where it is needed
        raise _status.Outside(f"an input of dtype {a.dtype}")
    _status.require(a.ndim >= ndim and a.numel() > 0, "an input with too few dimensions, or without values")
    _status.require(not (torch.is_grad_enabled() and a.requires_grad), "a gradient is wanted")


def _pair(value: object, kind: type[NumberT], name: str) -> list[NumberT]:
    values: list[object] = list(value) if isinstance(value, (list, tuple)) else [value, value]
    _status.require(len(values) == 2, f"{name} of another length than 2")
    allowed = (int,) if kind is int else (int, float)
    found = [kind(v) for v in values if isinstance(v, allowed) and not isinstance(v, bool)]
    _status.require(len(found) == len(values), f"{name} of another type")
    return found


def _blur(a: torch.Tensor, sizes: Sequence[int], sigmas: Sequence[float], mode: str) -> torch.Tensor:
    radii = [(k - 1) // 2 for k in sizes]
    if mode == "mirror":
        _status.require(all(r < n for r, n in zip(radii, a.shape[-2:])), "a kernel larger than torch can reflect")
    elif mode == "wrap":
        _status.require(all(r <= n for r, n in zip(radii, a.shape[-2:])), "a kernel larger than torch can wrap")
    return gaussian_filter(a, sigmas, mode, radius=radii)
