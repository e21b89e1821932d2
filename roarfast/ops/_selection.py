"""What the selection ops share: names of rules and orders, checks of rates, and how an array splits into samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from roarfast._types import Array, Numpy
from roarfast.ops import _check as check
from roarfast.ops._arrays import DTYPE_CODES, A, Arrays, SampleIds
from roarfast.ops._op import is_compiling, is_tensor

# The values of rf_rule and rf_order in csrc/include/roarfast.h.
RULES = {"exact": 0, "percentile": 1, "strict": 2, "value": 3}
ORDERS = {"morf": 0, "lerf": 1}
NAN_POLICIES = ("raise", "ignore")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
MAX_RATES = 254  # RF_MAX_RATES; codes are bytes, and 255 is left free

_AXES = {1: "[..., F]", 2: "[..., H, W]", 3: "[..., C, H, W]"}


def rate(name: str, value: float) -> float:
    """A drop rate as a float in [0, 1]; percentages get an error that says so."""
    hint = ""
    if type(value) in (int, float) or isinstance(value, (np.floating, np.signedinteger, np.unsignedinteger)):
        percentage = not isinstance(value, np.timedelta64) and 1 < value <= 100
        hint = f"rates are fractions, so {value:g} % is {value / 100:g}" if percentage else ""
    return check.number(name, value, 0, 1, hint)


def in_range(drop: float) -> None:
    """A drop rate on its way to a kernel: `torch.ops.roarfast` can be called with any number."""
    if not 0 <= drop <= 1:
        raise ValueError(f"drop must be in [0, 1], got {drop}")


# The last tuple of plain numbers that `rates` was given, and its result: the same object needs no second look. One
# object, replaced whole, so that a thread never sees the rates of one call and the result of another.
_latest_rates: tuple[Sequence[float] | None, tuple[float, ...]] = (None, ())


def rates(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Ascending, distinct drop rates, at most MAX_RATES."""
    check.entries(name, values, "a sequence of rates such as (0.1, 0.3, 0.5)")
    global _latest_rates
    latest = _latest_rates
    if type(values) is tuple and values is latest[0]:  # torch.compile of 2.6 cannot compare a list with a tuple
        return latest[1]
    if isinstance(values, (tuple, list)) and all(type(v) in (int, float) for v in values):
        result = _plain_rates(name, tuple(values))
        if type(values) is tuple:
            _latest_rates = (values, result)
        return result
    return _plain_rates.__wrapped__(name, values)


@lru_cache(maxsize=64)  # studies and benchmarks ask for the same rates again and again
def _plain_rates(name: str, values: Sequence[float]) -> tuple[float, ...]:
    result = [rate(f"{name}[{j}]", v) for j, v in enumerate(values)]
    if not result:
        raise ValueError(f"{name} must have at least one rate, got none")
    if len(result) > MAX_RATES:
        raise ValueError(f"{name} must have at most {MAX_RATES} rates, since a code is one byte, got {len(result)}")
    for j in range(1, len(result)):
        if result[j] <= result[j - 1]:
            what = "twice" if result[j] == result[j - 1] else f"after {result[j - 1]:g}"
            raise ValueError(f"{name} must ascend without repeats, got {result[j]:g} {what}: sort them first")
    return tuple(result)


@lru_cache(maxsize=64)
def host_array(rates: tuple[float, ...]) -> tuple[npt.NDArray[np.float64], int]:
    """Rates as float64 in host memory, and the pointer to them, which every backend takes."""
    array = np.array(rates, np.float64)
    if not rates or not (rates[0] >= 0 and rates[-1] <= 1):
        raise ValueError(f"drops must be rates in [0, 1], got {list(rates)}")
    if len(array) > MAX_RATES or not (np.diff(array) > 0).all():
        raise ValueError(f"drops must be at most {MAX_RATES} rates that ascend without repeats, got {list(rates)}")
    return array, array.ctypes.data


def sample_ndim(a: Array, ndim: int, name: str = "a") -> int:
    """How many trailing axes of `a` make up one sample."""
    ndim = check.integer("ndim", ndim, 1, 3)
    if len(a.shape) < ndim:
        hint = "" if ndim == 1 else f"; for features [N, F] pass ndim=1 (got ndim={ndim})"
        raise ValueError(f"{name} must be {_AXES[ndim]}, got shape {tuple(a.shape)}{hint}")
    return ndim


def samples(shape: Sequence[int], ndim: int) -> tuple[int, int]:
    """`(n, f)`: how many samples there are and how many features each has."""
    split = len(shape) - ndim
    if not 0 <= split <= len(shape):
        raise ValueError(f"ndim must be in [0, {len(shape)}] for shape {tuple(shape)}, got {ndim}")
    return math.prod(shape[:split]), math.prod(shape[split:])


def seed_value(seed: int) -> int:
    """A seed in the range that torch and the kernels share."""
    return check.integer("seed", seed, 0, 2**63 - 1)


@overload
def sample_index(index: SampleIds, n: int, like: Array) -> Array: ...


@overload
def sample_index(index: None, n: int, like: Array) -> None: ...


def sample_index(index: SampleIds | None, n: int, like: Array) -> Array | None:
    """Sample ids as an int64 array of the library and device of `like`; None stays None (ids are 0, 1, 2, …)."""
    if index is None:
        return None
    if is_tensor(index):
        check.array("index", index, INTEGERS)
        check.readable("index", index, like)
        values: Array = index.reshape(-1)
    else:
        values = integers("index", index).reshape(-1)
    if len(values) != n:
        raise ValueError(f"index must have one id per sample, {n}, got {len(values)}")
    if is_tensor(like):
        import torch

        as_tensor = values if is_tensor(values) else torch.from_numpy(values.astype(np.int64))
        return as_tensor.to(like.device, torch.int64).contiguous()
    return np.require(values.cpu().numpy() if is_tensor(values) else values, np.int64, ["C", "A"])


def integers(name: str, values: object) -> Numpy:
    """A NumPy array of integers that fit int64, from an array or nested sequences."""
    if isinstance(values, (bytes, bytearray, memoryview)):  # NumPy takes them for numbers
        raise TypeError(f"{name} must hold integers, got {type(values).__name__}")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"{name} must hold integers, got {type(values).__name__}") from None
    if isinstance(values, np.ma.MaskedArray) or (array.dtype.kind not in "iu" and (array.size or array is values)):
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        raise ValueError(f"{name} must be below 2^63, got {array.max()}")
    return array


def nan_flags(xp: Arrays[A], n: int, policy: bool, like: A) -> A | None:
    """Where a kernel marks rows with NaN; None if nobody asks."""
    return xp.empty([n], "uint8", like) if policy else None


# What kernels say of a row: the values of RF_ROW_NAN and so on in csrc/include/roarfast.h.
_NAN, _NEGATIVE, _INFINITE = 1, 2, 4


def raise_on_nan(flags: Array | None) -> None:
    """The error for rows with NaN. On CUDA this waits for the kernel; `nan="ignore"` does not."""
    if flags is None or not (bool(flags.any()) if is_tensor(flags) else flags.tobytes().strip(b"\0")):
        return
    host = flags.cpu().numpy() if is_tensor(flags) else flags
    bad = np.flatnonzero(host & _NAN)
    for bit, what in ((_NEGATIVE, "negative values: take abs or the positive part first"), (_INFINITE, "infinity")):
        wrong = np.flatnonzero(host & bit)
        if len(wrong) and not len(bad):
            raise ValueError(
                f"a must hold finite values >= 0 for rule='value', got {len(wrong)} of {len(host)} samples "
                f"(first: sample {wrong[0]}) with {what}"
            )
    raise ValueError(
        f"a must not hold NaN, got some in {len(bad)} of {len(host)} samples (first: sample {bad[0]}); "
        'nan="ignore" ranks NaN as +inf'
    )


def check_nan_policy(nan: str, rule: str = "exact") -> bool:
    """Whether NaN raises."""
    check.one_of("nan", nan, NAN_POLICIES)
    if nan == "ignore" and rule == "value":
        raise ValueError("nan must be 'raise' for rule='value', got 'ignore': NaN counts as +inf, which is no maximum")
    return bool(nan == "raise")


class Ranking(NamedTuple):
    """How samples are ranked: the checked arguments that `removal_mask` and `rank_codes` share."""

    index: Any  # an array of the library of the maps, or None: a NamedTuple cannot say which
    ndim: int
    rule: str
    order: str
    seed: int
    raises: bool


def warn_of_channels(a: Array) -> None:
    """`[N, C, H, W]` is legal, one map per channel, but most who pass it want one mask per pixel: say so."""
    if len(a.shape) != 4 or not 2 <= a.shape[1] <= 4 or (is_tensor(a) and is_compiling()):
        return
    warnings.warn(
        f"a has shape {tuple(a.shape)}: axis 1 looks like channels, and each is ranked on its own. For one mask per pixel "
        "aggregate channels first: rf.aggregate_channels(a). If these are maps, pass ndim=2; to rank the values of all "
        "channels together, ndim=3",
        UserWarning,
        stacklevel=5,  # the caller of the op, past check_ranking, the op and its wrapper
    )


def check_ranking(
    a: Array, rule: str, order: str, seed: int, index: SampleIds | None, ndim: int | None, nan: str
) -> Ranking:
    """Checks the map `a` and how it is to be ranked; `ndim` None is 2, of which the caller did not think."""
    check.array("a", a, DTYPE_CODES)
    if ndim is None:
        warn_of_channels(a)
    ndim = sample_ndim(a, 2 if ndim is None else ndim)
    check.one_of("rule", rule, RULES)
    check.one_of("order", order, ORDERS)
    ids = sample_index(index, samples(a.shape, ndim)[0], a)
    return Ranking(ids, ndim, rule, order, seed_value(seed), check_nan_policy(nan, rule))


def run_ranking(
    xp: Arrays[A],
    kernel: str,
    a: A,
    ranking: Ranking,
    rates: Sequence[float],
    sizes: Sequence[int],
    flags: Sequence[int],
    out: A | None,
    dtype: str,
) -> A:
    """Calls `removal_mask` or `rank_codes`.

    Args:
        xp: The array library.
        kernel: Which of them.
        a: The maps.
        ranking: How they are ranked.
        rates: What the kernel takes for the drop rates.
        sizes: What the size of its workspace depends on beside the maps.
        flags: What it takes beside rule and order.
        out: Where the caller wants the result, or None.
        dtype: Of the result.
    """
    a = xp.maps(a)
    n, f = samples(a.shape, ranking.ndim)
    check.operand(xp, "index", ranking.index, ("int64",), (n,))
    index = None if ranking.index is None else xp.contiguous(ranking.index)
    code = DTYPE_CODES[xp.dtype(a)]
    result = xp.output(out, a.shape, dtype, a, index)
    nan = nan_flags(xp, n, ranking.raises and n * f > 0, a)
    workspace = xp.empty([xp.query(a, f"{kernel}_workspace_bytes", code, n, f, *sizes)], "uint8", a)
    how: tuple[A | float | None, ...] = RULES[ranking.rule], ORDERS[ranking.order], *flags, ranking.seed, index
    xp.call(a, kernel, a, result, code, n, f, *rates, *how, nan, workspace)
    raise_on_nan(nan)
    return xp.finish(result, out)
