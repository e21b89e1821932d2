"""percentile: np.percentile and torch.quantile, one and nine q."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import Case, size_name
from bench_removal_mask import maps

import roarfast as rf

Q = [10.0 * j for j in range(1, 10)]


def case(n: int, size: int, name: str, with_torch: bool) -> Case:
    a = maps(name, n, size)
    rows = a.reshape(n, -1)
    tensor, fractions = torch.from_numpy(rows), torch.tensor(Q) / 100
    rivals = {"numpy": lambda: np.percentile(rows, Q, axis=1).T}
    if with_torch:
        rivals["torch.quantile"] = lambda: torch.quantile(tensor, fractions, dim=1).T.numpy()
    return Case("percentile", f"{size_name(a)}, {name}, 9 q", lambda: rf.percentile(a, Q), rivals)


def cases(quick: bool) -> Iterator[Case]:
    if quick:
        yield case(8, 224, "uniform", True)
        return
    yield case(256, 224, "uniform", True)
    yield case(256, 224, "heavy-tailed", False)
    yield case(256, 32, "uniform", True)
