"""Ops and batches never make the host wait for the device, so that CUDA-graph capture holds and training overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import roarfast as rf

torch = pytest.importorskip("torch")

from helpers.host_sync import counted  # noqa: E402

X = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
A = X.mean(1)
MASK = A > 0.5
IDS = torch.tensor([1, 0])
BYTES = (X * 255).to(torch.uint8)
CODES = rf.rank_codes(A, [0.1, 0.5])
CALLS: dict[str, Any] = {
    "gaussian_filter": lambda: rf.gaussian_filter(X, 1),
    "maximum_filter": lambda: rf.maximum_filter(X, 3),
    "sobel": lambda: rf.sobel(X),
    "total_variation": lambda: rf.total_variation(X),
    "percentile": lambda: rf.percentile(A, [10, 50], nan="ignore"),
    "removal_mask": lambda: rf.removal_mask(A, 0.5, nan="ignore", index=IDS),
    "rank_codes": lambda: rf.rank_codes(A, [0.1, 0.5], nan="ignore"),
    "removed_fraction": lambda: rf.removed_fraction(CODES, 1),
    "code_sums": lambda: rf.code_sums(A, CODES, 3, check_result=False),
    "distance_transform": lambda: rf.distance_transform(MASK),
    "mask_geometry": lambda: rf.mask_geometry(MASK),
    "fill": lambda: rf.fill(X, MASK, 0.5),
    "fill channels": lambda: rf.fill(X, MASK, (0.1, 0.2, 0.3)),
    "fill mean": lambda: rf.fill(X, MASK, "kept_mean"),
    "fill blur": lambda: rf.fill(X, MASK, "blur"),
    "fill noise": lambda: rf.fill(X, MASK, "noise", index=IDS),
    "remove": lambda: rf.remove(X, A, 0.3, fill=(0.1, 0.2, 0.3), nan="ignore"),
    "pixel_random": lambda: rf.pixel_random((2, 8, 8), index=IDS, device="cpu"),
    "block_random": lambda: rf.block_random((2, 8, 8), 0.3, device="cpu"),
    "philox_normal": lambda: rf.philox_normal(IDS, (3, 4)),
    "impute_linear": lambda: rf.impute_linear(X, MASK, check_result=False, index=IDS),
    "gather_batch_resized": lambda: rf.gather_batch(BYTES, IDS, CODES, 1, (1.0, 2.0, 3.0), flip=True, scale=(0.1, 1.0)),
    "gather_batch": lambda: rf.gather_batch(BYTES, IDS, CODES, 1, (1.0, 2.0, 3.0), flip=True, pad=1, random_crop=True),
}


def test_every_op_is_called() -> None:
    from roarfast.ops import _op

    assert {op.name for op in _op._ops} <= {name.split()[0] for name in CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_no_op_waits_after_its_first_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = CALLS[name]()
    with counted(monkeypatch) as syncs:
        result = CALLS[name]()
    assert dict(syncs) == {}
    assert torch.equal(result, expected)


@pytest.mark.parametrize(
    ("call", "reads"),
    [
        (lambda: rf.removal_mask(A, 0.5), {"__bool__": 1}),
        (lambda: rf.impute_linear(X, MASK), {"cpu": 1, "numpy": 1}),
        (lambda: rf.code_sums(A, CODES, 3), {"__bool__": 1}),
    ],
    ids=["removal_mask", "impute_linear", "code_sums"],
)
def test_checks_of_results_wait_once(call: Any, reads: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    with counted(monkeypatch) as syncs:
        call()
    assert dict(syncs) == reads


def test_the_counter_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as syncs:
        torch.from_numpy(np.zeros(3))
        float(A.sum())
        A.max().item()
        A[0, 0].tolist()
        bool((A > 0).any())
    assert dict(syncs) == {"from_numpy": 1, "__float__": 1, "item": 1, "tolist": 1, "__bool__": 1}


def test_rows_of_batches_are_uploaded_from_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from roarfast.data.stream import upload

    seen: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: seen.append("pinned") or self)
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device, **how: seen.append((str(device), how)) or self)
    upload(np.arange(3), torch.device("cuda"))
    assert seen == ["pinned", ("cuda", {"non_blocking": True})]
