"""Quantus itself against the patch: images, generator, scores, faults, restoring. Run by `make compat`."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from helpers import peer_cases as cases

quantus = pytest.importorskip("quantus")
torch = pytest.importorskip("torch")

from quantus.functions import perturb_func  # noqa: E402
from quantus.helpers import asserts, utils  # noqa: E402

from roarfast import compat  # noqa: E402

OLD = quantus.__version__.startswith("0.5")
original = perturb_func.noisy_linear_imputation


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()


def snapshot():
    """Every attribute of every module and class of Quantus, and entries of its dicts of functions."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name == "quantus" or name.startswith("quantus."):
            for attribute, value in list(vars(module).items()):
                found[name, attribute] = value
                if isinstance(value, dict) and not attribute.startswith("__"):
                    found.update({(name, attribute, key): item for key, item in value.items()})
                if isinstance(value, type) and value.__module__.startswith("quantus"):
                    found.update({(name, attribute, key): item for key, item in vars(value).items()})
    return found


def assert_same(before, after):
    assert before.keys() == after.keys()
    changed = [key for key in before if before[key] is not after[key]]
    assert not changed


def test_restored_exactly():
    before = snapshot()
    with pytest.raises(KeyError), compat.patch("quantus"), compat.patch("quantus", mode="fixed"):
        assert perturb_func.noisy_linear_imputation is not original
        assert quantus.AVAILABLE_PERTURBATION_FUNCTIONS["noisy_linear_imputation"] is not original
        raise KeyError
    assert_same(before, snapshot())
    assert compat.status()["quantus"].tested


def run(call, *args, **kwargs):
    cases.seed_everything(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **kwargs), cases.state_digest()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_images_and_generator(dtype, noise):
    large = [cases.large_case(), cases.large_case(0.9)] if noise and dtype == "float32" else []
    for case in [*cases.image_cases(), cases.large_case(0.5, 64), *large]:
        image = case.image.astype(dtype)
        indices = np.random.default_rng(0).permutation(np.flatnonzero(case.removed))
        theirs, state = run(original, image, indices, noise)
        with compat.patch("quantus"):
            ours, our_state = run(perturb_func.noisy_linear_imputation, image, indices, noise)
        assert ours.dtype == theirs.dtype
        assert state == our_state
        if not case.removed.all():
            tol = 1e-8 if dtype == "float64" else 1e-5
            limit = cases.bound(case, dtype, tol)
            np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=0, atol=limit, err_msg=case.name)
    assert not compat.status()["quantus"].passed_on


def odd_calls():
    x = np.random.default_rng(0).random((3, 9, 8)).astype(np.float32)
    holes = np.array([1, 5, 40, 41, 42])
    nan_known = x.copy()
    nan_known[0, 0, 0] = np.nan
    nan_removed = x.copy()
    nan_removed[:, 0, 1] = np.nan
    yield "transposed", x.transpose(0, 2, 1), holes, None
    yield "strided", np.repeat(x, 2, axis=2)[:, :, ::2], holes, None
    read_only = x.copy()
    read_only.flags.writeable = False
    yield "read-only", read_only, holes, None
    yield "duplicates", x, np.array([5, 9, 5, 30, 9]), None
    yield "NaN under the mask", nan_removed, holes, None
    yield "NaN in a known pixel", nan_known, holes, "NaN or infinity in a known pixel"
    yield "integers", (255 * x).astype(np.uint8), holes, "an image of integers"
    yield "list", x, holes.tolist(), "indices that are no 1-D array"
    yield "negative", x, np.array([-1, 3]), "indices out of range"
    yield "beyond", x, np.array([3, 100]), "indices out of range"


@pytest.mark.parametrize(("name", "image", "indices", "reason"), list(odd_calls()), ids=[c[0] for c in odd_calls()])
def test_odd_calls(name, image, indices, reason):
    results = []
    for patched in (False, True):
        with compat.patch("quantus") if patched else warnings.catch_warnings():
            try:
                results.append(run(perturb_func.noisy_linear_imputation, image, indices, 0.01))
            except Exception as error:  # compared below
                results.append(type(error))
    passed_on = compat.status()["quantus"].passed_on
    if reason is None:
        assert not passed_on
        np.testing.assert_allclose(results[1][0], results[0][0], rtol=0, atol=2e-5)
        assert results[0][1] == results[1][1]
    else:
        assert passed_on == {("noisy_linear_imputation", reason): 1}
        if isinstance(results[0], type):
            assert results[1] is results[0]
        else:
            np.testing.assert_array_equal(results[1][0], results[0][0])


PERCENTAGES = [1, 10, 30, 50, 70, 99]


def road(channels, batch, noise=0.0, metric=None, **kwargs):
    model = cases.small_model(channels)
    images, attributions = cases.waves(channels)
    with torch.no_grad():
        labels = model(torch.from_numpy(images)).argmax(1).numpy()
    metric = metric or quantus.ROAD(percentages=PERCENTAGES, noise=noise, disable_warnings=True, **kwargs)
    cases.seed_everything(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = metric(model=model, x_batch=images, y_batch=labels, a_batch=attributions, batch_size=batch)
    return np.array(list(scores.values())), cases.state_digest()


@pytest.mark.parametrize("batch", [64, 5, 1])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_scores(batch, noise):
    theirs = road(1, batch, noise)
    early = quantus.ROAD(percentages=PERCENTAGES, noise=noise, disable_warnings=True)  # made before the patch
    with compat.patch("quantus"):
        ours, held = road(1, batch, noise), road(1, batch, noise, metric=early)
    for got in (ours, held):
        np.testing.assert_array_equal(got[0], theirs[0])
        assert got[1] == theirs[1]
    with compat.patch("quantus", noise="philox"):
        road(1, batch, noise)


@pytest.mark.skipif(OLD, reason="a regression of 0.6.0")
@pytest.mark.parametrize("mode", ["faithful", "fixed"])
def test_fault_rgb_raises(mode):
    with pytest.raises(IndexError):
        road(3, 64)
    with compat.patch("quantus", mode=mode):
        got, _ = road(3, 64)
    np.testing.assert_array_equal(got, golden_of_053("ROAD/3/64/0.0"))


def golden_of_053(key):
    from pathlib import Path

    path = Path(__file__).parent.parent / "golden" / "quantus-0.5.3.npz"
    with np.load(path, allow_pickle=False) as file:
        return file[key]


@pytest.mark.skipif(OLD, reason="a regression of 0.6.0")
def test_fault_first_batch_only():
    whole, first = road(1, 64)[0], road(1, 5)[0]
    assert not np.array_equal(whole, first)
    with compat.patch("quantus"):
        np.testing.assert_array_equal(road(1, 5)[0], first)
    with compat.patch("quantus", mode="fixed"):
        fixed = road(1, 5)[0]
    np.testing.assert_array_equal(fixed, golden_of_053("ROAD/1/5/0.0"))


@pytest.mark.skipif(OLD, reason="a regression of 0.6.0")
def test_faithful_warns_of_the_first_batch():
    with compat.patch("quantus"), pytest.warns(compat.CompatWarning, match="averages over the first batch only"):
        metric = quantus.ROAD(percentages=[50], disable_warnings=True)
        images = np.random.default_rng(0).random((4, 1, 8, 9)).astype(np.float32)
        metric(model=cases.small_model(1), x_batch=images, y_batch=np.zeros(4, int), a_batch=images, batch_size=2)


@pytest.mark.skipif(OLD, reason="a regression of 0.6.0")
def test_fault_size_is_cached():
    metric = quantus.ROAD(percentages=[50], noise=0.0, disable_warnings=True)
    rng, model = np.random.default_rng(0), cases.small_model(1)
    large, small = rng.random((2, 1, 20, 20)).astype(np.float32), rng.random((2, 1, 9, 9)).astype(np.float32)
    labels = np.zeros(2, int)
    metric(model=model, x_batch=large, y_batch=labels, a_batch=large)
    seen = {}
    for mode in ("faithful", "fixed"):
        with warnings.catch_warnings(), compat.patch("quantus", mode=mode):
            warnings.simplefilter("ignore")
            metric.a_size = 400
            metric(model=model, x_batch=small, y_batch=labels, a_batch=small)
            seen[mode] = metric.a_size
    assert seen == {"faithful": 400, "fixed": 81}


def test_fault_trapz():
    curve = np.random.default_rng(0).random((3, 7))
    if hasattr(np, "trapz"):
        pytest.skip("this NumPy still has it")
    with pytest.raises(AttributeError):
        utils.calculate_auc(curve[0])
    for mode in ("faithful", "fixed"):
        with compat.patch("quantus", mode=mode):
            np.testing.assert_allclose(utils.calculate_auc(curve[0]), np.trapezoid(curve[0]))
            if not OLD:
                np.testing.assert_allclose(utils.calculate_auc(curve, batched=True), np.trapezoid(curve, axis=1))


def test_fault_integers_are_truncated():
    x, holes = np.full((1, 6, 6), 9, np.uint8), np.array([14])
    x[0, 3, 3] = 8
    theirs = original(x, holes, 0.0)
    with compat.patch("quantus"):
        np.testing.assert_array_equal(perturb_func.noisy_linear_imputation(x, holes, 0.0), theirs)
    with compat.patch("quantus", mode="fixed"):
        fixed = perturb_func.noisy_linear_imputation(x, holes, 0.0)
    assert (int(theirs[0, 2, 2]), int(fixed[0, 2, 2])) == (8, 9)  # the mean of the neighbours is 8.92


@pytest.mark.filterwarnings("ignore")
def test_fault_nothing_left_is_nan_at_small_sizes():
    seen = {}
    for side in (1, 2, 4, 32):
        x, everything = np.ones((3, side, side), np.float32), np.arange(side * side)
        seen[side] = bool(np.isnan(original(x, everything, 0.0)).any())
        for mode in ("faithful", "fixed"):
            with compat.patch("quantus", mode=mode):
                assert not perturb_func.noisy_linear_imputation(x, everything, 0.0).any()
    assert any(seen.values())
    assert not all(seen.values())


def test_assertions_on_attributions():
    rng = np.random.default_rng(0)
    x = rng.random((3, 3, 12, 14)).astype(np.float32)
    a = rng.random((3, 1, 12, 14)).astype(np.float32)
    bad = [a * 0, a * 0 + 1, a * 0 + 0.5, -a - 1, a[:2], a[:, 0], a[..., :5], list(a), np.moveaxis(a, 1, -1)]
    for candidate in [a, np.repeat(a, 3, 1), *bad]:
        outcomes = []
        for patched in (False, True):
            with compat.patch("quantus") if patched else warnings.catch_warnings():
                try:
                    asserts.assert_attributions(x_batch=x, a_batch=candidate)
                    outcomes.append(None)
                except Exception as error:  # compared below
                    outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]
    assert compat.status()["quantus"].fast["assert_attributions"] == 2


def irof(metric, model, images, attributions, labels, batch=1):
    # One by one unless told: in a batch, 0.6.0 fills up the curves of images with fewer segments.
    return np.array(metric(model=model, x_batch=images, y_batch=labels, a_batch=attributions, batch_size=batch))


def irof_by_definition(model, images, attributions, labels):
    """Area over the curve of probabilities, relative to the first, as segments become 0, the most relevant first."""

    def probability(x, label):
        with torch.no_grad():
            return float(torch.softmax(model(torch.from_numpy(x[None])), 1)[0, label])

    areas = []
    for x, a, label in zip(images, attributions, labels):
        segments = utils.get_superpixel_segments(np.moveaxis(x, 0, -1).astype("double"), "slic")
        wide = np.broadcast_to(a, x.shape)  # for means that round as theirs do
        means = [wide[:, segments == s].mean() for s in range(len(np.unique(segments)))]
        curve, changed = [], x.copy()
        for s in np.argsort(-np.array(means)):
            changed[:, segments == s] = 0
            curve.append(probability(changed, label) / probability(x, label))
        areas.append(len(curve) - np.trapezoid(curve))
    return np.array(areas)


@pytest.mark.skipif(OLD, reason="a regression of 0.6.0")
@pytest.mark.parametrize("mode", ["faithful", "fixed"])
def test_fault_irof_raises_on_rgb(mode):
    pytest.importorskip("skimage")
    images, attributions = cases.waves(3)
    images, attributions, model = images[:6], attributions[:6], cases.small_model(3)
    with torch.no_grad():
        labels = model(torch.from_numpy(images)).argmax(1).numpy()
    options = {"perturb_baseline": 0.0, "return_aggregate": False, "normalise": False, "disable_warnings": True}
    metric = quantus.IROF(**options)
    with pytest.raises(AssertionError, match="must be the same as the mask shape"):
        irof(metric, model, images, attributions, labels)
    with warnings.catch_warnings(), compat.patch("quantus", mode=mode):
        warnings.simplefilter("ignore")
        got = irof(metric, model, images, attributions, labels)
        held = metric.perturb_func
    np.testing.assert_allclose(got, irof_by_definition(model, images, attributions, labels), rtol=1e-4)
    assert metric.perturb_func is held
    assert compat.status()["quantus"].fast["IROF"] == 6  # batches


@pytest.mark.skipif(OLD, reason="a regression of 0.6.0")
def test_fault_irof_fills_up_curves_in_a_batch():
    pytest.importorskip("skimage")
    images, attributions = cases.waves(1)
    model = cases.small_model(1)
    with torch.no_grad():
        labels = model(torch.from_numpy(images)).argmax(1).numpy()
    options = {"perturb_baseline": 0.0, "return_aggregate": False, "normalise": False, "disable_warnings": True}
    metric = quantus.IROF(segmentation_method="felzenszwalb", **options)  # as many segments as an image needs
    results = {}
    for mode in ("faithful", "fixed"):
        with warnings.catch_warnings(record=True) as caught, compat.patch("quantus", mode=mode):
            warnings.simplefilter("always")
            compat.reset_status()
            results[mode] = [irof(metric, model, images, attributions, labels, batch) for batch in (1, 13)]
        assert any("curves of images with fewer segments" in str(w.message) for w in caught) == (mode == "faithful")
    alone, together = results["faithful"]
    assert np.abs(alone - together).max() > 0.01
    np.testing.assert_allclose(results["fixed"][0], alone, rtol=1e-6)
    np.testing.assert_allclose(results["fixed"][1], alone, rtol=1e-4)
