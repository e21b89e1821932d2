"""Batches of (sample, rate) pairs: the samples with pixels removed at their rate, as a model takes them."""

from __future__ import annotations

import torch
from torch import Tensor

import roarfast as rf
from roarfast.metrics.inputs import Inputs
from roarfast.metrics.perturbation import IMAGE_FILLS, Perturbation
from roarfast.ops.impute_linear import solve

WHOLE, EMPTY = -1, 255  # rate indices at which nothing goes, and everything


class Perturber:
    """Makes batches of perturbed samples on a device.

    Args:
        inputs: The samples.
        codes: uint8 `[N, H, W]` rank codes.
        perturbation: What removal means.
        seed: Of the noise.
        ids: int64 `[N]`: what the noise is keyed by.
        device: Where the batches go.
        dtype: Of the batches: what the model computes in.
        filled: Like `inputs.pixels`: what removed pixels become, in place of the perturbation's fill.
    """

    def __init__(
        self,
        inputs: Inputs,
        codes: Tensor,
        perturbation: Perturbation,
        seed: int,
        ids: Tensor,
        device: torch.device,
        dtype: torch.dtype,
        filled: Tensor | None = None,
    ) -> None:
        fill = perturbation.fill
        if fill in IMAGE_FILLS and inputs.kind != "images":
            raise ValueError(
                f"fill={fill!r} needs images: {inputs.kind} have no neighbours to take values from, nor grey levels; "
                "use 'dataset_mean', 'zero', 'noise' or a number"
            )
        if isinstance(fill, tuple) and len(fill) not in (1, inputs.channels):
            raise ValueError(f"fill must be one number or one per channel ({inputs.channels}), got {len(fill)}")
        if isinstance(fill, tuple) and inputs.kind == "images" and not all(0 <= v <= 255 for v in fill):
            raise ValueError(f"fill must be in 0..255 for images, got {fill}")
        if filled is not None and (filled.dtype != inputs.pixels.dtype or filled.shape != inputs.pixels.shape):
            raise ValueError(
                f"filled must be {inputs.pixels.dtype} {tuple(inputs.pixels.shape)} like the images, "
                f"got {filled.dtype} {tuple(filled.shape)}"
            )
        self.inputs, self.codes, self.how, self.filled = inputs, codes, perturbation, filled
        self.seed, self.ids, self.device, self.dtype = seed, ids, device, dtype

    def rows(self, sample: Tensor, rate: Tensor) -> Tensor:
        """The batch of pairs.

        Args:
            sample: int64 `[B]`, ascending: which samples.
            rate: int64 `[B]`: index of the drop rate of each, `WHOLE` or `EMPTY`.

        Returns:
            `[B, C, H, W]`, channels-last in memory, normalised.
        """
        first, last = int(sample[0]), int(sample[-1]) + 1
        pixels = self.inputs.pixels[first:last].to(self.device)
        codes = self.codes[first:last].to(self.device)
        local, ids = (sample - first).to(self.device), self.ids[first:last].to(self.device)
        rate = rate.to(self.device)
        if self.how.keep:  # removed is where codes > rate
            rate = torch.where(rate == WHOLE, EMPTY, torch.where(rate == EMPTY, WHOLE, rate))
        if self.filled is not None:
            filled = self.filled[first:last].to(self.device)
            if self.inputs.whole_numbers:
                return self._gather(pixels, local, codes, rate, imputed=filled)
            return self._normalise(torch.where(self._mask(codes[local], rate)[:, None], filled[local], pixels[local]))
        make = self._whole_numbers if self.inputs.whole_numbers else self._floats
        return make(pixels, codes, ids, local, rate)

    def _mask(self, rows: Tensor, rate: Tensor) -> Tensor:
        """What goes of rows of codes, each at its rate."""
        limit = rate.clamp(min=0).to(torch.uint8)[:, None, None]  # bytes with bytes
        mask = rows > limit if self.how.keep else rows <= limit
        mask[rate < 0] = self.how.keep  # WHOLE: no code is below it
        return mask

    def _constant(self) -> tuple[float, ...] | None:
        """The fill in 0..255 (images) or in units of the samples; None if it is no constant."""
        fill, inputs = self.how.fill, self.inputs
        scale = 255.0 if inputs.kind == "images" else 1.0
        if isinstance(fill, tuple):
            return fill if len(fill) == inputs.channels else fill * inputs.channels
        if fill == "zero":
            return (0.0,) * inputs.channels
        return tuple(scale * v for v in inputs.center) if fill == "dataset_mean" else None

    # 8-bit images

    def _whole_numbers(self, pixels: Tensor, codes: Tensor, ids: Tensor, local: Tensor, rate: Tensor) -> Tensor:
        fill = self.how.fill
        constant = self._constant()
        if constant is not None:
            return self._gather(pixels, local, codes, rate, fill=constant)
        if fill in ("image_mean", "blur", "noise"):  # the same replacement at every rate
            return self._gather(pixels, local, codes, rate, imputed=self._replacement(pixels, ids))
        near, rows = codes[local], pixels[local]
        mask = self._mask(near, rate)
        if fill == "kept_mean":
            rows = rf.fill(rows, mask, "kept_mean", layout="NHWC")
        else:
            imputed, _ = solve(
                rows,
                mask,
                255 * self.how.noise,
                self.seed,
                ids[local],
                self.how.tolerance,
                None,
                None,
                "gaussian",
                0.0,
                "NHWC",
                self.how.precision,
                None,
            )
            center = torch.tensor(self.inputs.center, device=rows.device).mul(255)
            if self.how.precision == "float16":
                imputed[rate == (WHOLE if self.how.keep else EMPTY)] = center.half()
                return self._gather(rows, torch.arange(len(rows), device=rows.device), near, rate, imputed=imputed)
            imputed[mask.flatten(1).all(1)] = center.round().to(torch.uint8)
            rows = imputed
        return self._gather(rows, torch.arange(len(rows), device=rows.device))

    def _replacement(self, pixels: Tensor, ids: Tensor) -> Tensor:
        everything = torch.ones(pixels.shape[:3], dtype=torch.bool, device=pixels.device)
        if self.how.fill == "image_mean":
            return rf.fill(pixels, everything, "image_mean", layout="NHWC", seed=self.seed, index=ids)
        if self.how.fill == "blur":
            return rf.fill(pixels, everything, "blur", layout="NHWC", sigma=self.how.blur, seed=self.seed, index=ids)
        mean = 255 * sum(self.inputs.center) / self.inputs.channels
        return rf.fill(
            pixels,
            everything,
            "noise",
            layout="NHWC",
            noise_mean=mean,
            noise_std=255 * self.inputs.spread,
            seed=self.seed,
            index=ids,
        )

    def _gather(
        self,
        pixels: Tensor,
        local: Tensor,
        codes: Tensor | None = None,
        rate: Tensor | None = None,
        fill: tuple[float, ...] | None = None,
        imputed: Tensor | None = None,
    ) -> Tensor:
        dtype = self.dtype if self.dtype in (torch.float32, torch.float16, torch.bfloat16) else torch.float32
        return rf.gather_batch(
            pixels,
            local,
            codes,
            rate,
            fill,
            keep=self.how.keep and codes is not None,
            imputed=imputed,
            mean=self.inputs.mean,
            std=self.inputs.std,
            layout="NHWC",
            out_layout="NHWC",
            dtype=dtype,
        ).to(self.dtype)

    # Floating point

    def _floats(self, pixels: Tensor, codes: Tensor, ids: Tensor, local: Tensor, rate: Tensor) -> Tensor:
        mask = self._mask(codes[local], rate)
        rows, fill = pixels[local], self.how.fill
        constant = self._constant()
        if self.inputs.each is not None and fill in ("dataset_mean", "noise"):
            rows = torch.where(mask[:, None], self._each(fill == "noise", ids)[local if fill == "noise" else 0], rows)
        elif constant is not None:
            scale = 255.0 if self.inputs.kind == "images" else 1.0
            rows = rf.fill(rows, mask, torch.tensor([v / scale for v in constant]))
        elif fill == "linear":
            rows = rf.impute_linear(rows, mask, self.how.noise, self.seed, ids[local], self.how.tolerance)
            empty = mask.flatten(1).all(1)
            rows[empty] = torch.tensor(self.inputs.center, device=rows.device)[:, None, None]
        elif fill == "noise":
            mean = sum(self.inputs.center) / self.inputs.channels
            rows = rf.fill(
                rows, mask, "noise", noise_mean=mean, noise_std=self.inputs.spread, seed=self.seed, index=ids[local]
            )
        else:
            rows = rf.fill(rows, mask, fill, sigma=self.how.blur)
        return self._normalise(rows)

    def _each(self, noisy: bool, ids: Tensor) -> Tensor:
        """Replacements `[1 or n, C, 1, T]` of series and features: the mean of each value, or noise of its spread."""
        assert self.inputs.each is not None
        mean, spread = (v.to(ids.device) for v in self.inputs.each)
        if not noisy:
            return mean[None]
        return mean + spread * rf.philox_normal(ids, tuple(mean.shape), self.seed, domain="noise_fill")

    def _normalise(self, rows: Tensor) -> Tensor:
        mean, std = (torch.tensor(v, device=rows.device)[:, None, None] for v in (self.inputs.mean, self.inputs.std))
        x = (rows - mean) / std if any(self.inputs.mean) or set(self.inputs.std) != {1.0} else rows
        return x.to(self.dtype, memory_format=torch.channels_last)
