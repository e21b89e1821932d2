"""The selection ops as torch operators: opcheck (schema, fake, dispatch) and torch.compile."""

from __future__ import annotations

import pytest

import roarfast as rf

torch = pytest.importorskip("torch")


@pytest.fixture
def maps() -> torch.Tensor:
    return torch.randn(2, 6, 7, generator=torch.Generator().manual_seed(0))


def test_opcheck(maps) -> None:
    rf.ops.register_torch()
    ops = torch.ops.roarfast
    x, index = torch.rand(2, 3, 6, 7), torch.tensor([4, 2])
    mask = maps > 0
    calls = [
        (ops.percentile, (maps, [10.0, 90.0], False, 2, True)),
        (ops.percentile, (maps, [10.0], True, 1, False)),
        (ops.removal_mask, (maps, index, 0.3, 2, "exact", "morf", False, 1, True)),
        (ops.removal_mask, (maps, None, 0.3, 1, "percentile", "lerf", True, 1, False)),
        (ops.rank_codes, (maps, index, [0.1, 0.5], 2, "exact", "morf", 0, True)),
        (ops.removed_fraction, (torch.zeros(2, 4, 4, dtype=torch.uint8), 1, 2)),
        (ops.fill, (x, mask, None, torch.rand(3, dtype=torch.float64), None, index, "values", "NCHW", 0.0, 1.0, 0)),
        (ops.fill, (x, mask, [0.1, 0.2, 0.3], None, None, None, "values", "NCHW", 0.0, 1.0, 0)),
        (ops.fill, (x, mask, None, None, x.flip(0), None, "image", "NCHW", 0.0, 1.0, 0)),
        (
            ops.remove,
            (x, maps, None, None, None, index, 0.4, "exact", "morf", False, 0, True, "kept_mean", "NCHW", 0.0, 1.0),
        ),
    ]
    for op, args in calls:
        torch.library.opcheck(op.default, args)


def test_compile(maps) -> None:
    rf.removal_mask(maps, 0.5)
    compiled = torch.compile(lambda a: rf.removal_mask(a.abs(), 0.5).sum(), fullgraph=True, backend="eager")
    assert compiled(maps) == rf.removal_mask(maps.abs(), 0.5).sum()


def test_not_differentiable(maps) -> None:
    assert not rf.removal_mask(maps.requires_grad_(), 0.5).requires_grad
