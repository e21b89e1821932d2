from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
ndimage = pytest.importorskip("scipy.ndimage")

from roarfast.explain import PostProcess  # noqa: E402

steps = st.one_of(
    st.integers(1, 9).map(lambda n: f"max({n})"),
    st.floats(0, 9).map(lambda s: f"gaussian({s!r})"),
    st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda p: f"max({p[0]},{p[1]})"),
    st.just("plain"),
)


@given(st.lists(steps, min_size=1, max_size=4))
def test_canonical_text_reads_back(parts):
    k = PostProcess.parse("|".join(parts))
    assert PostProcess.parse(str(k)) == k
    assert str(PostProcess.parse(str(k))) == str(k)
    assert re.fullmatch(r"[a-z0-9._+-]+", k.slug)


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("plain", "plain"),
        ("Max", "max(3)"),
        ("gaussian", "gaussian(1)"),
        ("gaussian(1.0) | max( 3 )", "gaussian(1)|max(3)"),
        ("max(3,3)", "max(3)"),
        ("plain|max(5)", "max(5)"),
    ],
)
def test_canonical(text, canonical):
    assert str(PostProcess.parse(text)) == canonical


def test_equals_scipy(rng):
    maps = rng.standard_normal((3, 9, 11)).astype(np.float32)
    before = maps.copy()
    expected = np.stack([ndimage.maximum_filter(ndimage.gaussian_filter(a, 1), 3) for a in maps])
    k = PostProcess.parse("gaussian(1)|max(3)")
    np.testing.assert_allclose(k(maps), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(k(torch.from_numpy(maps)).numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(PostProcess.parse("plain")(maps), maps)
    uneven = np.stack([ndimage.maximum_filter(a, (3, 5)) for a in maps])
    np.testing.assert_array_equal(PostProcess.parse("max(3,5)")(maps), uneven)
    np.testing.assert_array_equal(maps, before)


def test_user_functions():
    k = PostProcess.of("negate", lambda a: -a)
    assert str(k) == "negate" and k(np.ones((2, 2)))[0, 0] == -1
    chain = PostProcess.parse("negate|max(1)", {"negate": lambda a: -a})
    assert str(chain) == "negate|max(1)"
    with pytest.raises(ValueError, match="must keep the shape"):
        PostProcess.of("cut", lambda a: a[:1])(np.ones((2, 2)))
    with pytest.raises(ValueError, match="built-in"):
        PostProcess.of("max", lambda a: a)


@pytest.mark.parametrize(
    "text", ["", "blur(1)", "max(0)", "max(1.5)", "gaussian(-1)", "gaussian(nan)", "max(1,2,3)", "max()", "max(3)|"]
)
def test_errors_show_the_grammar(text):
    with pytest.raises(ValueError, match="gaussian\\(1\\)\\|max\\(3\\)"):
        PostProcess.parse(text)
