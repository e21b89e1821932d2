"""Presets against what RISE, xplique and F-Fidelity returned (golden file), torch-cam's formula, and ROAR's first code.

The file holds what these calls returned on 6 images with maps without ties: RISE (commit d91ea00) `CausalMetric(model, mode,
step, substrate).evaluate(images, maps, 3)` and `auc` of each image; xplique (0c90fa4) `CausalFidelity(model, image, target,
64, mode, 0.25, steps, share)`, one image at a time; F-Fidelity (a46b565) `ori_MoRF`, `ori_LeRF` and, with 400 draws,
`ours_random_MoRF`, `ours_random_LeRF` at ratio 0.5 without and with the largest ratio 0.1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import peer_cases as cases

torch = pytest.importorskip("torch")

from roarfast import metrics  # noqa: E402
from roarfast.compat import presets  # noqa: E402
from roarfast.metrics import get_score  # noqa: E402


@pytest.fixture(scope="module")
def golden():
    path = Path(__file__).parent / "golden" / "presets.npz"
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def problem(golden):
    return metrics.Problem(
        cases.small_model(3),
        metrics.read_inputs(golden["images"], layout="NCHW"),
        torch.from_numpy(golden["labels"]),
        0,
        torch.arange(6),
    )


def scored(golden, score, maps=None, **options):
    """(areas [N], curve) of a preset on the images of the file."""
    maps = torch.from_numpy(golden["maps"] if maps is None else maps)
    outcome = get_score(f"roarfast.compat.presets:{score}", **options)(problem(golden), maps)
    (line,) = outcome.curves.values()
    return outcome.per_image, line


@pytest.mark.parametrize("step", [18, 50])
@pytest.mark.parametrize(("mode", "score"), [("del", "rise_deletion"), ("ins", "rise_insertion")])
def test_rise(golden, mode, score, step):
    areas, line = scored(golden, score, step=step)
    np.testing.assert_allclose(line.values, golden[f"rise/{mode}/{step}"], rtol=0, atol=2e-6)
    np.testing.assert_allclose(areas, golden[f"rise/{mode}/{step}/auc"], rtol=0, atol=2e-6)
    if step == 18:  # a row of pixels, the default
        np.testing.assert_array_equal(scored(golden, score)[0], areas)


@pytest.mark.parametrize(("steps", "share"), [(10, 1.0), (7, 0.6)])
@pytest.mark.parametrize("mode", ["deletion", "insertion"])
def test_xplique(golden, mode, steps, share):
    key = f"xplique/{mode}/{steps}/{share}"
    areas, line = scored(golden, f"xplique_{mode}", steps=steps, max_percentage_perturbed=share, baseline=0.25)
    np.testing.assert_array_equal(presets.xplique_counts(288, steps, share), golden[f"{key}/counts"])
    np.testing.assert_allclose(line.values, golden[key], rtol=0, atol=2e-5)
    np.testing.assert_allclose(areas, golden[f"{key}/auc"], rtol=0, atol=2e-5)
    assert presets.xplique_counts(5, -1) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("kind", "score"), [("MoRF", "f_fidelity_plus"), ("LeRF", "f_fidelity_minus")])
def test_f_fidelity(golden, kind, score):
    # Every pixel goes: no chance is left, and the published counts give the published answers.
    line = scored(golden, score, ratio=1.0, samples=1, as_published=True)[1]
    np.testing.assert_array_equal(line.values, golden[f"f_fidelity/{kind}/all"][1:])
    whole = golden[f"f_fidelity/{kind}/all"][0]
    for key, largest in (("half", None), ("max", 0.1)):
        areas, line = scored(golden, score, percents=(5, 30, 60, 100), samples=40, as_published=True, max_ratio=largest)
        theirs = golden[f"f_fidelity/{kind}/{key}"][[1, 6, 12, 20]]
        # 40 draws of ours against 400 of theirs: 4.5 standard errors of a share.
        limit = 4.5 * np.sqrt(np.maximum(theirs * (1 - theirs), 0.02) * (1 / 40 + 1 / 400))
        assert (np.abs(line.values - theirs) <= limit).all()
        np.testing.assert_allclose(areas, (whole - line.values).mean(0), atol=1e-12)
    # What it says it removes: 5 % of 288 is 14, the published code takes 6 %.
    assert presets.f_fidelity_counts(288, [5, 100]) == [14, 288]
    assert presets.f_fidelity_counts(288, [5, 100], as_published=True) == [17, 288]


def torchcam(model, images, maps, steps, baseline, insert):
    """The definition: ranks, steps rounded up, the trapezoid over the fraction really replaced."""
    pixels = maps[0].size
    size = -(-pixels // steps)
    counts = [*range(0, pixels, size), pixels]
    order = np.argsort(-maps.reshape(len(maps), -1), axis=1, kind="stable")
    curve = []
    with torch.no_grad():
        classes = model(torch.from_numpy(images)).argmax(1)
        for count in counts:
            x = (np.full_like(images, baseline) if insert else images).reshape(*images.shape[:2], -1).copy()
            other = images if insert else np.full_like(images, baseline)
            for i, pixel in enumerate(order[:, :count]):
                x[i][:, pixel] = other.reshape(x.shape)[i][:, pixel]
            curve.append(model(torch.from_numpy(x.reshape(images.shape))).gather(1, classes[:, None])[:, 0].numpy())
    return np.trapezoid(np.array(curve), np.array(counts) / pixels, axis=0)


@pytest.mark.parametrize("steps", [20, 7, 288, 1000])
@pytest.mark.parametrize("insert", [False, True])
def test_torchcam(golden, steps, insert):
    expected = torchcam(cases.small_model(3), golden["images"], golden["maps"], steps, 0.1, insert)
    areas, _ = scored(golden, f"torchcam_{'insertion' if insert else 'deletion'}", steps=steps, baseline=0.1)
    np.testing.assert_allclose(areas, expected, rtol=0, atol=3e-5)


def test_substrates(golden):
    fixed = torch.zeros(3, 16, 18)
    for given in (0.0, torch.zeros_like, fixed, fixed.expand(6, 3, 16, 18)):
        np.testing.assert_array_equal(
            scored(golden, "rise_deletion", substrate=given)[0], scored(golden, "rise_deletion")[0]
        )
    with pytest.raises(ValueError, match=r"substrate must return images \(64, 3, 16, 18\), got \(64, 18\)"):
        scored(golden, "rise_deletion", substrate=lambda x: x[:, 0, 0])


def test_normalised_images(golden):
    """RISE's zero is that of the model's input."""
    mean, std = np.array([0.4, 0.5, 0.6], np.float32), np.array([0.2, 0.25, 0.3], np.float32)
    model = cases.small_model(3)

    def normalised(x):
        return model(x * torch.from_numpy(std)[:, None, None] + torch.from_numpy(mean)[:, None, None])

    got = metrics.evaluate(
        normalised,
        golden["images"],
        golden["maps"],
        labels=golden["labels"],
        layout="NCHW",
        mean=mean,
        std=std,
        normalized=False,
        metrics=["roarfast.compat.presets:rise_deletion"],
        resamples=10,
        progress=False,
    )
    filled = scored(golden, "rise_deletion", substrate=torch.from_numpy(mean)[:, None, None].expand(3, 16, 18))
    (one,) = got.values()
    np.testing.assert_allclose(one.per_image, filled[0], atol=2e-6)


def google(saliency, threshold, squared):
    """ROAR's first code, value by value: squared, rescaled to [0, 1], the largest int(threshold / 100 * N) of all."""
    values = saliency.astype(np.float64).reshape(len(saliency), -1)
    values = values**2 if squared else values
    low, high = values.min(1, keepdims=True), values.max(1, keepdims=True)
    values = (values - low) / (high - low) + 1e-5
    mask = np.zeros(values.shape, bool)
    count = int(threshold / 100 * values.shape[1])
    for row, order in zip(mask, np.argsort(-values, axis=1, kind="stable")):
        row[order[:count]] = True
    return mask.reshape(saliency.shape)


@pytest.mark.parametrize("threshold", [0, 10, 37.5, 90, 100])
@pytest.mark.parametrize("squared", [False, True])
def test_google_roar(threshold, squared):
    saliency = np.random.default_rng(0).standard_normal((4, 9, 11, 3)).astype(np.float32)
    expected = google(saliency, threshold, squared)
    np.testing.assert_array_equal(presets.google_roar_mask(saliency, threshold, squared), expected)
    tensor = presets.google_roar_mask(torch.from_numpy(saliency), threshold, squared)
    np.testing.assert_array_equal(tensor.numpy(), expected)
    tied = np.zeros_like(saliency)
    assert presets.google_roar_mask(tied, threshold).sum() == expected.sum()  # as many, whichever


@pytest.mark.parametrize(
    ("score", "options", "message"),
    [
        ("rise_deletion", {"step": 0}, "step must be an integer"),
        ("torchcam_deletion", {"indicator": "margin"}, "indicator must be one of"),
        ("f_fidelity_plus", {"ratio": 50}, r"ratio must be in \[0, 1\], got 50"),
        ("xplique_deletion", {"max_percentage_perturbed": 60}, "max_percentage_perturbed must be in"),
    ],
)
def test_bad_options(golden, score, options, message):
    with pytest.raises(ValueError, match=message):
        scored(golden, score, **options)


def test_many_steps_and_ties(golden):
    """More points than one table of rank codes holds; and a constant map, where every order is as good."""
    _, line = scored(golden, "rise_deletion", step=1)
    assert line.values.shape == (289, 6)
    np.testing.assert_allclose(line.values[::18], golden["rise/del/18"], rtol=0, atol=2e-6)
    assert np.isfinite(scored(golden, "rise_deletion", maps=np.zeros_like(golden["maps"]))[0]).all()


def test_the_file_says_what_made_it(golden):
    assert {"RISE", "xplique", "F-Fidelity", "numpy"} < set(json.loads(str(golden["versions"])))
