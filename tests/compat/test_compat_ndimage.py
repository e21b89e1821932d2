"""`roarfast.compat.ndimage` against SciPy: arguments drawn from the whole signature, `output=` aliases included."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.ndimage
from hypothesis import given, settings
from hypothesis import strategies as st

from roarfast import compat
from roarfast.compat import ndimage as ours

MODES = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-mirror", "grid-wrap", "grid-constant"]
FLOATS = [np.float32, np.float64]
ANY = [
    np.float32,
    np.float64,
    bool,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.complex64,
    np.complex128,
]
TOLERANCE = {"f": 1e-6, "d": 1e-12, "F": 1e-6, "D": 1e-12}


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()


def values(rng, shape, dtype, scale=None):
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.3
    high = min(np.iinfo(dtype).max, 2**45) if scale is None else scale
    low = 0 if dtype.kind == "u" else -high
    return rng.integers(low, high, shape, endpoint=True).astype(dtype)


def both(name, a, output, *args, **kwargs):
    """The results of SciPy and of ours, given copies of the input and the same kind of `output=`; or two errors."""
    results = []
    for module in (scipy.ndimage, ours):
        mine = a.copy(order="K")
        if isinstance(output, str) and output == "input":
            out = mine
        elif isinstance(output, str) and output == "overlap":
            mine = np.concatenate([a, a[-1:]])[: len(a)]
            out = np.lib.stride_tricks.as_strided(mine, mine.shape, mine.strides)[::-1]
        elif isinstance(output, np.dtype):
            out = output.type
        elif isinstance(output, np.ndarray):
            out = output.copy()
        else:
            out = output
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = getattr(module, name)(mine, *args, output=out, **kwargs)
        except Exception as error:  # compared below
            results.append(type(error))
            continue
        if isinstance(out, np.ndarray):
            assert result is out
        if not (isinstance(output, str) and output in ("input", "overlap")):
            np.testing.assert_array_equal(mine, a)
        results.append(result)
    return results


def assert_same(expected, got, exact, a):
    if isinstance(expected, type):
        assert got is expected
        return
    assert isinstance(got, np.ndarray)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if exact or expected.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected)
        return
    # Relative to the largest value that went in: differences of neighbours cancel.
    scale = max(np.abs(a).max(initial=0), np.abs(expected).max(initial=0), 1)
    coarser = "f" if a.dtype.char in "fF" and expected.dtype.char in "fF" else expected.dtype.char
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE[coarser] * scale)


@st.composite
def arrays(draw, dtypes=tuple(ANY), max_dims=4):
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=max_dims).map(tuple))
    dtype = draw(st.sampled_from(dtypes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    a = values(rng, shape, dtype, draw(st.sampled_from([None, 5])))
    layout = draw(st.sampled_from(["c", "fortran", "reversed", "strided", "swapped"]))
    if layout == "fortran":
        a = np.asfortranarray(a)
    elif layout == "reversed":
        a = a[::-1]
    elif layout == "strided":
        a = np.repeat(a, 2, axis=-1)[..., ::2]
    elif layout == "swapped" and a.dtype.itemsize > 1:
        a = a.astype(a.dtype.newbyteorder())
    return a


def per_axis(values_, n):
    return st.one_of(
        values_, st.lists(values_, min_size=n, max_size=n), st.lists(values_, min_size=n, max_size=n).map(tuple)
    )


@st.composite
def outputs(draw, a):
    kind = draw(st.sampled_from(["none", "none", "input", "dtype", "array", "array", "strided", "overlap"]))
    if kind == "none":
        return None
    if kind in ("input", "overlap"):
        return kind
    dtype = np.dtype(draw(st.sampled_from([*FLOATS, *ANY])))
    if kind == "dtype":
        return dtype
    array = np.zeros(a.shape, dtype)
    return np.zeros((*a.shape[:-1], 2 * a.shape[-1]), dtype)[..., ::2] if kind == "strided" else array


@st.composite
def axes_of(draw, a):
    if draw(st.booleans()):
        return None, a.ndim
    chosen = draw(st.lists(st.integers(0, a.ndim - 1), unique=True, max_size=a.ndim))
    chosen = [axis - a.ndim if draw(st.booleans()) else axis for axis in chosen]
    return tuple(chosen), len(chosen)


numbers = st.one_of(st.just(0.0), st.floats(-3, 3, width=32), st.integers(0, 4))


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_gaussian_filter(data):
    a = data.draw(arrays(max_dims=3))
    axes, n = data.draw(axes_of(a))
    kwargs = {"mode": data.draw(per_axis(st.sampled_from(MODES), n)), "cval": data.draw(numbers)}
    if data.draw(st.booleans()):
        kwargs["truncate"] = data.draw(st.floats(0, 6))
    if data.draw(st.booleans()):
        kwargs["radius"] = data.draw(per_axis(st.integers(0, 20), n))
    if data.draw(st.booleans()):
        kwargs["order"] = data.draw(per_axis(st.integers(0, 3), n))
    if axes is not None:
        kwargs["axes"] = axes
    sigma = data.draw(per_axis(st.one_of(st.just(0), st.floats(0.3, 4), st.integers(1, 3)), n))
    expected, got = both("gaussian_filter", a, data.draw(outputs(a)), sigma, **kwargs)
    assert_same(expected, got, False, a)


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_maximum_filter(data):
    a = data.draw(arrays())
    axes, n = data.draw(axes_of(a))
    kwargs = {"mode": data.draw(per_axis(st.sampled_from(MODES), n)), "cval": data.draw(numbers)}
    if data.draw(st.booleans()):
        kwargs["origin"] = data.draw(per_axis(st.integers(-1, 1), n))
    if axes is not None:
        kwargs["axes"] = axes
    if data.draw(st.booleans()):
        footprint = np.ones(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), bool)
        if data.draw(st.booleans()):
            footprint.flat[-1:] = False
        kwargs["footprint"] = footprint
    else:
        kwargs["size"] = data.draw(per_axis(st.integers(1, 12), n))
    expected, got = both("maximum_filter", a, data.draw(outputs(a)), **kwargs)
    assert_same(expected, got, True, a)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_sobel(data):
    a = data.draw(arrays(max_dims=3))
    kwargs = {"mode": data.draw(per_axis(st.sampled_from(MODES), a.ndim)), "cval": data.draw(numbers)}
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    expected, got = both("sobel", a, data.draw(outputs(a)), axis, **kwargs)
    assert_same(expected, got, False, a)


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 1), (40, 50, 3), (3, 40, 50), (17, 6, 40, 2)], ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_larger_arrays_take_the_fast_path(shape, dtype):
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for name, args in [("gaussian_filter", (1.5,)), ("maximum_filter", (5,))]:
        expected = getattr(scipy.ndimage, name)(a, *args)
        assert_same(expected, getattr(ours, name)(a, *args), name == "maximum_filter", a)
    assert compat.status()["scipy"].fast == {"gaussian_filter": 1, "maximum_filter": 1}
    assert not compat.status()["scipy"].passed_on


OUTSIDE = [
    ("gaussian_filter", (np.eye(3, dtype=np.int32), 1), {}, "output of dtype int32"),
    ("gaussian_filter", (np.array([[1.0, np.nan]]), 1), {}, "NaN or infinity"),
    ("gaussian_filter", (np.array([[1.0, np.inf]]), 1), {}, "NaN or infinity"),
    ("gaussian_filter", (np.eye(3), 1), {"order": 17}, "order out of range"),
    ("gaussian_filter", (np.eye(3), 1), {"mode": "constant", "cval": np.nan}, "a cval that is not finite"),
    ("gaussian_filter", (np.eye(3) * 1j, 1), {"mode": "constant"}, "complex numbers and mode constant"),
    ("gaussian_filter", (np.ma.masked_array(np.eye(3)), 1), {}, "input of type MaskedArray"),
    ("gaussian_filter", (np.zeros((0, 3)), 1), {}, "an input without values"),
    ("maximum_filter", (np.array([1.0, np.nan]), 2), {}, "NaN"),
    ("maximum_filter", (np.eye(3),), {"footprint": np.eye(3)}, "a footprint with holes"),
    ("maximum_filter", (np.array([2**60, 1]), 2), {}, "64-bit integers beyond 2^53"),
    ("maximum_filter", (np.eye(3), 2.5), {}, "size that is no integer"),
    ("maximum_filter", (np.array([1, 2]), 2), {"mode": "constant", "cval": 0.5}, "a cval that the output cannot hold"),
    ("maximum_filter", (np.eye(3), 2), {"output": np.uint8}, "output of dtype uint8 for float64"),
    ("sobel", (np.zeros((2, 3, 4)),), {}, "3 dimensions"),
    ("sobel", (np.eye(3, dtype=int),), {"mode": "constant", "cval": 1}, "a cval for integers"),
    ("sobel", (np.eye(3, dtype=np.int8),), {"output": np.int16}, "output of dtype int16 for int8"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "args", "kwargs", "reason"), OUTSIDE, ids=[f"{x[0]}-{x[3]}" for x in OUTSIDE])
def test_what_is_outside_goes_to_scipy_and_is_counted(name, args, kwargs, reason):
    expected = getattr(scipy.ndimage, name)(*args, **kwargs)
    got = getattr(ours, name)(*args, **kwargs)
    np.testing.assert_array_equal(got, expected)
    assert compat.status()["scipy"].passed_on == {(name, reason): 1}


READ_ONLY = np.zeros((3, 3))
READ_ONLY.flags.writeable = False
REFUSED = [
    ("gaussian_filter", (np.eye(3), "x"), {}, "sigma that is no number"),
    ("gaussian_filter", (np.eye(3), [1, 2, 3]), {}, "a sequence of another length than there are axes"),
    ("gaussian_filter", (np.eye(3), 1), {"order": 1.5}, "order that is no integer"),
    ("gaussian_filter", (np.eye(3), 1), {"truncate": "4"}, "truncate that is no number"),
    ("gaussian_filter", (np.eye(3), 1), {"radius": -1}, "a radius out of range"),
    ("gaussian_filter", (np.eye(3), 1), {"mode": "pad"}, "an unknown mode"),
    ("gaussian_filter", (np.eye(3), 1), {"mode": "constant", "cval": 1j}, "a cval that is no real number"),
    ("gaussian_filter", (np.eye(3), 1), {"axes": 2}, "axes out of range"),
    ("gaussian_filter", (np.eye(3), 1), {"axes": (0, 0)}, "axes that repeat"),
    ("gaussian_filter", (np.eye(3), 1), {"axes": (0.5,)}, "axes that are no integers"),
    ("gaussian_filter", (np.eye(3), 1), {"output": "no dtype"}, "an output that is no dtype"),
    ("gaussian_filter", (np.eye(3), 1), {"output": "bool"}, "an output that is no number"),
    ("gaussian_filter", (np.eye(3), 1), {"output": np.zeros((2, 2))}, "an output of another type or shape"),
    ("gaussian_filter", (np.eye(3), 1), {"output": READ_ONLY}, "a read-only output"),
    ("gaussian_filter", (np.eye(3), 1), {"output": complex}, "an output of another kind than the input"),
    ("maximum_filter", (np.eye(3),), {}, "neither size nor footprint"),
    ("maximum_filter", (np.eye(3), 3), {"footprint": np.ones((3, 3))}, "both size and footprint"),
    ("maximum_filter", (np.eye(3), 3), {"origin": 2}, "an invalid origin"),
    ("maximum_filter", (np.eye(3), 0), {}, "size out of range"),
]


def outcome(module, name, args, kwargs):
    try:
        return getattr(module, name)(*args, **kwargs)
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "args", "kwargs", "reason"), REFUSED, ids=[f"{x[0]}-{x[3]}" for x in REFUSED])
def test_what_is_no_valid_call_goes_to_scipy_too(name, args, kwargs, reason):
    expected, got = (outcome(module, name, args, kwargs) for module in (scipy.ndimage, ours))
    assert got is expected if isinstance(expected, type) else np.array_equal(got, expected)
    assert compat.status()["scipy"].passed_on == {(name, reason): 1}


def test_integers_that_scipy_does_not_wrap_around(monkeypatch):
    monkeypatch.setattr(ours, "_wraps", lambda dtype: False)
    a = np.array([[0, 200], [100, 0]], np.uint8)
    np.testing.assert_array_equal(ours.sobel(a), scipy.ndimage.sobel(a))
    assert compat.status()["scipy"].passed_on == {("sobel", "uint8 out of range"): 1}


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("gaussian_filter", (np.eye(3), [1, 2, 3]), {}),
        ("gaussian_filter", (np.eye(3), 1), {"order": -1}),
        ("gaussian_filter", (np.eye(3), 1), {"radius": 1.5}),
        ("gaussian_filter", (np.eye(3), 1), {"mode": "pad"}),
        ("gaussian_filter", (np.eye(3), 1), {"axes": (0, 0)}),
        ("gaussian_filter", (np.eye(3), 1), {"axes": 2}),
        ("gaussian_filter", (np.eye(3), 1), {"output": np.zeros((2, 2))}),
        ("maximum_filter", (np.eye(3),), {}),
        ("maximum_filter", (np.eye(3), 3), {"origin": 2}),
        ("maximum_filter", (np.eye(3) * 1j, 3), {}),
        ("maximum_filter", (np.eye(3),), {"footprint": np.zeros((3, 3))}),
        ("sobel", (np.eye(3), 2), {}),
    ],
)
def test_errors_are_scipys(name, args, kwargs):
    with pytest.raises(Exception) as theirs:
        getattr(scipy.ndimage, name)(*args, **kwargs)
    with pytest.raises(type(theirs.value)) as mine:
        getattr(ours, name)(*args, **kwargs)
    assert str(mine.value) == str(theirs.value)
