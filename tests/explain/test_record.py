"""Estimators are records: one of the user's is named, shares passes, is averaged and stored like ours."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast.explain import AttributionStore, Estimator, Explainer, Options, generate  # noqa: E402
from roarfast.explain.estimators import known  # noqa: E402
from roarfast.explain.generation import identity_of  # noqa: E402
from roarfast.explain.names import grammar  # noqa: E402

WEIGHT = torch.tensor([[1.0, -2.0, 3.0, 4.0], [0.5, 0.0, 1.0, 2.0]])


def scaled(x, gradients, options, factor=3.0):
    return factor * gradients.have("input") + (0 if gradients.start is None else 0 * gradients.start)


def linear():
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False)).eval()
    net[1].weight.data = WEIGHT.clone()
    return net


def images(n=3):
    return torch.rand(n, 1, 2, 2, generator=torch.Generator().manual_seed(0))


def test_every_record_is_complete():
    fields = {field.name for field in dataclasses.fields(Options)}
    for name, record in known().items():
        assert name == record.name and record.meaning and record.version >= 1
        assert set(record.options) <= fields and set(record.arguments.values()) <= set(record.options)
        assert f"| {name} " in grammar() and record.meaning in grammar()


def test_a_record_of_the_users_shares_the_pass_and_is_averaged():
    mine = Estimator("mine", of_pass=scaled)
    explainer = Explainer(linear(), [mine, "grad", "mine^2", "sg(mine)", "sg"], target=0, aggregate="none(raw)")
    assert [p.bases for p in explainer.plan.passes] == [("grad", "mine")] * 2
    maps = explainer(images())
    expected = (3 * WEIGHT[0]).reshape(1, 1, 2, 2).expand(3, -1, -1, -1)
    torch.testing.assert_close(maps["mine"], expected)
    torch.testing.assert_close(maps["mine^2"], expected.square())
    torch.testing.assert_close(maps["sg(mine)"], 3 * maps["sg"])


def test_a_record_of_the_users_along_the_path():
    mean = Estimator("mean-gradient", of_pass=scaled, path=True)
    explainer = Explainer(linear(), [mean, "ig"], options=Options(ig_steps=4), target=1, aggregate="none(raw)")
    assert explainer.plan.backwards == 4
    torch.testing.assert_close(explainer(images())["mean-gradient"][0, 0], (3 * WEIGHT[1]).reshape(2, 2))


def test_another_name_and_options():
    twice = Estimator("mine", of_pass=scaled).named("twice", {"factor": 2.0})
    maps = Explainer(linear(), [twice, "grad"], target=0, aggregate="none(raw)")(images())
    torch.testing.assert_close(maps["twice"], 2 * maps["grad"])


def test_an_estimator_without_a_model_needs_no_target(tmp_path):
    dark = Estimator("dark", of_image=lambda x, index, seed, options: -x, options=("sobel_axis",))
    explainer = Explainer(linear(), [dark], aggregate="none(raw)")
    torch.testing.assert_close(explainer(images())["dark"], -images())
    assert explainer.plan.forwards == 0
    stored = generate(AttributionStore(tmp_path), explainer, images())
    torch.testing.assert_close(torch.from_numpy(stored["dark"][:].copy()), -images())
    identity = identity_of(explainer, explainer.names[0], "model", "data")
    assert identity["model"] is None and identity["options"] == {"sobel_axis": -1} and "version" not in identity


def test_another_version_is_another_identity():
    names = [Estimator("mine", of_pass=scaled, version=v) for v in (1, 2)]
    first, second = (identity_of(e, e.names[0], "m", "d") for e in (Explainer(linear(), [n]) for n in names))
    assert second == first | {"version": 2}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "must have one of of_pass, of_image and function"),
        ({"of_pass": scaled, "function": scaled}, "must have one of"),
        ({"function": 3}, "must be callable, got 3"),
        ({"function": scaled, "guided": True}, "say which pass of_pass wants"),
        ({"of_pass": scaled, "path": True, "at_layer": True}, "only gradients at the input"),
    ],
)
def test_impossible_records(fields, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Estimator("mine", **fields)


def test_names_of_records():
    with pytest.raises(ValueError, match="lower-case letters"):
        Estimator("Mine", of_pass=scaled)
    with pytest.raises(ValueError, match="'grad' is a built-in estimator"):
        Explainer(linear(), [Estimator("grad", of_pass=scaled)])
    with pytest.raises(ValueError, match="takes a gradient-type base, not 'dark'"):
        Explainer(linear(), [Estimator("dark", of_image=lambda *a: a[0]), "sg(dark)"])
    with pytest.raises(RuntimeError, match="did not compute 'layer'"):
        Explainer(linear(), Estimator("mine", of_pass=lambda x, g, o: g.have("layer")))(images())
    with pytest.raises(ValueError, match=r"'mine' must return \[3, C, H, W\]"):
        Explainer(linear(), Estimator("mine", of_pass=lambda x, g, o: x[0]))(images())
