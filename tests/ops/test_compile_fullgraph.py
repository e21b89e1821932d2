"""Every op inside `torch.compile(fullgraph=True)`: no graph break, the same bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import roarfast as rf

torch = pytest.importorskip("torch")

X = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8).sin()
A = X.mean(1)
MASK = A > 0.1
IDS = torch.tensor([1, 0])
BYTES = ((X + 1) * 127).to(torch.uint8)
CODES = rf.rank_codes(A, [0.1, 0.5])

CALLS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "gaussian_filter": (lambda v: rf.gaussian_filter(v, 1), X),
    "maximum_filter": (lambda v: rf.maximum_filter(v, 3), X),
    "sobel": (lambda v: rf.sobel(v), X),
    "total_variation": (lambda v: rf.total_variation(v), X),
    "percentile": (lambda v: rf.percentile(v, [10, 50]), A),
    "removal_mask": (lambda v: rf.removal_mask(v, 0.5), A),
    "rank_codes": (lambda v: rf.rank_codes(v, [0.1, 0.5], index=IDS), A),
    "removed_fraction": (lambda v: rf.removed_fraction(v, 1), CODES),
    "code_sums": (lambda v: rf.code_sums(v, CODES, 3), A),
    "distance_transform": (lambda v: rf.distance_transform(v), MASK),
    "mask_geometry": (lambda v: rf.mask_geometry(v), MASK),
    "fill-number": (lambda v: rf.fill(v, MASK, 0.5), X),
    "fill-channels": (lambda v: rf.fill(v, MASK, [0.5, 1, 2.0]), X),
    "fill-zero": (lambda v: rf.fill(v, MASK, "zero"), X),
    "fill-mean": (lambda v: rf.fill(v, MASK, "kept_mean"), X),
    "fill-noise": (lambda v: rf.noise_fill(v, MASK, index=IDS), X),
    "blur_fill": (lambda v: rf.blur_fill(v, MASK), X),
    "remove": (lambda v: rf.remove(v, A, 0.3, fill=0.5), X),
    "pixel_random": (lambda v: v + rf.pixel_random((2, 8, 8), seed=1, device="cpu", index=IDS), A),
    "block_random": (lambda v: v * rf.block_random((2, 8, 8), 0.3, seed=1, device="cpu"), A),
    "philox_normal": (lambda v: rf.philox_normal(v, (3, 4)), IDS),
    "impute_linear": (lambda v: rf.impute_linear(v, MASK), X),
    "gather_batch": (
        lambda v: rf.gather_batch(
            v, IDS, CODES, 1, 3.0, mean=0.5, std=(0.2, 0.3, 0.4), flip=True, pad=1, random_crop=True
        ),
        BYTES,
    ),
    "gather_batch-NHWC": (lambda v: rf.gather_batch(v, IDS, out_layout="NHWC", dtype=torch.float16), BYTES),
    "gather_batch_resized": (lambda v: rf.gather_batch(v, IDS, scale=(0.2, 0.9), flip=True), BYTES),
}


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", CALLS)
def test_no_graph_break_and_the_same_bits(name: str) -> None:
    call, argument = CALLS[name]
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(argument), call(argument))


def test_every_op_is_here() -> None:
    from roarfast.ops import _op

    named = {name.split("-")[0].replace("blur_fill", "fill") for name in CALLS}
    assert {op.name for op in _op._ops} <= named
