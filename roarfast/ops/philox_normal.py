"""Standard normal numbers keyed by sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import A, Arrays, ArrayT
from roarfast.ops._op import define_op

if TYPE_CHECKING:
    import torch

# The values of rf::PhiloxDomain in csrc/common/philox.h.
_DOMAINS = {"noise_fill": 4, "impute_noise": 5, "augment": 6, "explain_noise": 8}


def philox_normal(
    index: ArrayT,
    shape: Sequence[int],
    seed: int = 0,
    draw: int = 0,
    domain: str = "explain_noise",
    *,
    out: ArrayT | None = None,
) -> ArrayT:
    """Standard normals that depend on (seed, sample id, draw) only, not on the batch, the device or the threads.

    Args:
        index: Sample ids int64 `[...]`; the result is of the same library and on the same device.
        shape: Shape of one sample's numbers, such as `(C, H, W)`.
        seed: The key, in [0, 2^63).
        draw: Number of the draw: 0, 1, 2, … give independent numbers.
        domain: What the numbers are for; other purposes get other numbers: `"explain_noise"`, `"noise_fill"`,
            `"impute_noise"` or `"augment"`.
        out: Where to write the result, float32 `[..., *shape]`.

    Returns:
        float32 `[..., *shape]`, the same bits on every backend.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> alone = rf.philox_normal(np.array([7]), (3, 32, 32), seed=1)
        >>> together = rf.philox_normal(np.array([5, 7]), (3, 32, 32), seed=1)
        >>> bool((alone[0] == together[1]).all())
        True
    """
    check.array("index", index, ("int64",))
    sizes = [check.integer("shape", size, low=0) for size in check.entries("shape", shape, "a sequence of sizes")]
    seed = check.integer("seed", seed, low=0, high=2**63 - 1)
    draw = check.integer("draw", draw, low=0)
    check.one_of("domain", domain, _DOMAINS)
    return _op(index, sizes, seed, draw, _DOMAINS[domain], out=out)


def _run(xp: Arrays[A], index: A, shape: Sequence[int], seed: int, draw: int, domain: int, out: A | None = None) -> A:
    check.operand(xp, "index", index, ("int64",), tuple(index.shape))
    if shape and min(shape) < 0:
        raise ValueError(f"shape must be >= 0, got {list(shape)}")
    index = xp.contiguous(index)
    result = xp.output(out, (*index.shape, *shape), "float32", index)
    n = math.prod(index.shape)
    xp.call(index, "philox_normal", index, result, n, math.prod(shape), seed, draw, domain)
    return xp.finish(result, out)


def _fake(index: torch.Tensor, shape: Sequence[int], seed: int, draw: int, domain: int) -> torch.Tensor:
    import torch

    return index.new_empty((*index.shape, *shape), dtype=torch.float32)


_op = define_op(
    "philox_normal", "(Tensor index, SymInt[] shape, int seed, int draw, int domain) -> Tensor", _run, _fake
)
