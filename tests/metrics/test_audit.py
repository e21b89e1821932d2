"""The audit: what is known beforehand holds, every cell has a value or a reason."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402
from roarfast.explain import PostProcess  # noqa: E402
from roarfast.metrics.audit_results import kendall  # noqa: E402
from roarfast.metrics.auditing import FILLS, POSTPROCESSINGS, SCORES  # noqa: E402

QUICK = {
    "soundness": {"step": 0.1},
    "sensitivity_n": {"draws": 3},
    "faithfulness_correlation": {"draws": 3},
    "infidelity": {"draws": 2},
    "completeness": {"rates": (0.2, 0.5, 0.8)},
}


def problem():
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    images = rng.integers(0, 256, (14, 3, 8, 8), dtype=np.uint8)
    # 12 bits, so that powers merge no two values
    maps = {
        name: (rng.permuted(np.tile(np.arange(64), (14, 1)), axis=1).reshape(14, 8, 8) + 1) / 4096.0 for name in "abc"
    }
    return net, images, maps, rng.integers(0, 3, 14)


@pytest.fixture(scope="module")
def found():
    net, images, maps, y = problem()
    scores = {name: fills if len(fills) == 1 else ("zero", "linear", "adversarial") for name, fills in SCORES.items()}
    return metrics.audit(net, images, maps, labels=y, scores=scores, options=QUICK, layout="NCHW", resamples=30)


def test_no_cell_is_blank(found) -> None:
    assert {c.k for c in found.cells} == set(POSTPROCESSINGS)
    assert len(found.cells) == len(POSTPROCESSINGS) * (1 + 3 * (len(SCORES) - 1))
    for cell in found.cells:
        assert cell.why or (np.isfinite(cell.change.value) and cell.maps == 3), cell
        assert str(cell)
    assert "| score | fill |" in str(found) and len(found.to_csv().splitlines()) == len(found.cells) + 1


def test_powers_do_not_move_order_based_scores(found) -> None:
    by = {(c.score, c.fill, c.k): c for c in found.cells}
    for score in ("road", "deletion", "insertion", "pixel_flipping"):
        for (name, _, k), cell in by.items():
            if name == score and k.startswith("power"):
                assert cell.improved == cell.worsened == 0 and str(cell) == "unchanged"
    assert by["completeness", "linear", "power(2)"].improved + by["completeness", "linear", "power(2)"].worsened == 3
    # One pixel of ten times the maximum: no other is above a threshold.
    assert "outlier" in {c.k for c in found.cells}


def test_signs_mean_better(found) -> None:
    net, images, maps, y = problem()
    one = metrics.audit(
        net, images, maps, labels=y, scores={"deletion": ["zero"]}, postprocess=["gaussian(1)"], layout="NCHW"
    )
    (cell,) = one.cells
    values = one.values["deletion", "zero"]
    change = np.mean([values[m] - values[f"{m} | gaussian(1)"] for m in maps])  # lower is better
    assert cell.change.value == pytest.approx(change)
    assert cell.improved == sum(values[m] > values[f"{m} | gaussian(1)"] for m in maps)


def test_agreement(found) -> None:
    pairs = {(a, b): e for a, b, e in found.agreement()}
    tau = pairs[("deletion", "zero"), ("pixel_flipping", "zero")]
    assert -1 <= tau.low <= tau.value <= tau.high <= 1 or np.isnan(tau.value)
    assert all(abs(e.value) <= 1 for e in pairs.values() if np.isfinite(e.value))


def test_kendall_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (20, 9)).astype(float), rng.random((20, 9))
    expected = [stats.kendalltau(a, b).statistic for a, b in zip(x, y)]
    np.testing.assert_allclose(kendall(x, y), expected)
    assert np.isnan(kendall(np.ones((1, 4)), y[:1, :4])).all()


def test_a_score_that_refuses_says_why() -> None:
    net, images, maps, y = problem()
    signed = {"a": maps["a"] - 0.005}
    one = metrics.audit(
        net, images, signed, labels=y, scores={"completeness": ["zero"]}, postprocess=["max(3)"], layout="NCHW"
    )
    assert one.cells[0].why.startswith("completeness needs maps >= 0")


def test_own_scores_and_nulls() -> None:
    net, images, maps, y = problem()
    mine = metrics.Score("mean", lambda problem, a: a.flatten(1).mean(1).numpy(), "higher")
    one = metrics.audit(
        net, images, maps, labels=y, scores=[mine], postprocess=["roll", "swap", "max(3)"], layout="NCHW"
    )
    by = {c.k: c for c in one.cells}
    assert abs(by["roll"].change.value) < 1e-12 and by["max(3)"].improved == 3


def test_outlier_is_keyed_by_sample() -> None:
    a = np.random.default_rng(0).random((5, 6, 6)).astype(np.float32)
    k = PostProcess.parse("outlier")
    found = k(a, seed=3, index=np.arange(5))
    assert ((found != a).sum((1, 2)) == 1).all()
    np.testing.assert_allclose(found.max((1, 2)), 10 * a.max((1, 2)), rtol=1e-6)
    np.testing.assert_array_equal(k(a[2:4], seed=3, index=[2, 3]), found[2:4])
    assert str(k) == "outlier(10)" and FILLS[-1] == "adversarial"


def test_soundness_that_is_out_of_reach_is_taken_where_all_reach() -> None:
    """Random labels: hardly any curve reaches halfway; the cells have values, and say at which accuracy."""
    rng = np.random.default_rng(3)
    torch.manual_seed(1)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 3))
    images = rng.integers(0, 256, (40, 3, 8, 8), dtype=np.uint8)
    with torch.no_grad():
        labels = net(torch.from_numpy(images).float() / 255).argmax(1).numpy()
    labels[labels == labels[0]] = (labels[0] + 1) % 3  # images that are whole are often wrong
    maps = {name: rng.random((40, 8, 8)) for name in "ab"}
    found = metrics.audit(
        net,
        images,
        maps,
        labels=labels,
        scores={"soundness": ["zero", "linear"]},
        postprocess=["max(3)", "roll"],
        options={"soundness": {"step": 0.1, "level": 0.95}},
        layout="NCHW",
        resamples=30,
    )
    assert all(not c.why and np.isfinite(c.change.value) for c in found.cells)
    assert all("the highest that all reach" in c.note for c in found.cells)
    alone = metrics.audit(
        net,
        images,
        maps,
        labels=labels,
        scores={"soundness": ["linear"]},
        postprocess=["roll"],
        layout="NCHW",
        options={"soundness": {"step": 0.1, "level": 0.05}},
        resamples=0,
    )
    assert alone.cells[0].note == ""


def test_files_and_joining(found, tmp_path) -> None:
    found.save(tmp_path / "audit.npz")
    again = metrics.Audit.load(tmp_path / "audit.npz")
    assert str(again) == str(found) and again.values == found.values and again.count == found.count
    for key, by_map in found.resampled.items():
        for m, r in by_map.items():
            np.testing.assert_array_equal(r.draws, again.resampled[key][m].draws)
    net, images, maps, y = problem()
    options = {"labels": y, "postprocess": ["gaussian(1)"], "layout": "NCHW", "resamples": 20}
    scores = {"deletion": ["zero"], "completeness": ["zero"]}
    whole = metrics.audit(net, images, maps, scores=scores, **options)
    by_score = [metrics.audit(net, images, maps, scores={name: fills}, **options) for name, fills in scores.items()]
    by_map = [metrics.audit(net, images, {m: a}, scores=scores, **options) for m, a in maps.items()]
    for parts in (by_score, by_map):
        joined = metrics.join_audits(parts)
        assert str(joined) == str(whole) and joined.values == whole.values
    assert metrics.join_audits(by_score).agreement() == whole.agreement()
    with pytest.raises(ValueError, match="other names in each audit"):
        metrics.join_audits([whole, whole])
    with pytest.raises(ValueError, match="the same images"):
        metrics.join_audits([])


def test_agreement_of_plain_maps_and_of_two_audits(found) -> None:
    plain = {(a, b): e for a, b, e in found.agreement(plain=True)}
    one, two = ("deletion", "zero"), ("insertion", "zero")
    lower, higher = (np.array([[found.values[key][m] for m in "abc"]]) for key in (one, two))
    assert plain[one, two].value == pytest.approx(kendall(-lower, higher)[0])  # less deletion is better, more insertion
    same = found.agreement_with(found)
    assert all(e.value == 1 for e in same.values() if np.isfinite(e.value)) and len(same) == len(found.values)
