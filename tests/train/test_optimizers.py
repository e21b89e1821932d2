"""Optimisers of a recipe against torch.optim written out, and in the loop."""

import numpy as np
import pytest
import torch
from torch import nn

from roarfast.data import load
from roarfast.train import get_recipe, train
from roarfast.train.models import build_model
from roarfast.train.optimizers import BUILDERS, make_optimizer
from roarfast.train.recipe import OPTIMIZERS, Recipe

PLAIN = {
    "sgd": lambda g, r: torch.optim.SGD(g, lr=r.lr, momentum=r.momentum, nesterov=r.nesterov, foreach=False),
    "adam": lambda g, r: torch.optim.Adam(g, lr=r.lr, betas=r.betas, foreach=False),
    "adamw": lambda g, r: torch.optim.AdamW(g, lr=r.lr, betas=r.betas, foreach=False),
}


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("decay_norm", [True, False])
def test_steps_are_those_of_torch(name, decay_norm):
    recipe = Recipe(optimizer=name, lr=0.01, betas=(0.8, 0.99), weight_decay=0.1, decay_norm=decay_norm)
    ours, theirs = net(), net()
    groups = [{"params": [p], "weight_decay": 0.1 if decay_norm or p.ndim > 1 else 0.0} for p in theirs.parameters()]
    a, b = make_optimizer(ours, recipe), PLAIN[name](groups, recipe)
    x, y = torch.randn(20, 6, dtype=torch.float64), torch.arange(20) % 3
    for _ in range(10):
        for model, optimizer in ((ours, a), (theirs, b)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-10, atol=1e-12)


def test_every_name_has_a_builder():
    assert tuple(BUILDERS) == OPTIMIZERS


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_killed_training_ends_with_the_same_weights(name, tmp_path):
    data = [load("shapes", split, n=128) for split in ("train", "test")]
    recipe = get_recipe("quick", model="convnet", epochs=2, batch_size=32, optimizer=name, lr=1e-3, nesterov=False)
    whole = train("convnet", *data, recipe, progress="none")

    class Stop(Exception):
        pass

    from roarfast._progress import Progress

    class Killer(Progress):
        def _show(self):
            if self.done == 6:
                raise Stop

    file = tmp_path / "state.pt"
    with pytest.raises(Stop):
        train("convnet", *data, recipe, progress=Killer(), checkpoint=file, checkpoint_seconds=0)
    resumed = train("convnet", *data, recipe, progress="none", checkpoint=file)
    assert resumed.resumed_at is not None
    assert resumed.step_losses == whole.step_losses
    for p, q in zip(whole.model.parameters(), resumed.model.parameters()):
        assert torch.equal(p, q)
    assert np.mean(whole.step_losses[-2:]) < np.mean(whole.step_losses[:2])


def test_hashes_of_stored_runs_stay_valid():
    assert "optimizer" not in Recipe().as_dict() and "betas" not in Recipe().as_dict()
    assert Recipe(optimizer="adam").as_dict()["optimizer"] == "adam"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimizer": "Adam"}, "optimizer must be one of sgd, adam, adamw, got 'Adam'"),
        ({"betas": (0.9,)}, r"betas must be two numbers in \[0, 1\)"),
        ({"betas": (0.9, 1.0)}, r"betas must be two numbers in \[0, 1\), got \(0\.9, 1\.0\)"),
    ],
)
def test_bad_values(change, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**change)


def test_tiny_resnet_has_eight_blocks():
    model = build_model("resnet18-tiny", 7, in_channels=1, seed=0)
    assert sum(type(m).__name__ == "ResidualBlock" for m in model.modules()) == 8
    assert sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in model.modules()) == 17
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 7)
