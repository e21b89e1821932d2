"""DeepSHAP through captum: closed form of a linear model, completeness of a net with ReLUs, no trace left."""

import warnings

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("captum")
from torch import nn  # noqa: E402

from roarfast.explain import Explainer  # noqa: E402
from roarfast.explain.estimators.deepshap import baselines, deepshap  # noqa: E402


def test_linear_model() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).eval()
    x, y = torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 2, 0])
    expected = net[1].weight[y].reshape(4, 3, 2, 2) * (x - baselines(x.shape[1:]).mean(0))
    torch.testing.assert_close(deepshap(net, x, y), expected.detach(), atol=1e-6, rtol=1e-5)


def test_completeness_and_the_explainer() -> None:
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6), nn.ReLU(), nn.Linear(6, 3)
    ).eval()
    x, y = torch.rand(2, 3, 6, 6), torch.tensor([2, 0])
    with torch.no_grad():
        gap = net(x).gather(1, y[:, None])[:, 0] - net(baselines(x.shape[1:]))[:, y].mean(0)
    torch.testing.assert_close(deepshap(net, x, y).sum((1, 2, 3)), gap, atol=1e-4, rtol=1e-3)
    maps = Explainer(net, ["deepshap"], batch_size=1)(x)
    torch.testing.assert_close(Explainer(net, ["deepshap"], batch_size=2)(x)["deepshap"], maps["deepshap"])
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    assert not any(m._forward_hooks or m._backward_hooks for m in net.modules())


def test_activations_that_captum_does_not_see_are_named() -> None:
    from captum.attr import DeepLift, Saliency

    from roarfast.explain import from_captum
    from roarfast.explain.deeplift import unseen_activations

    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU6(), nn.Flatten(), nn.Linear(64, 3), nn.GELU()).eval()
    x, y = torch.rand(2, 3, 6, 6), torch.tensor([2, 0])
    assert unseen_activations(net) == ["GELU", "ReLU6"]
    with pytest.warns(UserWarning, match="DeepLiftShap has no rule for GELU, ReLU6: it takes the plain gradient"):
        deepshap(net, x, y)
    with pytest.warns(UserWarning, match="captum's DeepLift has no rule for GELU, ReLU6"):
        Explainer(net, [from_captum(DeepLift(net))])(x)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*has no rule.*")
        Explainer(net, [from_captum(Saliency(net))])(x)
        deepshap(nn.Sequential(nn.Flatten(), nn.Linear(108, 3), nn.ReLU()).eval(), x, y)
