"""Recipes, models and batch normalisation."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast.train import PRESETS, Recipe, build_model, get_recipe, load_weights, use_ghost_batch_norm  # noqa: E402


def test_presets_are_those_of_the_papers():
    for name in ("cifar10", "svhn"):
        r = PRESETS[name]
        assert (r.epochs, r.batch_size, r.momentum, r.schedule, r.lr, r.final_lr) == (50, 128, 0.9, "cosine", 0.1, 0.0)
    assert PRESETS["cifar10"].weight_decay == 5e-4
    assert PRESETS["svhn"].weight_decay == 1e-4
    cub = PRESETS["cub200"]
    assert (cub.epochs, cub.batch_size, cub.lr, cub.pretrained) == (50, 32, 0.01, True)
    road = PRESETS["cifar10-mmcls"]
    assert [road.lr_at(epoch * 10, 10) for epoch in (0, 99, 100, 150, 199)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.001, 0.001]
    )
    assert (road.epochs, road.batch_size, road.weight_decay, road.pad, road.flip) == (200, 128, 1e-4, 4, True)
    birds = PRESETS["cub200-mmcls"]
    assert (birds.epochs, birds.batch_size, birds.weight_decay, birds.nesterov) == (100, 64, 5e-4, True)
    assert (birds.crop, birds.random_crop, birds.pretrained, birds.warmup_epochs) == (448, True, True, 5)
    roar = PRESETS["imagenet-roar"]
    assert (roar.epochs, roar.warmup_epochs, roar.batch_size, roar.ghost_batch) == (90, 5, 4096, 128)


def test_cosine_schedule_rises_and_ends_at_zero():
    r = Recipe(epochs=10, lr=0.4, warmup_epochs=2)
    rates = [r.lr_at(step, 10) for step in range(100)]
    assert rates[0] == pytest.approx(0.4 / 20)
    assert max(rates) == pytest.approx(0.4)
    assert rates.index(max(rates)) in (19, 20)
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert rates[-1] < 0.001
    assert Recipe(epochs=10, lr=0.4).lr_at(50, 10) == pytest.approx(0.2)


def test_other_schedules():
    step = Recipe(epochs=10, schedule="step", milestones=(3, 6), lr=1.0)
    assert [round(step.lr_at(10 * e, 10), 6) for e in (0, 2, 3, 5, 6, 9)] == [1, 1, 0.1, 0.1, 0.01, 0.01]
    assert Recipe(schedule="constant").lr_at(999, 10) == 0.1
    assert Recipe(epochs=10, schedule="linear", lr=1.0, final_lr=0.5).lr_at(50, 10) == pytest.approx(0.75)


def test_scale_and_aspect_augmentation():
    """As the ROAR paper trained: a pack of 256, of which parts of random size and shape become 224."""
    recipe = get_recipe("imagenet-roar")
    assert (recipe.scale, recipe.ratio, recipe.crop) == ((0.08, 1.0), (3 / 4, 4 / 3), 224)
    assert recipe.as_dict()["scale"] == [0.08, 1.0]
    assert not {"scale", "ratio"} & set(get_recipe("cifar10").as_dict())  # hashes of stored runs stay valid
    root = Path(__file__).resolve().parents[2]
    for page in ("docs/training.md", "roarfast/study/presets/roar-imagenet.toml", "docs/data.md"):
        sizes = set(re.findall(r"--size (\d+)", (root / page).read_text()))
        assert sizes >= {"256"} and (page == "docs/data.md" or sizes == {"256"}), page


@pytest.mark.parametrize("scale", [None, (0.3, 1.0)])
def test_training_crops_and_evaluation_does_not(scale):
    import numpy as np

    import roarfast as rf
    from roarfast.data import DeviceDataset, Transform, load

    data = DeviceDataset(load("shapes", "test", n=8), "cpu")
    mine = Transform(crop=24, scale=scale, ratio=None if scale is None else (0.5, 2.0), flip=True, seed=3)
    x, _ = next(data.batches([np.arange(8)], mine, epoch=2))
    ratio = {} if scale is None else {"ratio": (0.5, 2.0)}
    expected = rf.gather_batch(
        data.dataset.images,
        np.arange(8),
        layout="NHWC",
        crop=24,
        scale=scale,
        flip=True,
        mean=data.dataset.mean,
        std=data.dataset.std,
        seed=3,
        epoch=2,
        **ratio,
    )
    np.testing.assert_array_equal(x.numpy(), expected)
    settings = {"epochs": 1, "batch_size": 4, "pad": 0, "random_crop": False, "crop": 24}
    recipe = get_recipe("quick", model="convnet", scale=scale, **settings)
    from roarfast.train import train

    result = train("convnet", data, data, recipe, seed=1)
    assert np.isfinite(result.accuracy)
    plain = train("convnet", data, data, get_recipe("quick", model="convnet", **settings), seed=1)
    same = all(torch.equal(a, b) for a, b in zip(result.model.parameters(), plain.model.parameters()))
    assert same == (scale is None)


def test_overrides_and_quick():
    assert get_recipe("quick", model="resnet8") == PRESETS["quick-resnet8"]
    assert get_recipe("quick", model="my.module:net") == PRESETS["quick-convnet"]
    r = get_recipe("cifar10", epochs=3, lr=0.2)
    assert (r.epochs, r.lr, r.weight_decay) == (3, 0.2, 5e-4)
    assert get_recipe(r, epochs=4).epochs == 4
    assert Recipe(**{**r.as_dict()}) == r


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("epochs", 0, "an int >= 1"),
        ("epochs", 2.5, "an int >= 1"),
        ("batch_size", True, "an int >= 1"),
        ("lr", 0.0, "a number > 0"),
        ("lr", "0.1", "a number > 0"),
        ("momentum", 1.0, r"in \[0, 1\)"),
        ("weight_decay", -1e-4, "a number >= 0"),
        ("schedule", "cosin", "one of cosine"),
        ("warmup_epochs", 51, r"in \[0, epochs = 50\]"),
        ("milestones", (30, 10), "rising epochs"),
        ("label_smoothing", 1.0, r"in \[0, 1\)"),
        ("precision", "fp8", "one of auto"),
        ("ghost_batch", 0, "an int >= 1 or None"),
        ("pad", -1, "an int >= 0"),
        ("clip_norm", 0.0, "a number > 0, or None"),
        ("scale", (0.5, 0.2), "two rising numbers"),
        ("scale", 0.5, "two rising numbers"),
        ("ratio", (1, 2, 3), "two rising numbers"),
    ],
)
def test_impossible_values(field, value, allowed):
    with pytest.raises(ValueError, match=f"recipe: {field} must be {allowed}"):
        Recipe(**{field: value})


def test_unknown_names():
    with pytest.raises(ValueError, match="recipe must be one of quick, cifar10"):
        get_recipe("cifar")
    with pytest.raises(ValueError, match="unknown recipe field 'learning_rate'"):
        get_recipe("cifar10", learning_rate=0.1)
    assert dataclasses.is_dataclass(Recipe)


@pytest.mark.parametrize(
    ("name", "size"), [("convnet", 32), ("convnet", 8), ("resnet8", 32), ("resnet18", 16), ("resnet50", 64)]
)
def test_models(name, size):
    model = build_model(name, 7, in_channels=1 if name == "convnet" and size == 8 else 3, seed=0)
    x = torch.zeros(2, 1 if size == 8 else 3, size, size)
    assert model(x).shape == (2, 7)


def test_seed_fixes_the_weights_and_nothing_else():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    a, b, c = (build_model("convnet", 10, seed=s).state_dict() for s in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert not torch.equal(a["fc.weight"], c["fc.weight"])


def tiny(num_classes):
    """A user's factory."""
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, num_classes))


def test_user_factories():
    assert build_model(tiny, 5)(torch.zeros(1, 3, 4, 4)).shape == (1, 5)
    assert build_model("test_train_recipe:tiny", 5)(torch.zeros(1, 3, 4, 4)).shape == (1, 5)
    with pytest.raises(ValueError, match="model must be one of convnet"):
        build_model("resnet", 10)
    with pytest.raises(ValueError, match="no_such_package"):
        build_model("no_such_package:net", 10)
    with pytest.raises(TypeError, match=r"must return a torch\.nn\.Module, got int"):
        build_model(lambda num_classes: num_classes, 10)


def test_weights_from_a_file(tmp_path):
    source = build_model("resnet8", 1000, seed=3)
    torch.save(source.state_dict(), tmp_path / "w.pt")
    model = build_model("resnet8", 5, seed=0, weights=tmp_path / "w.pt")
    assert torch.equal(model.layer3.conv2.weight, source.layer3.conv2.weight)
    assert load_weights(model, tmp_path / "w.pt") == ["fc.weight", "fc.bias"]
    with pytest.raises(ValueError, match="does not fit this model"):
        build_model("convnet", 5, weights=tmp_path / "w.pt")
    with pytest.raises(FileNotFoundError, match="model weights not found"):
        build_model("resnet8", 5, weights=tmp_path / "none.pt")


class Evil:
    """Runs code when unpickled."""

    def __reduce__(self):
        return (eval, ("1/0",))


def test_weights_are_never_unpickled(tmp_path):
    torch.save({"fc.weight": Evil()}, tmp_path / "w.pt")
    with pytest.raises(Exception, match="holds more than tensors"):
        build_model("resnet8", 5, weights=tmp_path / "w.pt")


def test_ghost_batch_norm_normalises_in_groups():
    torch.manual_seed(0)
    x = torch.randn(12, 4, 5, 5) * 3 + 1
    model = use_ghost_batch_norm(nn.Sequential(nn.BatchNorm2d(4)), 4)
    plain = nn.BatchNorm2d(4)
    expected = torch.cat([plain(part) for part in x.split(4)])
    torch.testing.assert_close(model(x), expected)
    means = torch.stack([part.mean((0, 2, 3)) for part in x.split(4)])
    torch.testing.assert_close(model[0].running_mean, 0.1 * means.mean(0))
    model.eval()
    plain.load_state_dict(model[0].state_dict())
    plain.eval()
    torch.testing.assert_close(model(x), plain(x))
    # A batch that fits one group is ordinary batch normalisation.
    a, b = use_ghost_batch_norm(nn.Sequential(nn.BatchNorm2d(4)), 12), nn.BatchNorm2d(4)
    assert torch.equal(a(x), b(x))
    assert torch.equal(a[0].running_var, b.running_var)
