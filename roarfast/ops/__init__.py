"""The public operations: NumPy arrays or torch tensors in, the same out. One module per op."""

import sys

from roarfast.ops._op import register_torch
from roarfast.ops.gather_batch import gather_batch
from roarfast.ops.gaussian_filter import gaussian_filter
from roarfast.ops.impute_dataset import impute_dataset
from roarfast.ops.impute_linear import ImputeInfo, impute_linear
from roarfast.ops.maximum_filter import maximum_filter
from roarfast.ops.philox_normal import philox_normal
from roarfast.ops.sobel import sobel
from roarfast.ops.total_variation import total_variation

__all__ = [
    "ImputeInfo",
    "gather_batch",
    "gaussian_filter",
    "impute_dataset",
    "impute_linear",
    "maximum_filter",
    "philox_normal",
    "register_torch",
    "sobel",
    "total_variation",
]

if sys.modules.get("torch") is not None:
    register_torch()
