"""Models by `package.module:function`: torchvision's take no `in_channels`, others may."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")


from roarfast._objects import load_object
from roarfast.train import build_model


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed")
@pytest.mark.parametrize("name", ["torchvision.models:squeezenet1_1", "torchvision.models:mobilenet_v3_small"])
def test_torchvision_factories(name: str) -> None:
    model = build_model(name, 7, seed=0)
    assert model.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 7)


@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is not installed: pip install timm")
def test_timm_factories() -> None:
    from roarfast.explain import Explainer

    model = build_model("timm:vit_tiny_patch16_224", 7, 1, seed=0).eval()
    x = torch.rand(2, 1, 224, 224)
    assert model(x).shape == (2, 7)
    again = build_model("timm:vit_tiny_patch16_224", 7, 1, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters()))
    maps = Explainer(model, ["rollout", "gc"])(x)
    assert maps["rollout"].shape == maps["gc"].shape == (2, 224, 224) and maps["rollout"].std() > 0
    with pytest.raises(ValueError, match=r"has no model 'vit_tiny_patch16_225'; similar are .*vit_tiny_patch16_224"):
        build_model("timm:vit_tiny_patch16_225", 7)


def test_timm_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ValueError, match="pip install timm"):
        build_model("timm:vit_tiny_patch16_224", 7)


def test_in_channels_reach_a_factory_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets_by_name.py").write_text(
        "from torch import nn\n"
        "def net(num_classes, in_channels, **options):\n"
        "    return nn.Sequential(nn.Conv2d(in_channels, num_classes, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert build_model("nets_by_name:net", 4, 1)(torch.zeros(2, 1, 5, 5)).shape == (2, 4)


@pytest.mark.parametrize(
    ("text", "message"), [("nowhere", "of the form"), ("no_such_module:x", "No module named"), ("math:tau2", "tau2")]
)
def test_what_cannot_be_found_says_why(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_object(text)
