"""Linear imputation by a sparse direct solve in float64: one equation per removed pixel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from roarfast import _philox as philox

ROAD_WEIGHTS = np.array([[1, 2, 1], [2, 0, 2], [1, 2, 1]]) / 12
_NEIGHBOURS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def impute_linear(
    x: npt.ArrayLike,
    mask: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    empty_value: float = 0.0,
) -> npt.NDArray[np.float64]:
    """Fills one image `[C, H, W]` where `mask` `[H, W]` is True, without noise.

    For a removed pixel i:  (sum of w_ij over neighbours j inside the image) u_i - sum of w_ij u_j over removed
    neighbours = sum of w_ij x_j over known neighbours. A connected set of removed pixels without a known neighbour has no
    solution of its own and gets `empty_value`.
    """
    out = np.array(x, np.float64)
    removed = np.asarray(mask, bool)
    w = ROAD_WEIGHTS if weights is None else np.asarray(weights, np.float64)
    h, width = removed.shape
    ys, xs = np.nonzero(removed)
    count = len(ys)
    if count == 0:
        return out
    number = np.full(removed.shape, -1)
    number[ys, xs] = np.arange(count)

    diagonal, right = np.zeros(count), np.zeros((count, len(out)))
    held = np.zeros(count, bool)  # touches a known pixel
    rows, columns, values = [], [], []
    for dy, dx in _NEIGHBOURS:
        weight = w[1 + dy, 1 + dx]
        i = np.flatnonzero((ys + dy >= 0) & (ys + dy < h) & (xs + dx >= 0) & (xs + dx < width))
        if weight == 0 or len(i) == 0:
            continue
        diagonal[i] += weight
        y, col = ys[i] + dy, xs[i] + dx
        unknown = removed[y, col]
        rows.append(i[unknown])
        columns.append(number[y, col][unknown])
        values.append(np.full(unknown.sum(), -weight))
        right[i[~unknown]] += weight * out[:, y[~unknown], col[~unknown]].T
        held[i[~unknown]] = True
    row, column = (np.concatenate(part) if part else np.zeros(0, int) for part in (rows, columns))
    off_diagonal = sparse.csr_matrix((np.concatenate(values) if values else [], (row, column)), shape=(count, count))

    _, part = connected_components(off_diagonal, directed=False)
    solvable = np.zeros(part.max() + 1, bool)
    solvable[part[held]] = True
    keep = np.flatnonzero(solvable[part])
    filled = np.full((count, len(out)), float(empty_value))
    if len(keep):
        matrix = (off_diagonal + sparse.diags(diagonal)).tocsc()[keep][:, keep]
        filled[keep] = splu(matrix.tocsc()).solve(right[keep])
    out[:, ys, xs] = filled.T
    return out


def noise(seed: int, sample: int, shape: tuple[int, int, int], kind: str = "gaussian") -> npt.NDArray[np.float32]:
    """The unscaled noise of an image `[C, H, W]`: feature = channel * H * W + pixel."""
    draw = philox.normals if kind == "gaussian" else philox.uniforms
    return np.asarray(draw(seed, sample, int(np.prod(shape)), philox.IMPUTE_NOISE)).reshape(shape)
