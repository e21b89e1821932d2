"""`convnet` pools faster where no gradient is asked for: the same bits, and hooks and types as they were."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn
from torch.nn import functional as F

from roarfast.train import build_model


def pools(model: nn.Module) -> list[nn.MaxPool2d]:
    return [m for m in model.modules() if isinstance(m, nn.MaxPool2d)]


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("size", [(32, 32), (8, 8), (1, 1), (7, 10), (10, 7), (2, 1)])
def test_pooling_has_the_bits_of_torch_with_and_without_gradient(
    size: tuple[int, int], memory: torch.memory_format
) -> None:
    x = torch.randn(3, 5, *size).to(memory_format=memory)
    x[0, 0, 0, 0], x[1, 0, -1, -1], x[2, 1] = torch.nan, torch.inf, -torch.inf
    expected = F.max_pool2d(x, 2, ceil_mode=True)
    pool = pools(build_model("convnet", 10, seed=0))[0]
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            found = pool(x)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        assert found.is_contiguous(memory_format=memory)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_pooling_of_other_dtypes(dtype: torch.dtype) -> None:
    x = torch.randn(2, 3, 6, 6).to(dtype)
    with torch.no_grad():
        assert torch.equal(pools(build_model("convnet", 10, seed=0))[0](x), F.max_pool2d(x, 2, ceil_mode=True))


def test_the_net_answers_the_same_with_and_without_gradient_and_as_a_copy() -> None:
    model = build_model("convnet", 10, seed=0).eval()
    x = torch.randn(4, 3, 32, 32)
    expected = model(x).detach()
    for other in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad():
            assert torch.equal(other(x), expected)


def test_attribution_methods_meet_torchs_own_pooling() -> None:
    model = build_model("convnet", 10, seed=0).eval()
    assert [type(m) for m in pools(model)] == [nn.MaxPool2d] * 3
    seen: list[tuple[int, ...]] = []

    def note(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
        seen.append(tuple(out.shape))

    for pool in pools(model):
        pool.register_forward_hook(note)
    with torch.no_grad():
        model(torch.zeros(1, 3, 32, 32))
    assert seen == [(1, 16, 16, 16), (1, 48, 8, 8), (1, 96, 4, 4)]
