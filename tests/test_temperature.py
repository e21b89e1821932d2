"""Temperature scaling: fitted on one half, tried on the other, from sums over batches alone."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn
from torch.nn import functional as F

from roarfast._temperature import TEMPERATURES, UNSCALED, fit, losses_at, split_halves
from roarfast.data import load
from roarfast.data.device import DeviceDataset
from roarfast.metrics.engine import respond
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.responses import Responses
from roarfast.train import evaluate


def draw(n: int = 400, classes: int = 5, sharpness: float = 1.0) -> tuple[Tensor, Tensor]:
    """Logits, and labels drawn from their softmax; logits are then made so many times too large."""
    logits = 2 * torch.randn(n, classes, generator=torch.Generator().manual_seed(1))
    labels = torch.multinomial(logits.softmax(1), 1, generator=torch.Generator().manual_seed(2))[:, 0]
    return logits * sharpness, labels


def test_halves_are_fixed_by_the_seed_and_as_even_as_can_be() -> None:
    for n in (0, 1, 2, 11, 2000):
        assert split_halves(n, 5).sum() == n // 2
    assert (split_halves(2000, 5) == split_halves(2000, 5)).all()
    assert 0.4 < (split_halves(2000, 5) == split_halves(2000, 6)).mean() < 0.6


def test_losses_are_those_of_torch_at_every_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels = draw()
    found = losses_at(logits, labels)
    for j, temperature in enumerate(TEMPERATURES):
        expected = F.cross_entropy(logits / temperature, labels, reduction="none")
        torch.testing.assert_close(found[:, j], expected, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr("roarfast._temperature._VALUES", 7 * len(TEMPERATURES) * 5)
    assert torch.equal(losses_at(logits, labels), found), "in pieces, the same"
    assert losses_at(logits[:0], labels[:0]).shape == (0, len(TEMPERATURES))


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
def test_the_fit_undoes_what_was_done_to_the_confidence(sharpness: float) -> None:
    logits, labels = draw(4000, sharpness=sharpness)
    losses = losses_at(logits, labels).double().numpy()
    found = fit(np.stack([losses[:2000].mean(0), losses[2000:].mean(0)]))
    assert found is not None and found.temperature == pytest.approx(sharpness, rel=0.2)
    honest = float(F.cross_entropy(logits[2000:] / sharpness, labels[2000:]))
    assert found.cross_entropy == pytest.approx(honest, abs=0.01)


def test_without_samples_in_a_half_there_is_no_fit() -> None:
    assert fit(np.full((2, len(TEMPERATURES)), np.nan)) is None


class Flat(nn.Module):
    """A linear model whose logits are far too large."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(3 * 32 * 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return 9 * self.head(x.flatten(1))


def test_evaluate_gives_the_same_numbers_and_the_scaled_loss_beside_them() -> None:
    data = DeviceDataset(load("shapes", "test", n=61))
    halves = split_halves(61, 0)
    plain = evaluate(Flat(), data, batch_size=16)
    found = evaluate(Flat(), data, batch_size=16, halves=halves)
    assert (plain.accuracy, plain.loss, plain.true_class_probability) == (
        found.accuracy,
        found.loss,
        found.true_class_probability,
    )
    assert plain.scaled is None and found.scaled is not None
    x, y = next(data.batches([np.arange(61)]))
    losses = losses_at(Flat()(x).detach(), y).double().numpy()
    expected = fit(np.stack([losses[halves].mean(0), losses[~halves].mean(0)]))
    assert expected is not None and found.scaled.temperature == expected.temperature > 1
    assert found.scaled.cross_entropy == pytest.approx(expected.cross_entropy, rel=1e-5)
    assert found.scaled.cross_entropy < losses[~halves, UNSCALED].mean(), "sharp logits cost more than they must"
    assert evaluate(Flat(), DeviceDataset(load("shapes", "test", n=1)), halves=split_halves(1, 0)).scaled is None


@pytest.mark.parametrize("killed", [False, True])
def test_responses_keep_the_losses_of_halves_also_over_a_kill(tmp_path: Path, killed: bool) -> None:
    data, model = load("shapes", "test", n=40), Flat()
    maps = np.random.default_rng(0).random((40, 32, 32), np.float32)
    halves = split_halves(40, 0)
    options: dict[str, Any] = {
        "labels": data.labels,
        "drops": (0.3, 0.7),
        "batch_size": 8,
        "scored": "predicted",
        "progress": False,
        "perturbation": Perturbation(fill="zero"),
    }
    before = respond(model, data.images, maps, **options)
    assert before.losses is None and before.cross_entropy() is None and before.scaled() == [None, None]
    if killed:
        seen: list[int] = []

        def dies_once(x: Tensor) -> Tensor:
            seen.append(len(x))
            if len(seen) == 13:
                raise KeyboardInterrupt
            return model(x)

        with pytest.raises(KeyboardInterrupt):
            respond(dies_once, data.images, maps, **options, halves=halves, file=tmp_path / "a.npz")
        found = respond(dies_once, data.images, maps, **options, halves=halves, file=tmp_path / "a.npz")
        assert sum(seen[13:]) < 200, "the part that was there was not asked again"
    else:
        found = respond(model, data.images, maps, **options, halves=halves, file=tmp_path / "a.npz")
    again = Responses.load(tmp_path / "a.npz")
    direct = respond(model, data.images, maps, **options, halves=halves)
    for one in (found, again, direct):
        assert one.losses is not None and one.halves is not None
        np.testing.assert_array_equal(one.losses, found.losses)
        np.testing.assert_array_equal(one.halves, halves)
        np.testing.assert_array_equal(one.logit, before.logit)
    # The entropy is that of the labels, whatever class was scored.
    known = respond(model, data.images, maps, **(options | {"scored": "label"}))
    entropies = found.cross_entropy()
    assert entropies is not None
    np.testing.assert_allclose(entropies, -np.log(known.probability).mean(1), rtol=1e-5)
    assert all(one is not None and one.temperature > 1 for one in found.scaled())


def test_halves_must_be_one_bool_per_sample() -> None:
    images, maps = np.zeros((5, 32, 32, 3), np.uint8), np.random.default_rng(0).random((5, 32, 32))
    with pytest.raises(ValueError, match=r"halves must be bool \(5,\), True for the samples to fit on, got .* \(4,\)"):
        respond(Flat(), images, maps, labels=[0] * 5, halves=np.ones(4, bool))
