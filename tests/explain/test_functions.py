"""DeConvNet, linear approximation, excitation backprop and the information bottleneck: captum, closed forms, loops."""

import numpy as np
import pytest
import torch
from torch import nn

from roarfast.explain import Explainer
from roarfast.explain.estimators import known
from roarfast.explain.estimators.bottleneck import bottleneck, information
from roarfast.explain.estimators.deconvnet import deconvnet
from roarfast.explain.estimators.excitation import excitation
from roarfast.explain.estimators.linear_approx import linear_approx
from roarfast.explain.names import parse
from roarfast.train.models import build_model


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(5, 6, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 8),
        nn.ReLU(),
        nn.Linear(8, 4),
    ).eval()


def pictures(n=4):
    return torch.randn(n, 3, 8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(n) % 4


@pytest.mark.parametrize(
    "name", [n for n, e in known().items() if e.function and n != "rollout"]
)  # which needs attention
def test_through_the_explainer(name):
    model, (x, _) = net(), pictures()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    maps = Explainer(model, [name, f"{name}^2"], batch_size=4)(x)
    assert maps[name].shape == (4, 8, 8) and torch.isfinite(maps[name]).all() and maps[name].any()
    again = Explainer(model, [name], batch_size=4)(x)
    torch.testing.assert_close(again[name], maps[name], rtol=0, atol=0)
    assert str(parse(name)) == name
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])
    assert all(p.grad is None for p in model.parameters()) and not model[0]._forward_hooks


def test_deconvnet_is_captums():
    attr = pytest.importorskip("captum.attr")
    model, (x, y) = net(), pictures()
    with pytest.warns(UserWarning):
        expected = attr.Deconvolution(model).attribute(x.clone().requires_grad_(), target=y)
    torch.testing.assert_close(deconvnet(model, x, y), expected.detach(), rtol=1e-5, atol=1e-7)


def test_deconvnet_of_functional_and_in_place_relus():
    class Functional(nn.Module):
        def __init__(self, in_place):
            super().__init__()
            torch.manual_seed(0)
            self.a, self.b, self.in_place = nn.Linear(12, 9), nn.Linear(9, 3), in_place

        def forward(self, x):
            h = self.a(x.flatten(1))
            return self.b(h.relu_() if self.in_place else torch.relu(h))

    x = torch.randn(2, 3, 2, 2)
    maps = [deconvnet(Functional(p), x, torch.tensor([0, 2])) for p in (False, True)]
    torch.testing.assert_close(maps[0], maps[1])
    w = Functional(False)
    by_hand = (w.b.weight[[0, 2]].relu() @ w.a.weight).reshape(2, 3, 2, 2)
    torch.testing.assert_close(maps[0], by_hand.detach())


def test_linear_approximation_in_closed_form():
    """After the layer: mean over places, then linear. So the gradient is w / (h w)."""
    torch.manual_seed(0)
    conv, fc = nn.Conv2d(3, 5, 3), nn.Linear(5, 4)
    model = nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), fc).eval()
    x, y = pictures()
    expected = torch.einsum("bkhw,bk->bhw", conv(x) * (conv(x) > 0), fc.weight[y]) / 36
    torch.testing.assert_close(linear_approx(model, x, y, layer="0")[:, 0], expected.detach())


def test_excitation_by_loops():
    """A chain of linear layers on positive activations: P(a_j) = sum_i P(a_i) a_j w+_ij / sum_j' a_j' w+_ij'."""
    torch.manual_seed(0)
    conv, first, last = nn.Conv2d(1, 2, 1), nn.Linear(18, 6), nn.Linear(6, 3)
    model = nn.Sequential(conv, nn.ReLU(), nn.Flatten(), first, nn.ReLU(), last).double().eval()
    x = torch.rand(1, 1, 3, 3, dtype=torch.float64)
    a0 = conv(x).relu().flatten().detach().numpy()
    a1 = first(torch.from_numpy(a0)).relu().detach().numpy()
    top = np.eye(3)[1]
    for a, layer in ((a1, last), (a0, first)):
        weight = np.maximum(layer.weight.detach().numpy(), 0)
        below = np.zeros(len(a))
        for i, p in enumerate(top):
            z = sum(a[j] * weight[i, j] for j in range(len(a)))
            if z > 0:
                for j in range(len(a)):
                    below[j] += p * a[j] * weight[i, j] / z
        top = below
    got = excitation(model, x, torch.tensor([1]), layer="0")
    np.testing.assert_allclose(got.numpy().ravel(), top.reshape(2, 9).sum(0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["convnet", "resnet8"])
def test_excitation_is_a_probability(name):
    """Sums of branches, normalisation, pooling: nothing is counted twice."""
    model = build_model(name, 10, seed=0).eval()
    x = torch.rand(3, 3, 32, 32)
    maps = excitation(model, x, torch.tensor([0, 4, 9]))
    assert (maps >= 0).all()
    total = maps.sum((1, 2, 3))
    assert (total <= 1 + 1e-4).all() and (total > 0.2).all(), total


def test_information_is_the_divergence():
    gate, r = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([-2.0, 0.3, 1.0])
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(gate * r, 1 - gate), normal(0.0, 1.0)) / np.log(2)
    torch.testing.assert_close(information(gate, r), expected)


def test_the_bottleneck_lets_through_what_the_class_needs():
    """A model that reads the left half only: bits are spent there, and few on the right."""

    class Left(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1, bias=False)
            nn.init.ones_(self.conv.weight)

        def forward(self, x):
            score = 8 * self.conv(x)[..., :4].mean((1, 2, 3))
            return torch.stack([-score, score], 1)

    x = torch.randn(6, 1, 8, 8)
    x[..., :4] += torch.tensor([1.5, -1.5] * 3)[:, None, None, None]
    torch.manual_seed(0)
    maps = bottleneck(Left().eval(), x, torch.tensor([1, 0] * 3), layer="conv", beta=0.2)
    assert (maps >= 0).all()
    assert maps[..., :4].mean() > 3 * maps[..., 4:].mean()
    with pytest.raises(ValueError, match="beta must be > 0, got 0"):
        bottleneck(Left(), x, torch.tensor([1, 0] * 3), beta=0)


def test_layers_and_seeds_are_part_of_the_identity():
    """Stored maps of another layer, or of other noise, are not used again."""
    from roarfast.explain.generation import identity_of
    from roarfast.explain.options import Options

    def identity(name, layer, seed):
        explainer = Explainer(net(), [name], options=Options(gc_layer=layer), seed=seed)
        return identity_of(explainer, parse(name), "model", "data")

    for name in ("linear-approx", "excitation", "iba"):
        assert identity(name, "0", 0) != identity(name, "3", 0)
    assert identity("deconvnet", "0", 0) == identity("deconvnet", "3", 0)
    assert identity("iba", "0", 0) != identity("iba", "0", 1)
    assert identity("excitation", "0", 0) == identity("excitation", "0", 1)


def test_stored_without_aggregation(tmp_path):
    from roarfast.explain import AttributionStore, generate

    model, (x, _) = net(), pictures()
    explainer = Explainer(model, ["deconvnet", "excitation"], aggregate="none(raw)", batch_size=4)
    stored = generate(AttributionStore(tmp_path), explainer, x)
    expected = explainer(x)
    for name in ("deconvnet", "excitation"):
        np.testing.assert_allclose(np.asarray(stored[name][:]), expected[name].numpy(), rtol=1e-5, atol=1e-7)
