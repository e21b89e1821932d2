"""Extremal perturbation: the mask finds what the model reads, has the area asked for, and leaves the model alone."""

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast.explain import Explainer  # noqa: E402
from roarfast.explain.estimators.extremal import _bumps, extremal  # noqa: E402


class Corner(nn.Module):
    """Reads how strongly the upper left quarter varies: blurring it away loses class 1."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(20.0))

    def forward(self, x):
        score = self.scale * x[:, :, :8, :8].square().mean((1, 2, 3))
        return torch.stack([-score, score], 1)


def test_the_mask_is_where_the_model_reads() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 1, 16, 16), torch.ones(3, dtype=torch.int64)
    mask = extremal(Corner(), x, y, area=0.25, steps=120)
    assert mask.shape == (3, 1, 16, 16) and float(mask.min()) >= 0 and float(mask.max()) <= 1
    inside, outside = mask[..., :6, :6].mean(), mask[..., 10:, 10:].mean()
    assert inside > 0.7 and outside < 0.15, (inside, outside)
    assert (mask.mean((1, 2, 3)) - 0.25).abs().max() < 0.1
    torch.testing.assert_close(extremal(Corner(), x, y, area=0.25, steps=120), mask)


def test_bumps() -> None:
    bump = _bumps(3, 4, 1.0)
    assert bump.shape == (12, 12) and torch.equal(bump, bump.T)
    assert bump[0, 0] == 1 and bump[0, 1] == 1 and bump[0, 2] == pytest.approx(torch.exp(torch.tensor(-0.25)).item())


def test_through_the_explainer() -> None:
    model, x = Corner(), torch.randn(2, 1, 16, 16)
    maps = Explainer(model, ["experturb"])(x)
    assert maps["experturb"].shape == (2, 16, 16) and model.scale.grad is None
    with pytest.raises(ValueError, match=r"area must be in \(0, 1\), got 1"):
        extremal(model, x, torch.ones(2, dtype=torch.int64), area=1)
