"""The door: three lines to a table, every kind of input, comparisons, a user's own score, errors."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import roarfast as rf  # noqa: E402
from roarfast import metrics  # noqa: E402
from roarfast.explain import explain  # noqa: E402

ALL = (
    "road",
    "deletion",
    "insertion",
    "pixel_flipping",
    "reference_flipping",
    "completeness",
    "soundness(step=0.1)",
    "sensitivity_n(draws=4)",
    "faithfulness_correlation(draws=4)",
    "infidelity(draws=2)",
    "f_fidelity(draws=1, sizes=(0.3, 0.6))",
    "average_drop",
)
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def problem(n: int = 12, size: int = 8):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, size, size), dtype=np.uint8)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * (size - 2) ** 2, 3))
    return net, images, rng.random((n, size, size)).astype(np.float32), rng.integers(0, 3, n)


def mine(problem, maps):
    """A user's own score: the largest value of each map."""
    return maps.flatten(1).amax(1).numpy()


def test_the_lines_of_the_readme() -> None:
    model, images, maps, y = problem()
    scores = metrics.evaluate(
        model, images, maps, labels=y, metrics=["road", "deletion", "insertion", "soundness", "completeness"]
    )
    text = str(scores)
    for name in ("road", "deletion", "insertion", "soundness", "completeness"):
        assert name in text
        result = scores[name]
        assert result.low <= result.value <= result.high or np.isnan(result.value)
    assert "12 images, 95 % intervals" in text
    assert scores["road"].curve.value.shape == (11,)
    assert list(scores["road"].curves) == ["morf", "lerf"]
    assert "<table>" in scores._repr_html_()
    pytest.importorskip("matplotlib")
    assert len(scores.plot().axes) == 5
    pandas = pytest.importorskip("pandas")
    frame = scores.to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and list(frame["score"]) == list(scores)


@pytest.mark.parametrize("name", ALL)
def test_every_score_has_a_value_a_meaning_and_classes(name) -> None:
    model, images, maps, y = problem()
    scores = metrics.evaluate(model, images, maps, labels=y, metrics=[name], mean=MEAN, std=STD)
    result = scores[next(iter(scores))].only
    assert np.isfinite(result.value) and result.measures and result.better in ("higher", "lower", "neither")
    assert result.per_class.shape == (3,)
    if result.per_image is not None:
        assert result.value == pytest.approx(np.nanmean(result.per_image))
        assert result.per_class[1] == pytest.approx(np.nanmean(result.per_image[y == 1]))
    assert metrics.get_score(name.split("(")[0]).run.__doc__.count("Known defects") == (name != "reference_flipping")


def test_uint8_and_normalised_floats_give_equal_tables() -> None:
    model, images, maps, y = problem()
    unit = torch.from_numpy(images).float() / 255
    normal = (unit - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    tables = [
        str(metrics.evaluate(model, x, maps, labels=y, metrics=["road", "deletion", "insertion"], mean=MEAN, std=STD))
        for x in (images, normal, images.transpose(0, 2, 3, 1))
    ]
    assert tables[0] == tables[1] == tables[2]


def test_kinds_of_maps() -> None:
    model, images, _, y = problem()
    channels = np.random.default_rng(1).standard_normal((12, 3, 8, 8)).astype(np.float32)
    merged = rf.aggregate_channels(channels, "mean(abs)")
    by_hand = metrics.evaluate(model, images, merged, labels=y, metrics=["deletion"])
    for given in (channels, torch.from_numpy(channels).requires_grad_(), channels.transpose(0, 2, 3, 1)):
        scores = metrics.evaluate(model, images, given, labels=y, metrics=["deletion"])
        assert scores["deletion"].value == by_hand["deletion"].value
        assert "channels by mean(abs)" in str(scores)
    assert "channels by" not in str(by_hand)
    other = metrics.evaluate(model, images, channels, labels=y, metrics=["deletion"], aggregate="sum(raw)")
    assert other["deletion"].value != by_hand["deletion"].value
    several = metrics.evaluate(
        model,
        images,
        explain(model, torch.from_numpy(images).float() / 255, ["grad", "ig"]),
        labels=y,
        metrics=["deletion"],
        baselines=["random", "sobel", "center", "constant"],
    )
    assert list(several["deletion"]) == ["grad", "ig", "random", "sobel", "center", "constant"]
    assert several["deletion"]["grad"].curve.x.shape == (17,)
    with pytest.raises(ValueError, match="several sets of maps"):
        _ = several["deletion"].curve
    assert len(several.comparisons()) == 15 and "on the same images" in str(several)


def test_captum() -> None:
    attr = pytest.importorskip("captum.attr")
    model, images, _, y = problem()
    x = torch.from_numpy(images).float() / 255
    maps = attr.Saliency(model).attribute(x, target=torch.from_numpy(y))
    assert np.isfinite(metrics.evaluate(model, x, maps, labels=y, metrics=["insertion"])["insertion"].value)


def test_breast_cancer_table() -> None:
    """Logistic regression on features: w * (x - mean) is what removing them to the mean costs."""
    sklearn = pytest.importorskip("sklearn.datasets")
    x, y = sklearn.load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    net = nn.Linear(30, 2)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=50)

    def loss():
        optimizer.zero_grad()
        value = (
            nn.functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y))
            + 1e-2 * net.weight.square().sum()
        )
        value.backward()
        return value

    optimizer.step(loss)
    weight = (net.weight[1] - net.weight[0]).detach().numpy()
    maps = {
        "contribution": np.where(y[:, None] == 1, 1, -1) * weight * x,
        "random": np.random.default_rng(0).random(x.shape),
    }
    scores = metrics.evaluate(
        net, x, maps, labels=y, metrics=["deletion", "insertion", "sensitivity_n(draws=8)", "infidelity(draws=3)"]
    )
    assert (
        metrics.evaluate(net, x, maps, labels=y, metrics=["deletion"])["deletion"]["random"].value
        == scores["deletion"]["random"].value
    )
    beats = {(c.score, c.winner) for c in scores.comparisons() if c.significant}
    assert {
        ("deletion", "contribution"),
        ("insertion", "contribution"),
        ("infidelity(draws=3)", "contribution"),
    } <= beats
    assert scores["sensitivity_n(draws=8)"]["contribution"].value > 0.9
    with pytest.raises(ValueError, match="fill='linear' needs images: features have no neighbours"):
        metrics.evaluate(net, x, maps, labels=y, metrics=["road"])


def test_own_scores() -> None:
    model, images, maps, y = problem()
    own = metrics.Score("mine too", mine, "lower", "nothing much")
    scores = metrics.evaluate(model, images, maps, labels=y, metrics=[f"{__name__}:mine", own])
    assert scores[f"{__name__}:mine"].value == pytest.approx(maps.max((1, 2)).mean())
    assert scores["mine too"].better == "lower" and "nothing much" in str(scores)
    with pytest.raises(ValueError, match=r"there is no score 'deletoin'; did you mean 'deletion'\?"):
        metrics.evaluate(model, images, maps, labels=y, metrics=["deletoin"])
    with pytest.raises(ValueError, match="No module named 'no_such"):
        metrics.evaluate(model, images, maps, labels=y, metrics=["no_such.module:score"])
    with pytest.raises(ValueError, match="one number per sample, got shape"):
        metrics.evaluate(model, images, maps, labels=y, metrics=[metrics.Score("bad", lambda p, a: a.numpy())])


def test_options_in_names() -> None:
    model, images, maps, y = problem()
    scores = metrics.evaluate(
        model,
        images,
        maps,
        labels=y,
        metrics=[
            "deletion(fill=zero)",
            "deletion(fill=(1, 2, 3), indicator=accuracy)",
            metrics.get_score("road", order="lerf"),
        ],
    )
    assert list(scores) == ["deletion(fill=zero)", "deletion(fill=(1, 2, 3), indicator=accuracy)", "road(order=lerf)"]
    with pytest.raises(TypeError, match="no_such_option"):
        metrics.evaluate(model, images, maps, labels=y, metrics=["deletion(no_such_option=1)"])


@pytest.mark.parametrize("name", ALL)
def test_segments(name) -> None:
    """Segments of one pixel change nothing; segments of 2x2 are removed whole."""
    model, images, maps, y = problem()
    options = {"labels": y, "metrics": [name], "resamples": 20}
    single = np.arange(64).reshape(8, 8)
    plain = metrics.evaluate(model, images, maps, **options)
    by_pixel = metrics.evaluate(model, images, maps.astype(np.float64), segments=single, **options)
    key = next(iter(plain))
    assert by_pixel[key].value == pytest.approx(plain[key].value, abs=1e-6)
    blocks = (np.arange(8) // 2)[:, None] * 4 + np.arange(8)[None] // 2
    coarse = metrics.evaluate(model, images, maps, segments=np.broadcast_to(blocks * 7 + 3, maps.shape), **options)
    smooth = maps.reshape(12, 4, 2, 4, 2).mean((2, 4)).repeat(2, 1).repeat(2, 2)
    same = metrics.evaluate(model, images, smooth, segments=blocks, **options)
    if key not in (
        "reference_flipping",
        "completeness",
        "sensitivity_n(draws=4)",
        "faithfulness_correlation(draws=4)",
        "infidelity(draws=2)",
        "f_fidelity(draws=1, sizes=(0.3, 0.6))",
    ):
        assert same[key].value == pytest.approx(coarse[key].value, abs=1e-6)
    assert np.isfinite(coarse[key].value)


def test_segments_are_removed_whole() -> None:
    model, images, maps, y = problem(4)
    blocks = (np.arange(8) // 2)[:, None] * 4 + np.arange(8)[None] // 2
    from roarfast.metrics.inputs import read_inputs
    from roarfast.metrics.maps import read_segments

    inputs = read_inputs(images)
    p = metrics.Problem(model, inputs, torch.from_numpy(y), 0, torch.arange(4), read_segments(blocks, inputs))
    codes = p.codes(torch.from_numpy(maps), (0.25, 0.5), metrics.Perturbation()).numpy()
    for j, count in enumerate((4, 8)):
        for i in range(4):
            gone = {int(b) for b in blocks[codes[i] <= j]}
            assert len(gone) == count and (codes[i] <= j).sum() == 4 * count
            means = np.array([maps[i][blocks == b].mean(dtype=np.float64) for b in range(16)])
            assert gone == {int(b) for b in np.argsort(-means)[:count]}


def test_paired_comparison_and_holm() -> None:
    p = np.array([0.01, 0.04, np.nan, 0.03])
    np.testing.assert_allclose(metrics.holm(p), [0.03, 0.06, np.nan, 0.06])
    model, images, maps, y = problem()
    same = metrics.evaluate(model, images, {"a": maps, "b": maps.copy()}, labels=y, metrics=["deletion"])
    (only,) = same.comparisons()
    assert only.by == 0 and only.p == 1 and not only.significant and "≈" in str(same)


def test_bad_input() -> None:
    model, images, maps, y = problem()
    cases = [
        (
            ValueError,
            r"maps must be \(12, 8, 8\), one value per pixel, or \(12, 3, 8, 8\) per channel, got shape \(12, 8\)",
            {"maps": maps[:, 0]},
        ),
        (
            ValueError,
            r"maps\['b'\] must be finite, got NaN or infinity in 1 of 12 maps \(first: 2\)",
            {"maps": {"a": maps, "b": np.where(np.arange(12)[:, None, None] == 2, np.inf, maps)}},
        ),
        (ValueError, "maps must hold at least one set", {"maps": {}}),
        (TypeError, "maps must be an array, a tensor or stored maps, got int", {"maps": 3}),
        (
            ValueError,
            "completeness needs maps >= 0, got a minimum of -0.99",
            {"maps": maps - 1, "metrics": ["completeness"]},
        ),
        (ValueError, "soundness needs maps >= 0", {"maps": maps - 1, "metrics": ["soundness"]}),
        (ValueError, "metrics must name at least one score", {"metrics": []}),
        (ValueError, "metrics must be different from each other", {"metrics": ["deletion", "deletion"]}),
        (ValueError, "baselines must be among random, sobel, center, constant, got 'canny'", {"baselines": ["canny"]}),
        (TypeError, "segments must be integers", {"segments": np.zeros((8, 8))}),
        (
            ValueError,
            r"segments must be \(12, 8, 8\), or \(8, 8\) for all samples",
            {"segments": np.zeros((4, 4), int)},
        ),
        (ValueError, "indicator must be one of", {"metrics": ["deletion(indicator=auc)"]}),
        (ValueError, r"step must be in \(0, 0.5\], got 0.7", {"metrics": ["soundness(step=0.7)"]}),
        (ValueError, "epsilon must be > 0", {"metrics": ["soundness(epsilon=0)"]}),
        (ValueError, r"levels must be in \(0, 1\], got 1.5", {"metrics": ["soundness(step=0.1, levels=(1.5,))"]}),
        (ValueError, "scale must be one of minmax, raw, got 'max'", {"metrics": ["average_drop(scale=max)"]}),
        (
            ValueError,
            r"needs maps in \[0, 1\], got 0.0\d+ to 1.9",
            {"maps": 2 * maps, "metrics": ["average_drop(scale=raw)"]},
        ),
        (ValueError, "scored must be 'predicted' or 'label', got 'best'", {"metrics": ["average_drop(scored=best)"]}),
        (ValueError, "aggregate must look like", {"maps": np.zeros((12, 3, 8, 8)), "aggregate": "median"}),
    ]
    for kind, message, change in cases:
        options = {"maps": maps, "labels": y, "metrics": ["deletion"], **change}
        with pytest.raises(kind, match=message):
            metrics.evaluate(model, images, options.pop("maps"), **options)


def test_no_images() -> None:
    model, images, maps, y = problem()
    scores = metrics.evaluate(model, images[:0], maps[:0], labels=y[:0], metrics=["road", "deletion", "completeness"])
    assert all(np.isnan(scores[name].value) for name in scores)


def test_notes_on_maps_that_say_nothing() -> None:
    model, images, maps, y = problem()
    flat = maps.copy()
    flat[0], flat[1] = 0, 1
    scores = metrics.evaluate(model, images, flat, labels=y, metrics=["soundness(step=0.1)", "completeness"])
    text = str(scores)
    assert "1 maps are 0 everywhere and have no soundness" in text
    assert "1 maps are 0 everywhere: nothing of them is removed" in text and "1 maps are constant" in text
