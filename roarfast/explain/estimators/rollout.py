"""Attention rollout (Abnar and Zuidema, 2020): where the class token of a vision transformer looks, through all layers.

Attention of each layer, mean over heads, is mixed with the identity for the residual connection, A = (W + I) / 2, and the
layers are multiplied. It does not ask the class: every class of an image has the same map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from roarfast.explain.layers import token_grid
from roarfast.explain.record import Estimator


class _Attention(TorchFunctionMode):
    """Keeps the attention weights `[B, heads, T, T]` of every attention that is computed inside."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[Tensor] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if func is F.multi_head_attention_forward:
            asked = given.get("need_weights", True), given.get("average_attn_weights", True)
            out, weights = func(*args, **{**given, "need_weights": True, "average_attn_weights": False})
            self.weights.append(weights.detach())
            return out, (weights.mean(1) if asked[1] else weights) if asked[0] else None
        if func is F.scaled_dot_product_attention:
            self.weights.append(_weights(*args, **given).detach())
        return func(*args, **given)


def _weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The weights that torch's fused attention does not show."""
    if is_causal or enable_gqa:
        raise ValueError("rollout needs attention of all tokens to all tokens; this model's is causal or grouped")
    logits = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if attn_mask is not None:
        logits = logits.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else logits + attn_mask
    return logits.softmax(-1)


def rollout(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Maps `[B, 1, h, w]`, one value per patch; `target` is not used.

    Args:
        model: A vision transformer whose attention is `nn.MultiheadAttention` or `F.scaled_dot_product_attention`.
        x: Images `[B, C, H, W]`.
        target: Classes `[B]`.
    """
    with torch.enable_grad(), _Attention() as attention:
        model(x.detach().requires_grad_())  # with gradients torch takes no shortcut around its own attention
    shapes = {tuple(w.shape[-2:]) for w in attention.weights}
    if not shapes:
        raise ValueError("rollout needs a model with attention, found none: it is for vision transformers")
    if len(shapes) > 1 or any(w.ndim != 4 or w.shape[0] != x.shape[0] for w in attention.weights):
        raise ValueError(f"rollout needs the same tokens in every layer, got attention of shapes {sorted(shapes)}")
    tokens = attention.weights[0].shape[-1]
    extra, height, width = token_grid(tokens, int(x.shape[-2]), int(x.shape[-1]))
    identity = torch.eye(tokens, dtype=x.dtype, device=x.device)
    flow = identity.expand(len(x), tokens, tokens)
    for weights in attention.weights:
        flow = (weights.mean(1).to(x.dtype) + identity) / 2 @ flow
    # Without a class token the head averages over all of them.
    seen = flow[:, 0, extra:] if extra else flow.mean(1)
    return seen.reshape(len(x), 1, height, width)


ESTIMATORS = (
    # It looks at no layer, but the first maps that were stored say at which it does not.
    Estimator("rollout", "attention rollout", function=rollout, options=("gc_layer",), one_channel=True),
)
