"""The normals of NumPy's and torch's global generators, faster than the libraries draw them.

Peers add such noise in a fixed order, and must find their generator where they would have left it. Ours are equal to
rounding, and the generator's state to the bit. Both rest on how the installed libraries work, so each is first tried against
the library itself, once per process; if anything differs, the library draws.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from roarfast import _backend
from roarfast.compat._locks import forkable

if TYPE_CHECKING:
    import torch

WORDS = 624  # of the Mersenne twister's state
FEWEST = 16  # torch draws fewer than this many one by one
# Below these counts the library is faster: its state must be read and written whole.
NUMPY_WORTH, TORCH_WORTH = 6000, 3000

_torch_lock = forkable(threading.Lock())


# ---- NumPy


def numpy_normals(rows: int, columns: int) -> npt.NDArray[np.float64]:
    """`np.random.randn(rows, columns)`."""
    if rows * columns >= NUMPY_WORTH and _numpy_is_known():
        state: np.random.RandomState = np.random.mtrand._rand  # type: ignore[attr-defined]
        if type(state._bit_generator) is np.random.MT19937:
            with state._bit_generator.lock:
                return _numpy_draw(state, rows, columns)
    return np.random.randn(rows, columns)  # noqa: NPY002 - the generator that peers draw from


def _numpy_draw(state: np.random.RandomState, rows: int, columns: int) -> npt.NDArray[np.float64]:
    found = state.get_state(legacy=False)
    key = found["state"]["key"]
    place = np.array([found["state"]["pos"], found["has_gauss"]], np.int64)
    cached = np.array([found["gauss"]], np.float64)
    out = np.empty((rows, columns))
    _backend.cpu().numpy_normals(key, place, cached, out, out.size)
    state.set_state(("MT19937", key, int(place[0]), int(place[1]), float(cached[0])))
    return out


@functools.cache
def _numpy_is_known() -> bool:
    """Whether ours are NumPy's numbers: even and odd counts, with and without one kept, across several twists."""
    try:
        theirs, ours = np.random.RandomState(5), np.random.RandomState(5)
        for count in (16, 17, 1, 2, 800, 33, 5001, 64):
            drawn = _numpy_draw(ours, 1, count)[0]
            if not np.allclose(drawn, theirs.randn(count), rtol=1e-12, atol=0):
                return False
            for a, b in zip(ours.get_state(), theirs.get_state()):
                if not np.array_equal(a, b):
                    return False
    except Exception:  # whatever a NumPy of another build may do: then it draws by itself
        return False
    return True


# ---- torch


def torch_normals(sizes: Sequence[int], dtype: torch.dtype | None = None) -> npt.NDArray[np.float32] | None:
    """`torch.randn(size)` on the CPU for every size in turn, as one array; None where torch must be asked instead."""
    import torch

    if (dtype or torch.get_default_dtype()) != torch.float32 or any(0 < n < FEWEST for n in sizes):
        return None
    if (len(sizes) == 1 and sizes[0] < TORCH_WORTH) or sum(sizes) == 0 or not _torch_is_known():
        return None
    with _torch_lock:
        return _torch_draw(torch.default_generator, sizes)


# CPUGeneratorImplStateLegacy of torch: seed (8 bytes), left, seeded (4 each), next (8), 624 words of 8 bytes, ...
_LEFT, _NEXT, _STATE = 2, 2, 3  # as int32; as int64; as int64


def _torch_draw(generator: torch.Generator, sizes: Sequence[int]) -> npt.NDArray[np.float32]:
    state = generator.get_state()
    raw = state.numpy()
    wide = raw[: 8 * (_STATE + WORDS)].view(np.int64)
    left = raw[:16].view(np.int32)
    key = wide[_STATE:].astype(np.uint32)
    # `left` counts down to 1, where the next word is the first of a new state.
    next_word = np.array([WORDS if left[_LEFT] == 1 else wide[_NEXT]], np.int64)
    wanted = np.asarray(sizes, np.int64)
    out = np.empty(int(wanted.sum()), np.float32)
    _backend.cpu().torch_normals(key, next_word, wanted, len(wanted), out)
    wide[_STATE:] = key
    wide[_NEXT] = next_word[0]
    left[_LEFT] = WORDS + 1 - next_word[0]
    generator.set_state(state)
    return out


@functools.cache
def _torch_is_known() -> bool:
    """Whether ours are torch's numbers, for counts with and without a remainder, across several twists."""
    import torch

    try:
        theirs, ours = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
        for sizes in ((16,), (17, 0, 31), (640, 2000), (5003,), (48, 16)):
            drawn = torch.from_numpy(_torch_draw(ours, sizes))
            expected = torch.cat([torch.randn(n, generator=theirs, dtype=torch.float32) for n in sizes])
            if not torch.allclose(drawn, expected, rtol=1e-5, atol=4e-6):
                return False
            if not torch.equal(ours.get_state(), theirs.get_state()):
                return False
    except Exception:  # whatever a torch of another build may do: then it draws by itself
        return False
    return True
