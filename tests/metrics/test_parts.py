"""`metrics.parts` end to end: a model, images, maps, other maps."""

import numpy as np
import pytest
import torch

import roarfast as rf
from roarfast import metrics
from roarfast.metrics.damage_parts import split
from roarfast.metrics.worlds import LinearModels

DROPS = (0.15, 0.3, 0.5)
ZERO = metrics.Perturbation(fill=0.0)


def test_linear_world_end_to_end():
    """The same numbers as the closed rule of the world, features through `respond`."""
    world = LinearModels.sharing(0.3, seed=3)
    x, y = world.draw(2000, 1)
    a, b = world.maps(x, 0), world.maps(x, 1)
    table = metrics.parts(
        world.model(0), x, {"gi": a}, other_maps={"gi": b}, labels=y, drops=DROPS, perturbation=ZERO, progress=False
    )
    codes = rf.rank_codes(a, DROPS, ndim=1)
    arms = {"own": codes, "shape_null": metrics.null_maps(codes), "image_null": rf.rank_codes(b, DROPS, ndim=1)}
    expected = split(
        (x @ world.weights[0] > 0) == (y == 1), **{k: world.correct(x, y, 0, c, 3) for k, c in arms.items()}
    )
    for name in ("shape", "image", "model", "damage"):
        assert getattr(table["gi"], name).value == pytest.approx(float(expected.part(name).mean()), abs=1e-3)
    assert table["gi"].p_holm < 1e-6 and table["gi"].model.low > 0


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (24, 8, 8, 3), np.uint8)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 4))
    return net, images, np.arange(24) % 4, rng.random((3, 24, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("of", ["accuracy", "probability", "bits"])
@pytest.mark.parametrize("average", ["mean", "area"])
def test_images_with_linear_imputation(pictures, of, average):
    net, images, labels, maps = pictures
    named, other = {"a": maps[0], "same": maps[1]}, {"a": maps[2], "same": maps[1]}
    table = metrics.parts(
        net, images, named, other_maps=[other, other], labels=labels, of=of, average=average, draws=2, progress=False
    )
    row = table["a"]
    assert row.shape.value + row.image.value + row.model.value == pytest.approx(row.damage.value)
    # Equal maps are equal masks with equal noise: zero to the bit, not nearly.
    assert table["same"].model.value == table["same"].model.low == table["same"].model.high == 0
    assert table["same"].p == 1
    assert set(table.curves["a"]) == {"base", "own", "shape_null", "image_null"}
    np.testing.assert_array_equal(table.curves["same"]["own"], table.curves["same"]["image_null"])


@pytest.mark.parametrize("null", ["swap", "swap-class", "roll", "turn"])
def test_every_null(pictures, null):
    net, images, labels, maps = pictures
    table = metrics.parts(
        net, images, maps[0], other_maps=maps[1], labels=labels, null=null, drops=(0.5,), progress=False
    )
    assert np.isfinite(table["maps"].shape.value)


def test_powers_change_no_bit(pictures):
    net, images, labels, maps = pictures
    coarse = np.round(maps.astype(np.float64) * 4095) / 4095
    tables = [
        metrics.parts(net, images, coarse[0] ** p, other_maps=coarse[1] ** p, labels=labels, progress=False)
        for p in (1, 2)
    ]
    assert tables[0].records() == tables[1].records()


def test_equal_damages_share_a_range(pictures):
    net, images, labels, maps = pictures
    own = {n: metrics.respond(net, images, maps[i], labels=labels, progress=False) for i, n in enumerate("ab")}
    null = {
        n: metrics.respond(net, images, metrics.null_maps(maps[i]), labels=labels, progress=False)
        for i, n in enumerate("ab")
    }
    curves = metrics.equal_damages(own, null, of="probability", resamples=50)
    assert curves["a"].low == curves["b"].low
    with pytest.raises(ValueError, match="same estimators"):
        metrics.equal_damages(own, {"a": null["a"]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"of": "logit"}, "of must be one of accuracy, probability, bits, got 'logit'"),
        ({"draws": 0}, "draws must be an integer >= 1, got 0"),
        ({"other_maps": {"b": None}}, "other_maps must hold every estimator of maps, 'a' is missing"),
        ({"other_maps": []}, "at least one other model"),
        ({"maps": {}}, "maps must hold at least one estimator"),
        ({"null": "swop"}, "null must be one of swap"),
    ],
)
def test_bad_inputs(pictures, change, message):
    net, images, labels, maps = pictures
    arguments = {"maps": {"a": maps[0]}, "other_maps": {"a": maps[1]}, "labels": labels, "progress": False, **change}
    with pytest.raises(ValueError, match=message):
        metrics.parts(net, images, **arguments)


def test_untrained_and_given_models(pictures):
    """Maps of other models are made by `explain`; a model's own maps have no model part, nor an excess of it."""
    net, images, labels, _ = pictures
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255

    def gradients(model):
        at = x.clone().requires_grad_()
        model(at).gather(1, torch.from_numpy(labels)[:, None]).sum().backward()
        return {"grad": at.grad.abs().mean(1)}

    before = {k: v.clone() for k, v in net.state_dict().items()}
    options = {"labels": labels, "explain": gradients, "swap_others": True, "progress": False}
    table = metrics.parts(net, images, gradients(net), other_models=["untrained", metrics.untrained(net, 5)], **options)
    row = table["grad"]
    by_hand = metrics.parts(
        net,
        images,
        gradients(net),
        labels=labels,
        progress=False,
        other_maps=[gradients(metrics.untrained(net, 0)), gradients(metrics.untrained(net, 5))],
    )["grad"]
    assert row.model.value == by_hand.model.value and by_hand.model_excess is None
    assert row.model_excess is not None and np.isfinite(row.model_excess.low)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    own = metrics.parts(net, images, gradients(net), other_models=net, **options)["grad"]
    assert own.model.value == own.model_excess.value == own.model_excess.high == 0
    for message, change in (
        ("give either other_maps or other_models", {"other_models": None}),
        ("other_models must be models or 'untrained', got 'random'", {"other_models": "random"}),
        ("explain must be given with other_models", {"other_models": net, "explain": None}),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.parts(net, images, gradients(net), **{**options, **change})
    with pytest.raises(
        TypeError, match=r"other_models='untrained' needs a model that is a torch.nn.Module, got function"
    ):
        metrics.parts(lambda x: net(x), images, gradients(net), **options, other_models="untrained")
