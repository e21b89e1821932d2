"""Enhancement and attack by PGD: captum's steps, bounds, the claim of 004 on an untrained net; the fill `adversarial`."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402
from roarfast.metrics.inputs import read_inputs  # noqa: E402
from roarfast.metrics.pgd import adversarial_pixels  # noqa: E402

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def net(seed: int = 0, classes: int = 10) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 12, 3),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 25, classes),
    )


def pictures(n: int = 24, size: int = 16):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (n, 3, size, size), dtype=np.uint8), np.arange(n) % 10


def test_the_attack_is_captums() -> None:
    attack = pytest.importorskip("captum.robust").PGD
    images, y = pictures()
    torch.manual_seed(0)  # smooth: rounding cannot flip a ReLU, and with it whole gradients
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6 * 14 * 14, 10)).eval()
    unit = torch.from_numpy(images).float() / 255
    # captum's default loss is the log of an output that it takes for a probability; its bounds are numbers, so none.
    theirs = attack(model, loss_func=nn.CrossEntropyLoss(reduction="none")).perturb(
        unit, radius=0.05, step_size=0.01, step_num=7, target=torch.from_numpy(y)
    )
    ours = metrics.enhance(
        model, images, y, epsilon=0.05, alpha=0.01, steps=7, direction="attack", bounds=False, layout="NCHW"
    )
    away = (ours.images - theirs).abs()
    assert float((away > 1e-6).float().mean()) < 1e-3  # where the gradient is 0 up to rounding, its sign is free


@pytest.mark.parametrize("space", ["normalized", "pixel"])
def test_distance_and_bounds(space) -> None:
    model, (images, y) = net(), pictures()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    found = metrics.enhance(
        model,
        images,
        y,
        epsilon=0.1,
        alpha=0.02,
        steps=9,
        space=space,
        layout="NCHW",
        mean=MEAN,
        std=STD,
        random_start=True,
    )
    assert (found.distance <= 0.1 * (1 + 1e-5)).all() and (found.distance > 0.05).any()
    unit = found.images * torch.tensor(STD)[:, None, None] + torch.tensor(MEAN)[:, None, None]
    assert float(unit.min()) >= -1e-6 and float(unit.max()) <= 1 + 1e-6
    assert model.training and all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


def test_an_untrained_net_is_steered() -> None:
    """004, Table 2: from chance to nearly everything, in 0.3 of normalised units; it stops early if asked to."""
    images, y = pictures(60)
    found = metrics.enhance(net(), images, y, layout="NCHW", mean=MEAN, std=STD)
    assert found.accuracy_before < 0.4 and found.accuracy_after >= 0.95
    early = metrics.enhance(net(), images, y, layout="NCHW", mean=MEAN, std=STD, until="done")
    assert early.accuracy_after >= 0.95 and (early.steps_used < 30).mean() >= 0.95 and (found.steps_used == 30).all()
    attacked = metrics.enhance(net(), images, y, layout="NCHW", mean=MEAN, std=STD, direction="attack")
    assert attacked.accuracy_after <= attacked.accuracy_before


def test_no_images() -> None:
    images, y = pictures()
    found = metrics.enhance(net(), images[:0], y[:0], layout="NCHW")
    assert found.images.shape == (0, 3, 16, 16) and np.isnan(found.accuracy_after)


def test_bad_input() -> None:
    model, (images, y) = net(), pictures()
    for message, change in (
        ("direction must be one of enhance, attack, got 'up'", {"direction": "up"}),
        ("epsilon must be > 0, got 0", {"epsilon": 0}),
        (r"alpha must be at most epsilon \(0.01\), got 0.03", {"epsilon": 0.01}),
        ("steps must be an integer >= 1, got 0", {"steps": 0}),
        ("until must be None or 'done', got 'correct'", {"until": "correct"}),
        (r"labels must be in \[0, 10\)", {"labels": y + 8}),
    ):
        labels = change.pop("labels", y)
        with pytest.raises(ValueError, match=message):
            metrics.enhance(model, images, labels, layout="NCHW", **change)
    with pytest.raises(ValueError, match="does not depend on its input"):
        metrics.enhance(lambda x: torch.zeros(len(x), 10), images, y, layout="NCHW")


def test_the_fill_adversarial() -> None:
    """Removed pixels are those of the attacked image; with everything removed it is that image; batches do not matter."""
    model, (images, y) = net().eval(), pictures(12)
    maps = np.random.default_rng(1).random((12, 16, 16)).astype(np.float32)
    inputs = read_inputs(images, layout="NCHW", mean=MEAN, std=STD)
    hostile = adversarial_pixels(model, inputs, torch.from_numpy(y), torch.device("cpu"))
    assert hostile.dtype == torch.uint8 and 5 < int((hostile.int() - inputs.pixels.int()).abs().max()) <= 9
    how = metrics.Perturbation(fill="adversarial")
    options = {"labels": y, "perturbation": how, "layout": "NCHW", "mean": MEAN, "std": STD}
    got = metrics.respond(model, images, maps, (0.3, 0.7), **options)
    again = metrics.respond(model, images, maps, (0.3, 0.7), batch_size=5, **options)
    np.testing.assert_allclose(got.logit, again.logit, atol=1e-5)
    plain = metrics.respond(model, hostile, maps, (0.3,), labels=y, layout="NHWC", mean=MEAN, std=STD)
    np.testing.assert_allclose(got.empty.logit, plain.whole.logit, atol=1e-5)
    between = np.clip(images / np.float32(255) + np.float32(4e-4), 0, 1)  # off the grey levels: stays floating point
    floats = metrics.respond(model, between, maps, (0.3, 0.7), normalized=False, **options)
    predicted = metrics.respond(model, between, maps, (0.3,), normalized=False, scored="predicted", **options)
    np.testing.assert_array_equal(predicted.scored, predicted.whole.prediction)
    np.testing.assert_allclose(got.logit, floats.logit, atol=0.1)
    scores = metrics.evaluate(
        model,
        images,
        {"a": maps, "b": 1 - maps},
        labels=y,
        metrics=["deletion(fill=adversarial)", "insertion(fill=adversarial)"],
        layout="NCHW",
        mean=MEAN,
        std=STD,
        resamples=20,
    )
    assert np.isfinite(scores["deletion(fill=adversarial)"]["a"].value)
    with pytest.raises(ValueError, match="fill='adversarial' needs images"):
        metrics.respond(nn.Linear(4, 2), np.ones((3, 4)), np.ones((3, 4)), (0.5,), labels=[0, 1, 0], perturbation=how)
