"""Patches of packages that cannot be installed here, on stand-ins for them: what is replaced, undone, counted and returned.

Levels C, D and F of road_evaluation, soco, roar and Quantus' ROAD against golden files, and the reasons of `status()` for
which calls go to the original (level G). With Quantus and grad-cam themselves: tests/compat/live.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import peer_cases as cases

torch = pytest.importorskip("torch")

from helpers import stand_ins  # noqa: E402 - needs torch
from helpers.stand_ins import THEIRS  # noqa: E402

from roarfast import compat, removal_mask  # noqa: E402
from roarfast.compat import _peers, _slots, grad_cam, quantus, road, roar  # noqa: E402

SEED = 11
pytestmark = pytest.mark.filterwarnings("ignore::roarfast.compat.CompatWarning")


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()
    yield
    assert not _slots._slots


def golden(name):
    with np.load(Path(__file__).parent / "golden" / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


def images(dtype=torch.float32, channels=3):
    return torch.from_numpy(np.random.default_rng(3).random((6, channels, 16, 18)).astype(np.float32)).to(dtype)


# ---- undone, and warned of


MAKERS = {
    "quantus": stand_ins.quantus,
    "grad-cam": stand_ins.grad_cam,
    "road": stand_ins.road,
    "soco": lambda m: stand_ins.soco(m, []),
    "roar": stand_ins.roar,
}


def snapshot(name):
    """Every attribute of the modules of a stand-in, of its classes, and every entry of its dicts."""
    found = {}
    for module in [m for m in list(sys.modules.values()) if isinstance(m, stand_ins.StandIn)]:
        for attribute, value in vars(module).items():
            found[module.__name__, attribute] = value
            if isinstance(value, type | dict):
                inside = value if isinstance(value, dict) else vars(value)
                found.update({(module.__name__, attribute, key): item for key, item in inside.items()})
    assert any(key[0].startswith(name.replace("grad-cam", "pytorch_grad_cam")) for key in found)
    return found


@pytest.mark.parametrize("name", list(MAKERS))
def test_undone_in_every_order(monkeypatch, name):
    MAKERS[name](monkeypatch)
    with compat.patch(name):  # modules that are loaded by a patch stay loaded
        pass
    before = snapshot(name)
    for order in itertools.permutations(range(3)):
        blocks = [compat.patch(name), compat.patch(name, mode="fixed"), compat.patch(name, noise="philox")]
        for block in blocks:
            block.__enter__()
        for i in order:
            now = snapshot(name)
            assert any(now[key] is not before[key] for key in before)
            blocks[i].__exit__(None, None, None)
        after = snapshot(name)
        assert before.keys() == after.keys()
        assert all(before[key] is after[key] for key in before)
    with pytest.raises(KeyError), compat.patch(name):
        raise KeyError
    assert all(snapshot(name)[key] is before[key] for key in before)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", list(MAKERS))
def test_another_source_warns_once(monkeypatch, name):
    MAKERS[name](monkeypatch)
    record = _peers.find(name)
    if record.versions:
        monkeypatch.setattr(_peers, "version", lambda peer: record.versions[0])
    what = f"version {record.versions[0]}" if record.versions else "this copy"
    with pytest.warns(compat.CompatWarning, match=rf"{name}: the source of .* in {what} differs"), compat.patch(name):
        assert compat.status()[name].tested is False
    with warnings.catch_warnings(), compat.patch(name):
        warnings.simplefilter("error")


# ---- Quantus


def quantus_scores(monkeypatch, channels, batch, sigma, **options):
    _, cls, _ = stand_ins.quantus(monkeypatch)
    net = cases.small_model(channels)
    x, a = cases.waves(channels)
    model = stand_ins.Model(net)
    labels = model.predict(x).argmax(1)
    metric = cls([1, 10, 30, 50, 70, 99], sigma)  # made before the patch
    cases.seed_everything(SEED)
    with compat.patch("quantus", **options):
        scores = metric(model, x, labels, a, batch)
    assert compat.status()["quantus"].fast["ROAD"] == -(-len(x) // batch)
    return np.array(list(scores.values())), cases.state_digest()


@pytest.mark.parametrize("batch", [64, 5])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_quantus_scores_and_generator(monkeypatch, batch, noise):
    expected = golden("quantus-0.6.0")
    scores, state = quantus_scores(monkeypatch, 1, batch, noise)
    np.testing.assert_array_equal(scores, expected[f"ROAD/1/{batch}/{noise}"])
    assert state == str(expected[f"ROAD/1/{batch}/{noise}/state"])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("batch", [64, 5])
def test_quantus_fixed_is_what_053_did(monkeypatch, channels, batch):
    scores, _ = quantus_scores(monkeypatch, channels, batch, 0.0, mode="fixed")
    np.testing.assert_array_equal(scores, golden("quantus-0.5.3")[f"ROAD/{channels}/{batch}/0.0"])


def test_quantus_philox_leaves_the_generator_alone(monkeypatch):
    cases.seed_everything(SEED)
    before = cases.state_digest()
    scores, state = quantus_scores(monkeypatch, 1, 64, 0.01, noise="philox")
    assert state == before
    np.testing.assert_allclose(scores, golden("quantus-0.6.0")["ROAD/1/64/0.01"], atol=0.16)  # two of 13 images


def test_quantus_faults_by_mode(monkeypatch):
    functions, cls, _ = stand_ins.quantus(monkeypatch)
    metric = cls([50])
    bytes_, hole = np.full((1, 6, 6), 9, np.uint8), np.array([14])
    bytes_[0, 3, 3] = 8
    for mode, size in (("faithful", 400), ("fixed", 81)):
        with compat.patch("quantus", mode=mode):
            metric.a_size = 400
            metric.custom_batch_preprocess(a_batch=np.zeros((2, 1, 9, 9)))
            assert metric.a_size == size
            got = functions.noisy_linear_imputation(bytes_, hole, 0.0)
            assert got is THEIRS if mode == "faithful" else got[0, 2, 2] == 9  # the mean of the neighbours is 8.92


X, HOLES = np.random.default_rng(0).random((3, 9, 8)).astype(np.float32), np.array([1, 5, 40])
QUANTUS = [
    ((X[0], HOLES), "an image that is not [C, H, W]"),
    ((X.tolist(), HOLES), "an image that is not [C, H, W]"),
    ((X.astype(np.uint8), HOLES), "an image of integers"),
    ((X.astype(np.complex64), HOLES), "an image of dtype complex64"),
    ((X, HOLES.tolist()), "indices that are no 1-D array"),
    ((X, HOLES.astype(float)), "indices of dtype float64"),
    ((X, np.array([72])), "indices out of range"),
    ((np.full_like(X, np.nan), HOLES), "NaN or infinity in a known pixel"),
]


@pytest.mark.parametrize(("arguments", "reason"), QUANTUS, ids=[reason for _, reason in QUANTUS])
def test_quantus_function_is_asked(monkeypatch, arguments, reason):
    functions, *_ = stand_ins.quantus(monkeypatch)
    with compat.patch("quantus"):
        assert functions.noisy_linear_imputation(*arguments) is THEIRS
    assert compat.status()["quantus"].passed_on == {("noisy_linear_imputation", reason): 1}
    with pytest.raises(ValueError, match=r"^arr must be a finite float image"):  # the import swap has nobody to ask
        quantus.noisy_linear_imputation(*arguments)


def other(arr, indices, **kwargs):
    return arr


X4, A4 = np.random.default_rng(0).random((2, 3, 9, 8)).astype(np.float32), np.ones((2, 1, 9, 8), np.float32)
QUANTUS_ROAD = [
    (other, X4, A4, "a perturbation of another kind"),
    (None, X4[0], A4, "images that are not [B, C, H, W]"),
    (None, X4.astype(np.uint8), A4, "images of dtype uint8"),
    (None, X4, np.repeat(A4, 3, 1), "attributions that are not [B, 1, H, W]"),
    (None, X4 * np.float32("nan"), A4, "NaN or infinity in an image"),
]


@pytest.mark.parametrize(("function", "x", "a", "reason"), QUANTUS_ROAD, ids=[row[-1] for row in QUANTUS_ROAD])
def test_quantus_road_is_asked(monkeypatch, function, x, a, reason):
    _, cls, _ = stand_ins.quantus(monkeypatch)
    with compat.patch("quantus"):
        assert cls([50], function=function).evaluate_batch(model=None, x_batch=x, y_batch=None, a_batch=a) is THEIRS
    assert compat.status()["quantus"].passed_on == {("ROAD", reason): 1}


def test_quantus_check_is_asked(monkeypatch):
    stand_ins.quantus(monkeypatch)
    with compat.patch("quantus"):
        check = sys.modules["quantus.helpers.asserts"].assert_attributions
        with pytest.raises(AssertionError, match=THEIRS):
            check(x_batch=X4, a_batch=A4)
        assert check(x_batch=X4, a_batch=X4[:, :1]) is None
    assert compat.status()["quantus"].passed_on == {
        ("assert_attributions", "attributions of another shape, or constant"): 1
    }


# ---- grad-cam


def cams(n=6):
    return cases.maps(n, 16, 18)


@pytest.mark.parametrize("name", ["ROADMostRelevantFirst", "ROADLeastRelevantFirst", "ROADCombined"])
def test_grad_cam_scores_are_the_swaps(monkeypatch, name):
    peer = stand_ins.grad_cam(monkeypatch)
    model, targets = cases.small_model(3), [lambda out: out[1]] * 6
    mine = grad_cam.ROADCombined((20, 80)) if name == "ROADCombined" else getattr(grad_cam, name)()
    results = []
    for metric in (mine, getattr(peer, name)()):
        cases.seed_everything(SEED)
        with compat.patch("grad-cam"):
            results.append((metric(images(), cams(), targets, model), cases.state_digest()))
    np.testing.assert_array_equal(results[1][0], results[0][0])
    assert results[1][1] == results[0][1]
    assert not compat.status()["grad-cam"].passed_on


class Other:
    percentile = 50


def with_imputer(peer, base):
    return peer.PerturbationConfidenceMetric(peer.RemoveMostRelevantFirst(50, type("Mine", (base,), {})()))


GRAD_CAM = [
    (lambda p: None, lambda x, a: (x.numpy(), a), "an input that is no [B, C, H, W] tensor"),
    (lambda p: None, lambda x, a: (x.to(torch.uint8), a), "an input without floats"),
    (lambda p: None, lambda x, a: (x * float("nan"), a), "NaN or infinity in an image"),
    (lambda p: None, lambda x, a: (x, list(a)), "other maps than [B, H, W]"),
    (lambda p: None, lambda x, a: (x, a[:3]), "other maps than [B, H, W]"),
    (lambda p: None, lambda x, a: (x, a[:, 2:]), "maps of another size than the images"),
    (lambda p: None, lambda x, a: (x, a.astype(np.float16)), "maps of dtype float16"),
    (lambda p: None, lambda x, a: (x, a * np.float32("nan")), "NaN or infinity in a map"),
    (lambda p: p.PerturbationConfidenceMetric(Other()), lambda x, a: (x, a), "a perturbation of type Other"),
    (lambda p: with_imputer(p, p.NoisyLinearImputer), lambda x, a: (x, a), "an imputer of type Mine"),
]


@pytest.mark.parametrize(("make", "change", "reason"), GRAD_CAM, ids=[row[-1] for row in GRAD_CAM])
def test_grad_cam_metric_is_asked(monkeypatch, make, change, reason):
    peer = stand_ins.grad_cam(monkeypatch)
    metric = make(peer) or peer.ROADMostRelevantFirst()
    x, a = change(images(), cams())
    with compat.patch("grad-cam"):
        assert metric(x, a, [], None) is THEIRS
    assert compat.status()["grad-cam"].passed_on == {("PerturbationConfidenceMetric", reason): 1}


class OwnCall:
    def __call__(self, *args):
        return THEIRS


def test_grad_cam_averages_are_asked(monkeypatch):
    peer = stand_ins.grad_cam(monkeypatch)
    own = type("Own", (peer.ROADMostRelevantFirst,), {"__call__": OwnCall.__call__})
    training = cases.small_model(3).train()
    arguments = images(), cams(), [lambda out: out[1]] * 6
    with compat.patch("grad-cam"):
        averager = peer.AveragerAcrossThresholds
        for metric, model in ((averager(lambda p: Other()), None), (averager(own), None)):
            assert metric(*arguments, model) is THEIRS
        for cls in (lambda: averager(peer.ROADMostRelevantFirst), peer.ROADCombined):
            assert cls()(*arguments, training) is THEIRS
        assert peer.ROADCombined(lambda p: Other())(*arguments, None) is THEIRS
    training_mode = "a model in training mode: forward passes may differ"
    assert compat.status()["grad-cam"].passed_on == {
        ("AveragerAcrossThresholds", "an average of other metrics"): 1,
        ("AveragerAcrossThresholds", "a metric with a call of its own"): 1,
        ("AveragerAcrossThresholds", training_mode): 1,
        ("ROADCombined", training_mode): 1,
        ("ROADCombined", "an average of other metrics"): 1,
    }


def test_grad_cam_of_an_unknown_source_is_tried_before_a_metric_takes_it(monkeypatch):
    peer = stand_ins.grad_cam(monkeypatch)
    plain = peer.NoisyLinearImputer.__call__
    monkeypatch.setattr(peer.NoisyLinearImputer, "__call__", lambda self, img, mask: plain(self, img, mask) + 0.1)
    model, arguments = cases.small_model(3), (images(), cams(), [lambda out: out[1]] * 6)
    with compat.patch("grad-cam"):
        for metric in (peer.ROADMostRelevantFirst(), peer.AveragerAcrossThresholds(peer.ROADLeastRelevantFirst)):
            assert metric(*arguments, model) is THEIRS
        assert peer.ROADCombined()(*arguments, model) is THEIRS
    assert {reason for _, reason in compat.status()["grad-cam"].passed_on} == {
        "other numbers than road_evaluation on a trial image"
    }


# ---- road_evaluation


MASK = torch.ones(16, 18)
MASK[4:9, 5:] = 0
IMPUTER = [
    (images()[0].numpy(), MASK, "an argument that is no tensor"),
    (images()[0, 0], MASK, "an image that is not [C, H, W]"),
    (images()[0], MASK[1:], "an image that is not [C, H, W]"),
    (images()[0, :0], MASK, "an image without pixels"),
    (images()[0], MASK.to("meta"), "image and mask on two devices"),
    (images(torch.int64)[0], MASK, "an image of dtype torch.int64"),
    (images()[0] * float("inf"), MASK, "NaN or infinity in a known pixel"),
    (images()[0], MASK * 0.4, "a mask with values between 0 and 1"),
]


@pytest.mark.parametrize(("image", "mask", "reason"), IMPUTER, ids=[row[-1] for row in IMPUTER])
def test_imputers_are_asked(monkeypatch, image, mask, reason):
    _, peer = stand_ins.road(monkeypatch)
    with compat.patch("road"), contextlib.suppress(Exception):  # the original's own errors
        peer.NoisyLinearImputer()(image, mask)
    assert compat.status()["road"].passed_on == {("NoisyLinearImputer", reason): 1}
    for swap in (road, grad_cam):
        with pytest.raises(ValueError, match=r"^img must be a finite \[C, H, W\] tensor and mask"):
            swap.NoisyLinearImputer()(image, mask)


def test_batches_of_imputers(monkeypatch):
    _, peer = stand_ins.road(monkeypatch)
    masks = torch.stack([MASK.roll(i, 1) for i in range(6)])
    results = []
    for call in (road.NoisyLinearImputer().batched_call, lambda x, m: peer.NoisyLinearImputer().batched_call(x, m)):
        cases.seed_everything(SEED)
        with compat.patch("road"):
            results.append((call(images(), masks), cases.state_digest()))
    assert torch.equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    shapes = "other shapes than [B, C, H, W] and [B, H, W]"
    with compat.patch("road"):
        for bad, reason in ((masks[:5], shapes), (masks * 0.4, "a mask with values between 0 and 1")):
            compat.reset_status()
            assert peer.NoisyLinearImputer().batched_call(images(), bad) is THEIRS
            assert compat.status()["road"].passed_on == {("batched_call", reason): 1}
            with pytest.raises(ValueError, match=r"^img must be finite \[B, C, H, W\] and mask"):
                road.NoisyLinearImputer().batched_call(images(), bad)


def explanations(dtype):
    return np.stack([cases.maps(6, 16, 18)] * 3, -1).astype(dtype) * np.array([1, 0.5, 0.25], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("remove", [True, False])
def test_road_data_sets(monkeypatch, dtype, remove):
    expected = golden("road_evaluation")
    _, peer = stand_ins.road(monkeypatch)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        cases.seed_everything(SEED)
        items = [(image, i) for i, image in enumerate(images())]
        data = peer.ImputedDataset(
            items, explanations(dtype), share, remove, lambda img, mask: mask, prediction=[4] * 6
        )
        with compat.patch("road"):
            got = [data[i] for i in range(6)]
        key = f"masks/{dtype}/{remove}/{share}"
        np.testing.assert_array_equal(np.packbits(np.stack([g[0].numpy() == 0 for g in got])), expected[key])
        assert cases.state_digest() == str(expected[f"{key}/state"])
        assert [g[1:] for g in got] == [(i, 4) for i in range(6)]


def test_road_is_asked(monkeypatch):
    package, peer = stand_ins.road(monkeypatch)
    items = [(image, 0) for image in images()]
    with compat.patch("road"):
        cached = peer.ImputedDataset(items, explanations(float), 0.5, True, road.ZeroImputer(), use_cache=True)
        tensors = peer.ImputedDataset(items, torch.rand(6, 16, 18, 3), 0.5, True, road.ZeroImputer())
        assert cached[0] is tensors[0] is THEIRS
        assert package.run_road(1, 2, 3, 4, 5, True, 64, "linear")[0][-1] == "imputer linear"
        assert package.run_road(imputation="zero")[1] == {"imputation": "imputer zero"}
    assert compat.status()["road"].passed_on == {
        ("ImputedDataset", "a data set with a cache"): 1,
        ("ImputedDataset", "explanations that are not NumPy arrays"): 1,
    }


@pytest.mark.parametrize("mode", ["faithful", "fixed"])
def test_road_eval(monkeypatch, mode):
    package, _ = stand_ins.road(monkeypatch)
    data = [(image, 2, 0) for image in images()]
    loader, net = torch.utils.data.DataLoader(data, 4), cases.small_model(3)
    with torch.no_grad():
        expected = net(images()).softmax(1).mean(0)
    with compat.patch("road", mode=mode):
        for module in (package.road, package.retraining):
            accuracy, probability = module.road_eval(net, loader)
            assert probability == pytest.approx(float(expected[0 if mode == "faithful" else 2]))
    assert 0 <= accuracy <= 1


# ---- soco


@pytest.mark.parametrize("mode", ["morf", "lerf"])
@pytest.mark.parametrize("area", [True, False])
def test_soco(monkeypatch, area, mode):
    expected = golden("soco")
    x, maps = torch.from_numpy(expected["images"]).float(), torch.from_numpy(expected["maps"])
    key = f"float32/{area}/{mode}"
    removed = np.unpackbits(expected[f"{key}/mask"])[: maps.numel()].reshape(maps.shape).astype(bool)
    cls = stand_ins.soco(monkeypatch, torch.from_numpy(~removed).float())
    cases.seed_everything(SEED)
    with compat.patch("soco"):
        result = cls(0.01, 0.4, mode, area).forward(x, maps)
    assert cases.state_digest() == str(expected[f"{key}/state"])
    np.testing.assert_array_equal(result["mask"] == 0, removed)
    np.testing.assert_allclose(result["imputed_img"], expected[key], rtol=0, atol=1e-5 + 4e-7)
    assert compat.status()["soco"].fast == {"ROAD": 1}


@pytest.mark.parametrize("mode", ["morf", "lerf"])
def test_our_masks_are_socos_off_ties(mode):
    expected = golden("soco")
    maps = expected["maps"]
    bits = np.unpackbits(expected[f"float32/True/{mode}/mask"])[: maps.size].reshape(maps.shape).astype(bool)
    ours = removal_mask(maps.astype(np.float32), 0.4, order=mode)
    assert (ours.sum((1, 2)) == bits.sum((1, 2))).all()
    for a, mine, theirs in zip(maps, ours, bits):
        (tied,) = np.unique(a[mine != theirs]) if (mine != theirs).any() else ((None,))
        np.testing.assert_array_equal(mine[a != tied], theirs[a != tied])


SOCO = [
    (lambda x, m: (x[0], m), {}, "images that are not [B, C, H, W]"),
    (lambda x, m: (x, m), {"mask_ratio": None}, "no mask ratio, or no images"),
    (lambda x, m: (x[:0], m[:0]), {}, "no mask ratio, or no images"),
    (lambda x, m: (x.to(torch.uint8), m), {}, "images that are not plain floats"),
    (lambda x, m: (x.requires_grad_(), m), {}, "images that are not plain floats"),
    (lambda x, m: (x.to("meta"), m), {}, "images on a GPU, whose order of random numbers is not known"),
    (lambda x, m: (x * float("nan"), m), {}, "NaN or infinity in an image"),
    (lambda x, m: (x, m[:, 1:]), {}, "an image that is not [C, H, W]"),
]


@pytest.mark.parametrize(("change", "options", "reason"), SOCO, ids=[row[-1] for row in SOCO])
def test_soco_is_asked(monkeypatch, change, options, reason):
    cls = stand_ins.soco(monkeypatch, [])
    with compat.patch("soco"):
        assert cls(**options).forward(*change(images(), torch.rand(6, 16, 18))) is THEIRS
    assert compat.status()["soco"].passed_on == {("ROAD", reason): 1}


# ---- roar


def test_roar(monkeypatch):
    impute, _ = stand_ins.roar(monkeypatch)
    image = np.random.default_rng(3).random((16, 18, 3)).astype(np.float32)
    gone = (MASK.numpy() == 0)[..., None]
    cases.seed_everything(SEED)
    expected, state = roar.linear_imputation(image, gone, 0.1), cases.state_digest()
    cases.seed_everything(SEED)
    with compat.patch("roar"):
        got = impute(0.1).transform({"img": image, "mask": gone, "label": 3})
    np.testing.assert_array_equal(got["img"], expected)
    assert got["label"] == 3
    assert cases.state_digest() == state
    added = (got["img"] - roar.linear_imputation(image, gone, 0.0))[gone[..., 0]]
    assert added.min() > -1e-6 and added.max() < 0.1 + 1e-6 and 0.04 < added.mean() < 0.06  # uniform, as theirs


@pytest.mark.parametrize("kind", ["none", "maximum", "gaussian"])
def test_roar_masks_and_images(monkeypatch, tmp_path, kind):
    _, remove = stand_ins.roar(monkeypatch)
    attribution = golden("roar")["maps"][0]
    (tmp_path / "grad").mkdir()
    np.save(tmp_path / "grad" / "a.npy", attribution)
    image = np.random.default_rng(3).random((16, 18, 3)).astype(np.float32)
    with compat.patch("roar"):
        got = remove(str(tmp_path), 50, kind).transform({"img": image, "img_path": "x/a.jpg"})
        masked = remove(str(tmp_path), 50, kind, False).transform({"img": image, "img_path": "x/a.jpg"})
    bits = np.unpackbits(golden("roar")[f"masks/{kind}/50"])[: 16 * 18].reshape(16, 18, 1).astype(bool)
    np.testing.assert_array_equal(got["mask"], bits)
    np.testing.assert_array_equal(got["img"], np.where(bits, [1.0, 2.0, 3.0], image))
    assert got["img"].dtype == np.float64  # as theirs
    assert masked["img"] is image
    with compat.patch("roar"):
        everything = remove(str(tmp_path), 100, kind).transform({"img": image, "img_path": "x/a.jpg"})["img"]
    np.testing.assert_array_equal(everything, golden("roar")["removed_image"])
    assert everything.dtype == golden("roar")["removed_image"].dtype


ROAR = [
    (np.zeros((4, 4), np.float32), np.zeros((4, 4)), "an image that is not [H, W, C]"),
    (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4)), "an image of dtype uint8"),
    (np.zeros((4, 4, 3), np.float32), np.zeros((4, 5)), "a mask of another size than the image"),
    (np.zeros((4, 4, 3), np.float32), np.full((4, 4), 0.5), "a mask with values between 0 and 1"),
    (np.full((4, 4, 3), np.nan, np.float32), np.eye(4), "NaN or infinity in a known pixel"),
]


@pytest.mark.parametrize(("image", "mask", "reason"), ROAR, ids=[row[-1] for row in ROAR])
def test_roar_imputation_is_asked(monkeypatch, image, mask, reason):
    impute, _ = stand_ins.roar(monkeypatch)
    with compat.patch("roar"):
        assert impute().transform({"img": image, "mask": mask}) is THEIRS
    assert compat.status()["roar"].passed_on == {("LinearImputation", reason): 1}
    with pytest.raises(ValueError, match=r"^img must be a finite float32 or float64 image \[H, W, C\] and mask"):
        roar.linear_imputation(image, mask)


def test_roar_masks_are_asked(monkeypatch, tmp_path):
    _, remove = stand_ins.roar(monkeypatch)
    (tmp_path / "grad").mkdir()
    np.save(tmp_path / "grad" / "a.npy", np.full((3, 4, 4), np.nan, np.float32))
    np.save(tmp_path / "grad" / "b.npy", np.zeros((3, 4, 4), np.float32))
    with compat.patch("roar"):
        assert remove(str(tmp_path), 50, "none").transform({"img_path": "a.jpg"}) is THEIRS
        assert remove(str(tmp_path), 50, "median").transform({"img_path": "b.jpg"}) is THEIRS
    assert compat.status()["roar"].passed_on == {
        ("RemOve", "maps that are not finite [C, H, W] floats, or an unknown filter"): 2
    }
