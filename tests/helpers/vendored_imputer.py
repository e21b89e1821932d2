"""What projects carry copies of: a class with the interface of road_evaluation's imputer, by a sparse direct solve.

Written for these tests from ROAD's definition; the noise is drawn in the order that the golden files pin down.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import spsolve

from roarfast.compat._impute import NEIGHBORS_WEIGHTS


class NoisyLinearImputer:
    """As road_evaluation's: `weighting` is stored and ignored."""

    honours_weighting = False

    def __init__(self, noise=0.01, weighting=NEIGHBORS_WEIGHTS):
        self.noise = noise
        self.weighting = weighting

    @staticmethod
    def setup_sparse_system(mask, img, neighbors_weights):
        c, h, w = img.shape
        removed = np.argwhere(mask == 0)
        number = -np.ones((h, w), int)
        number[tuple(removed.T)] = np.arange(len(removed))
        rows, columns, values = [], [], []
        right = np.zeros((len(removed), c))
        for i, (y, x) in enumerate(removed):
            total = 0.0
            for (dy, dx), weight in neighbors_weights:
                if 0 <= y + dy < h and 0 <= x + dx < w:
                    total += weight
                    if number[y + dy, x + dx] >= 0:
                        rows.append(i), columns.append(number[y + dy, x + dx]), values.append(-weight)
                    else:
                        right[i] += weight * img[:, y + dy, x + dx]
            rows.append(i), columns.append(i), values.append(total)
        return sparse.csc_matrix((values, (rows, columns)), (len(removed),) * 2), right

    def __call__(self, img, mask):
        weighting = self.weighting if self.honours_weighting else NEIGHBORS_WEIGHTS
        system, right = self.setup_sparse_system(mask.numpy(), img.numpy(), weighting)
        filled = img.clone()
        solution = torch.from_numpy(spsolve(system, right).reshape(right.shape).T.astype(np.float32).copy())
        filled[:, mask == 0] = solution + self.noise * torch.randn(solution.shape)
        return filled


class Honest(NoisyLinearImputer):
    """One of the copies that honour `weighting`."""

    honours_weighting = True


class Shifted(NoisyLinearImputer):
    """A copy that does something else: never to be taken over."""

    def __call__(self, img, mask):
        return super().__call__(img, mask) + 0.1


class Broken(NoisyLinearImputer):
    """A copy that fails on the trial image."""

    def __call__(self, img, mask):
        if img.shape[0] == 3:
            raise OSError("no")
        return super().__call__(img, mask)
