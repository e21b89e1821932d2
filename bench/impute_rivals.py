"""Other ways to the linear imputation: as ROAD's users have it today, and the best that libraries offer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu, spsolve

NEIGHBOURS = [((dy, dx), 1 / 6 if 0 in (dy, dx) else 1 / 12) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]


def road_way(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """One image `[C, H, W]`: a `lil_matrix` filled neighbour by neighbour, then `spsolve` for all channels.

    Written for this comparison with the data structures and calls of the published implementation, so of its cost.
    """
    h, w = mask.shape
    flat, values = mask.reshape(-1), x.reshape(len(x), -1).astype(np.float64)
    pixels = np.flatnonzero(flat)
    number = np.zeros(h * w, int)
    number[pixels] = np.arange(len(pixels))
    system = sparse.lil_matrix((len(pixels), len(pixels)))
    right, total = np.zeros((len(pixels), len(x))), np.ones(len(pixels))
    row, column = pixels // w, pixels % w
    for (dy, dx), weight in NEIGHBOURS:
        inside = (row + dy >= 0) & (row + dy < h) & (column + dx >= 0) & (column + dx < w)
        equation, neighbour = np.flatnonzero(inside), (pixels + dy * w + dx)[inside]
        unknown = flat[neighbour]
        right[equation[~unknown]] -= weight * values[:, neighbour[~unknown]].T
        system[equation[unknown], number[neighbour[unknown]]] = weight
        total[~inside] -= weight
    system[np.arange(len(pixels)), np.arange(len(pixels))] = -total
    solution = spsolve(sparse.csc_matrix(system), right).reshape(len(pixels), len(x))
    values[:, pixels] = solution.T
    return values.reshape(x.shape).astype(np.float32)


def _assemble(x: np.ndarray, mask: np.ndarray) -> tuple[sparse.csc_matrix, np.ndarray]:
    """The positive definite system, built at once from index arrays."""
    h, w = mask.shape
    number = np.where(mask, np.cumsum(mask).reshape(h, w) - 1, -1).astype(np.int32)
    count = int(mask.sum())
    right, diagonal = np.zeros((count, len(x))), np.zeros(count)
    rows, columns, data = [], [], []
    for (dy, dx), weight in NEIGHBOURS:
        here = number[max(0, -dy) : h - max(0, dy), max(0, -dx) : w - max(0, dx)]
        there = number[max(0, dy) : h - max(0, -dy), max(0, dx) : w - max(0, -dx)]
        values = x[:, max(0, dy) : h - max(0, -dy), max(0, dx) : w - max(0, -dx)]
        both, border = (here >= 0) & (there >= 0), (here >= 0) & (there < 0)
        diagonal[here[here >= 0]] += weight
        right[here[border]] += weight * values[:, border].T
        rows.append(here[both])
        columns.append(there[both])
        data.append(np.full(len(rows[-1]), -weight))
    everything = np.arange(count, dtype=np.int32)
    entries = np.concatenate([*data, diagonal])
    matrix = sparse.csc_matrix(
        (entries, (np.concatenate([*rows, everything]), np.concatenate([*columns, everything]))), (count, count)
    )
    return matrix, right


def _filled(
    x: np.ndarray, mask: np.ndarray, solve: Callable[[sparse.csc_matrix, np.ndarray], np.ndarray]
) -> np.ndarray:
    out = x.astype(np.float32)
    out[:, mask] = solve(*_assemble(x, mask)).T
    return out


def superlu(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Vectorised assembly, one symmetric-mode SuperLU factorisation for all channels."""
    options = {"SymmetricMode": True}
    return _filled(
        x, mask, lambda a, b: splu(a, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve(b)
    )


def pyamg_way() -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Vectorised assembly, Ruge-Stüben multigrid with conjugate gradients; None where PyAMG is not installed."""
    try:
        import pyamg
    except ImportError:
        return None

    def solve(a: sparse.csc_matrix, b: np.ndarray) -> np.ndarray:
        hierarchy = pyamg.ruge_stuben_solver(a.tocsr())
        return np.stack([hierarchy.solve(b[:, k], tol=1e-7, accel="cg") for k in range(b.shape[1])], 1)

    return lambda x, mask: _filled(x, mask, solve)
