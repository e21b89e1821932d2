"""soco's imputation `ROAD`: its own masks, all images of a batch solved at once.

`patch("soco")` beside a clone. What is equal: docs/compat/soco.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from roarfast.compat import _impute, _slots, _status
from roarfast.compat._options import Options
from roarfast.compat._peers import Peer, Replaced

if TYPE_CHECKING:
    import torch


class _Road(Protocol):
    """What is read of soco's `ROAD`."""

    mask_ratio: float | None
    by_area: bool
    smap_mask_mode: str
    noise: float


def _load() -> Replaced:
    try:
        module = importlib.import_module("soco.imputations.road")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"soco cannot be imported ({error}): its folder must be on the path, and mmengine installed"
        ) from None
    return {"ROAD": module.ROAD}


def _targets(replaced: Replaced, options: Options) -> list[_slots.Target]:
    import torch

    road = replaced["ROAD"]
    module = importlib.import_module(road.__module__)
    original = _slots.original(road, "forward")

    def forward(self: _Road, img: torch.Tensor, smap: torch.Tensor) -> dict[str, torch.Tensor]:
        try:
            _status.require(isinstance(img, torch.Tensor) and img.ndim == 4, "images that are not [B, C, H, W]")
            _status.require(len(img) == len(smap) > 0 and self.mask_ratio is not None, "no mask ratio, or no images")
            _status.require(img.is_floating_point() and not img.requires_grad, "images that are not plain floats")
            _status.require(img.device.type == "cpu", "images on a GPU, whose order of random numbers is not known")
            _status.require(bool(torch.isfinite(img).all()), "NaN or infinity in an image")
            _impute.check_image(img[0], smap[0])
        except _status.Outside as outside:
            _status.passed_on("soco", "ROAD", str(outside))
            return original(self, img, smap)
        # Their masks: a random permutation and an unstable sort, which nothing else reproduces on ties. Those of the
        # whole batch come before any noise.
        by = module.get_road_mask_by_area if self.by_area else module.get_road_mask_by_value
        masks = torch.stack([by(s, self.mask_ratio, smap_mask_mode=self.smap_mask_mode) for s in smap])
        imputed = _impute.impute_torch(
            img, _impute.removed_of(masks), float(self.noise), options, noise_dtype=img.dtype
        )
        _status.fast("soco", "ROAD")
        return {"imputed_img": imputed, "mask": masks}

    return [_slots.Target(road, "forward", forward)]


PEER = Peer("soco", None, (), _load, _targets, {"ROAD": ("3bc2f822df71f895",)})
