from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st

from roarfast.explain.estimators import known
from roarfast.explain.names import (
    ENSEMBLES,
    PAPER,
    Name,
    check_custom,
    parse,
    parse_all,
)
from roarfast.ops.aggregate_channels import REDUCTIONS, VALUES

BASES = list(known())
GRADIENT_BASES = [name for name, record in known().items() if record.of_pass is not None]
names = st.one_of(
    st.builds(Name, base=st.sampled_from(BASES), squared=st.booleans()),
    st.builds(
        Name, base=st.sampled_from(GRADIENT_BASES), ensemble=st.sampled_from(list(ENSEMBLES)), squared=st.booleans()
    ),
)


def from_slug(slug, custom=()):
    """The name whose slug this is: that there is a way back shows that no two names share a file."""
    head, *rest = slug.split(".")
    aggregate = ""
    if len(rest) > 1 and rest[-2] in REDUCTIONS and rest[-1] in VALUES:
        aggregate, rest = f"@{rest[-2]}({rest[-1]})", rest[:-2]
    power = "^2" if rest and rest[-1] == "2" else ""
    bases = rest[:-1] if power else rest
    return parse(head + "".join(f"({base})" for base in bases) + power + aggregate, custom)


@given(names)
def test_text_and_slug_read_back(name):
    assert parse(str(name)) == name
    assert from_slug(name.slug) == name
    assert re.fullmatch(r"[a-z0-9._-]+", name.slug)


@given(names, st.randoms())
def test_case_spaces_and_superscript_do_not_matter(name, random):
    text = str(name).replace("^2", random.choice(["^2", "²", " ^ 2"]))
    text = "".join(random.choice([c, c.upper()]) for c in text)
    assert parse(f" {text} ") == name


@given(st.lists(names, min_size=2, unique=True))
def test_slugs_are_distinct(several):
    assert len({name.slug for name in several}) == len(several)


@pytest.mark.parametrize(
    "text, name",
    [
        ("grad", Name("grad")),
        ("grad^2", Name("grad", None, True)),
        ("sg", Name("grad", "sg")),
        ("sg(grad)", Name("grad", "sg")),
        ("sg-sq(ig)", Name("ig", "sg-sq")),
        ("vg(gb)^2", Name("gb", "vg", True)),
        ("sobel²", Name("sobel", None, True)),
    ],
)
def test_examples(text, name):
    assert parse(text) == name


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "does not follow"),
        ("grad^3", "does not follow"),
        ("grad^2^2", "does not follow"),
        ("sg(ig", "does not follow"),
        ("sg(vg(grad))", "does not follow"),
        ("gradd", "no estimator 'gradd'"),
        ("sg(rand)", "takes a gradient-type base, not 'rand'"),
        ("sg()", "takes a gradient-type base, not ''"),
        ("ig(grad)", "is not an ensemble"),
        ("../grad", "does not follow"),
    ],
)
def test_errors_show_the_grammar(text, why):
    with pytest.raises(ValueError, match=re.escape(why)) as error:
        parse(text)
    assert "ensemble  :=" in str(error.value) and "sg-sq(ig)" in str(error.value)


def test_user_names():
    assert parse("occlusion^2", {"occlusion"}) == Name("occlusion", None, True)
    with pytest.raises(ValueError, match="here: occlusion"):
        parse("oclusion", {"occlusion"})
    for bad in ("grad", "sg", "Mine", "a.b", "", "2d", "a/b"):
        with pytest.raises(ValueError):
            check_custom(bad)


def test_lists():
    assert [str(n) for n in parse_all(PAPER)] == list(PAPER)
    assert parse_all("grad") == (Name("grad"),)
    with pytest.raises(ValueError, match="'sg' twice"):
        parse_all(["sg", "SG(grad)"])
    with pytest.raises(ValueError, match="at least one"):
        parse_all([])
    with pytest.raises(TypeError):
        parse(3)


@pytest.mark.parametrize(
    ("text", "canonical", "slug"),
    [
        ("Grad@mean(raw)", "grad@mean(raw)", "grad.mean.raw"),
        ("sg-sq(ig)²@SUM (raw)", "sg-sq(ig)^2@sum(raw)", "sg-sq.ig.2.sum.raw"),
        ("sg@mean", "sg@mean(abs)", "sg.mean.abs"),
        ("vg(gb) @ l2(raw)", "vg(gb)@l2(raw)", "vg.gb.l2.raw"),
    ],
)
def test_an_aggregation_is_part_of_a_name(text, canonical, slug):
    name = parse(text)
    assert (str(name), name.slug, from_slug(slug)) == (canonical, slug, name)
    assert name != parse(canonical.split("@")[0]) and parse(canonical) == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("grad@", "does not follow the grammar"),
        ("grad@mean(row)", "of raw|row"),
        ("grad@median(raw)", "median"),
        ("grad@none(raw)", "cannot be kept apart"),
        ("grad@mean(raw)^2", "mean"),
    ],
)
def test_bad_aggregations_in_names(text, why):
    with pytest.raises(ValueError, match=why) as error:
        parse(text)
    assert repr(text) in str(error.value)


def test_a_user_estimator_called_like_a_reduction_keeps_its_slug():
    name = parse("sum^2@mean(raw)", ["sum"])
    assert from_slug(name.slug, ["sum"]) == name
    assert from_slug("sum.2", ["sum"]) == parse("sum^2", ["sum"])
