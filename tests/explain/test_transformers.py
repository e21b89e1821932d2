"""Vision transformers: rollout against ten lines, Grad-CAM on token grids, models with and without class token."""

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from roarfast.explain import Explainer, Options  # noqa: E402
from roarfast.explain.estimators.rollout import rollout  # noqa: E402
from roarfast.explain.layers import find_layer, token_grid  # noqa: E402


class Block(nn.Module):
    """A block as torchvision's: nn.MultiheadAttention, asked for no weights; or with torch's fused attention."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__()
        self.norm1, self.norm2, self.fused = nn.LayerNorm(width), nn.LayerNorm(width), fused
        self.attn = FusedAttention(width) if fused else nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm1(x)
        x = x + (self.attn(h) if self.fused else self.attn(h, h, h, need_weights=False)[0])
        return x + self.mlp(self.norm2(x))


class FusedAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, fused: bool = False, token: bool = True, depth: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8)) if token else None
        self.place = nn.Parameter(torch.randn(1, 16 + token, 8))
        self.blocks = nn.Sequential(*(Block(8, fused) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        h = self.patches(x).flatten(2).mT
        if self.token is not None:
            h = torch.cat([self.token.expand(len(h), -1, -1), h], 1)
        h = self.norm(self.blocks(h + self.place))
        return self.head(h[:, 0] if self.token is not None else h.mean(1))


def attention_by_hand(model, x):
    """The weights of every layer `[B, T, T]`, mean over heads, from the blocks' own parts."""
    h = model.patches(x).flatten(2).mT
    if model.token is not None:
        h = torch.cat([model.token.expand(len(h), -1, -1), h], 1)
    h = h + model.place
    for block in model.blocks:
        n = block.norm1(h)
        weight, bias = (
            (block.attn.qkv.weight, block.attn.qkv.bias)
            if block.fused
            else (block.attn.in_proj_weight, block.attn.in_proj_bias)
        )
        q, k, _ = F.linear(n, weight, bias).unflatten(2, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        yield (q @ k.mT / 4**0.5).softmax(-1).mean(1)
        h = block(h)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("token", [True, False])
def test_rollout_is_ten_lines(fused, token) -> None:
    model, x = Transformer(fused, token).eval(), torch.rand(3, 3, 16, 16)
    with torch.no_grad():
        flow = torch.eye(16 + token).expand(3, -1, -1)
        for weights in attention_by_hand(model, x):
            mixed = 0.5 * weights + 0.5 * torch.eye(16 + token)
            flow = (mixed / mixed.sum(-1, keepdim=True)) @ flow
        expected = (flow[:, 0, 1:] if token else flow.mean(1)).reshape(3, 4, 4)
    torch.testing.assert_close(rollout(model, x, torch.zeros(3, dtype=torch.int64))[:, 0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("fused", [False, True])
def test_gradcam_on_tokens(fused) -> None:
    """Activation times mean gradient over the patches, class token left out, at the last norm before attention."""
    model, x = Transformer(fused).eval(), torch.rand(2, 3, 16, 16)
    assert find_layer(model, None, x[:1], tokens=True)[0] == "blocks.2.norm1"
    got = Explainer(model, ["gc"], options=Options(gc_relu=False))(x)["gc"]
    kept = []
    handle = model.blocks[2].norm1.register_forward_hook(lambda m, i, o: kept.append(o))
    logits = model(x)
    handle.remove()
    (gradient,) = torch.autograd.grad(logits.amax(1).sum(), kept[0])
    act, grad = (t[:, 1:].mT.reshape(2, 8, 4, 4) for t in (kept[0].detach(), gradient))
    expected = (act * grad.mean((2, 3), keepdim=True)).sum(1, keepdim=True)
    expected = F.interpolate(expected, (16, 16), mode="bilinear", align_corners=False)[:, 0].abs()
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)
    named = Explainer(model, ["gc"], options=Options(gc_relu=False, gc_layer="blocks.1.norm1"))(x)["gc"]
    assert not torch.equal(named, got)


def test_the_explainer_takes_rollout() -> None:
    model, x = Transformer().train(), torch.rand(2, 3, 16, 16)
    maps = Explainer(model, ["rollout", "gc", "grad"])(x)
    assert maps["rollout"].shape == (2, 16, 16) and (maps["rollout"] > 0).all() and model.training


def test_torchvision_vit() -> None:
    from roarfast._torchvision import import_torchvision

    vit = import_torchvision().models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5).eval()
    x = torch.rand(2, 3, 32, 32)
    maps = Explainer(vit, ["rollout", "gc"])(x)
    assert maps["rollout"].shape == maps["gc"].shape == (2, 32, 32)
    assert find_layer(vit, None, x[:1], tokens=True)[0] == "encoder.layers.encoder_layer_1.ln_1"


def test_errors() -> None:
    with pytest.raises(ValueError, match="rollout needs a model with attention, found none"):
        rollout(
            nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), torch.rand(1, 3, 2, 2), torch.zeros(1, dtype=torch.int64)
        )
    with pytest.raises(ValueError, match="14 tokens do not lie on a grid of square patches of an image of 32x32"):
        token_grid(14, 32, 32)
