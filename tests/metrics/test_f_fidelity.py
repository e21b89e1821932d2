"""F-Fidelity where the answer is known, and the model that is made used to missing pixels."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402
from roarfast.metrics.worlds import GaussianVotes  # noqa: E402


def test_truth_noise_and_its_reverse() -> None:
    """Features that vote: removing 10 % of the true half costs what the closed form says, of the other half nothing."""
    world = GaussianVotes.uniform(40, 20, 0.35)
    x, y = world.draw(4000, 0)
    truth = np.broadcast_to(world.predictive.astype(np.float64), x.shape)
    noise = np.random.default_rng(0).random(x.shape)
    name = "f_fidelity(sizes=(0.5,), fill=0.0, draws=2)"
    scores = metrics.evaluate(
        world.model(), x, {"truth": truth, "reverse": -truth, "noise": noise}, labels=y, metrics=[name], resamples=50
    )[name]
    kept = np.ones(40, bool)
    kept[:4] = False  # four of the predictive ones
    exact = world.accuracy(np.ones(40, bool)) - world.accuracy(kept)
    assert scores["truth"].value == pytest.approx(float(exact), abs=0.006)
    assert scores["reverse"].value == pytest.approx(-float(exact), abs=0.006)
    assert abs(scores["noise"].value) < 0.006
    assert (
        list(scores["truth"].curves) == ["Fid+ - Fid-", "Fid+", "Fid-"] and "not fine-tuned" in scores["truth"].notes[0]
    )


def test_finetuning_leaves_the_model_and_helps_where_pixels_are_missing() -> None:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (200, 3, 8, 8), dtype=np.uint8)
    labels = (images[:, 0].mean((1, 2)) > 127).astype(int)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    tuned = metrics.finetune(net, images, labels, beta=0.5, epochs=8, lr=1e-3, layout="NCHW", mean=0.5, std=0.25)
    again = metrics.finetune(net, images, labels, beta=0.5, epochs=8, lr=1e-3, layout="NCHW", mean=0.5, std=0.25)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items()) and net.training and not tuned.training
    assert all(torch.equal(a, b) for a, b in zip(tuned.parameters(), again.parameters()))
    maps = rng.random((200, 8, 8))
    options = {
        "labels": labels,
        "layout": "NCHW",
        "mean": 0.5,
        "std": 0.25,
        "perturbation": metrics.Perturbation(fill="dataset_mean"),
    }
    old, new = (metrics.respond(m, images, maps, (0.1, 0.4), **options).curve("probability") for m in (net, tuned))
    assert (new > old).all()
    score = metrics.get_score("f_fidelity", model=tuned, sizes=(0.2, 0.6), draws=1)
    found = metrics.evaluate(
        net, images, maps, labels=labels, metrics=[score], layout="NCHW", mean=0.5, std=0.25, resamples=20
    )
    assert not found[score.name].only.notes


def test_bad_input() -> None:
    net, x = nn.Linear(4, 2), np.ones((3, 4))
    for message, change in (
        (r"beta must be in \(0, 1\], got 0", {"beta": 0}),
        ("lr must be > 0", {"lr": 0}),
        ("epochs must be", {"epochs": 0}),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.finetune(net, x, [0, 1, 0], **change)
    for message, name in (
        (r"sizes must be in \(0, 1\)", "f_fidelity(sizes=(1.0,))"),
        ("draws must be", "f_fidelity(draws=0)"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.evaluate(net, x, x, labels=[0, 1, 0], metrics=[name])
