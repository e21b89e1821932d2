"""The public operations: NumPy arrays or torch tensors in, the same out. One module per op."""

import sys

from roarfast.ops._op import register_torch
from roarfast.ops.aggregate_channels import aggregate_channels
from roarfast.ops.block_random import block_random
from roarfast.ops.code_sums import code_sums
from roarfast.ops.distance_transform import distance_transform
from roarfast.ops.fill import blur_fill, fill, noise_fill
from roarfast.ops.gather_batch import gather_batch
from roarfast.ops.gaussian_filter import gaussian_filter
from roarfast.ops.impute_linear import ImputeInfo, impute_linear
from roarfast.ops.mask_geometry import mask_geometry
from roarfast.ops.maximum_filter import maximum_filter
from roarfast.ops.percentile import percentile
from roarfast.ops.philox_normal import philox_normal
from roarfast.ops.pixel_random import pixel_random
from roarfast.ops.rank_codes import rank_codes
from roarfast.ops.removal_mask import removal_mask
from roarfast.ops.remove import remove
from roarfast.ops.removed_fraction import removed_fraction
from roarfast.ops.sobel import sobel
from roarfast.ops.total_variation import total_variation

__all__ = [
    "ImputeInfo",
    "aggregate_channels",
    "block_random",
    "blur_fill",
    "code_sums",
    "distance_transform",
    "fill",
    "gather_batch",
    "gaussian_filter",
    "impute_linear",
    "mask_geometry",
    "maximum_filter",
    "noise_fill",
    "percentile",
    "philox_normal",
    "pixel_random",
    "rank_codes",
    "register_torch",
    "removal_mask",
    "remove",
    "removed_fraction",
    "sobel",
    "total_variation",
]

if sys.modules.get("torch") is not None:
    register_torch()
