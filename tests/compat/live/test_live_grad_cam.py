"""pytorch-grad-cam itself against the patch and the import swap. Run by `make compat`."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest
from helpers import peer_cases as cases

torch = pytest.importorskip("torch")
if importlib.util.find_spec("pytorch_grad_cam") is None:
    pytest.skip("grad-cam is not installed", allow_module_level=True)

from roarfast._torchvision import import_torchvision  # noqa: E402

import_torchvision()
from pytorch_grad_cam.metrics import perturbation_confidence as confidence  # noqa: E402
from pytorch_grad_cam.metrics import road  # noqa: E402

from roarfast import compat  # noqa: E402
from roarfast.compat import grad_cam  # noqa: E402

CLASSES = [
    road.NoisyLinearImputer,
    road.ROADCombined,
    confidence.PerturbationConfidenceMetric,
    confidence.AveragerAcrossThresholds,
]


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()


def test_restored_exactly():
    before = [dict(vars(cls)) for cls in CLASSES]
    with pytest.raises(KeyError), compat.patch("grad-cam"), compat.patch("grad-cam"):
        assert vars(road.ROADCombined)["__call__"] is not before[1]["__call__"]
        raise KeyError
    for cls, attributes in zip(CLASSES, before):
        assert vars(cls).keys() == attributes.keys()
        assert all(vars(cls)[name] is value for name, value in attributes.items())
    assert compat.status()["grad-cam"].tested


def run(call, *args):
    cases.seed_everything(11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args), cases.state_digest()


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_images_and_generator(noise):
    for case in [*cases.image_cases(), cases.large_case(0.5, 64), cases.large_case(), cases.large_case(0.9)]:
        image = torch.from_numpy(case.image.astype(np.float32))
        mask = torch.from_numpy((~case.removed).astype(np.float32))
        imputer = road.NoisyLinearImputer(noise)
        theirs, state = run(imputer, image, mask)
        with compat.patch("grad-cam"):
            ours, our_state = run(imputer, image, mask)
        assert state == our_state
        if not case.removed.all():
            limit = cases.bound(case, "float32", 1e-5)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=limit, err_msg=case.name)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.uint8])
def test_fault_dtypes_raise(dtype):
    image, mask = (torch.rand(3, 8, 8) * 200).to(dtype), (torch.rand(8, 8) < 0.5).float()
    with pytest.raises(RuntimeError):
        road.NoisyLinearImputer()(image, mask)
    for mode in ("faithful", "fixed"):
        with compat.patch("grad-cam", mode=mode):
            assert road.NoisyLinearImputer()(image, mask).dtype == dtype


def test_fault_gradients_raise():
    image, mask = torch.rand(3, 8, 8, requires_grad=True), (torch.rand(8, 8) < 0.5).float()
    with pytest.raises(RuntimeError):
        road.NoisyLinearImputer()(image, mask)
    with compat.patch("grad-cam"):
        assert not road.NoisyLinearImputer()(image, mask).requires_grad


@pytest.mark.filterwarnings("ignore")
def test_fault_nothing_left_is_nan_at_small_sizes():
    seen = {}
    for side in (1, 2, 4, 32):
        x, nothing = torch.ones(3, side, side), torch.zeros(side, side)
        seen[side] = bool(road.NoisyLinearImputer(0.0)(x, nothing).isnan().any())
        for mode in ("faithful", "fixed"):
            with compat.patch("grad-cam", mode=mode):
                assert not road.NoisyLinearImputer(0.0)(x, nothing).any()
    assert any(seen.values())
    assert not all(seen.values())


def test_fault_weighting_is_ignored():
    uneven = [((0, 1), 0.5), ((0, -1), 0.5)]
    image, mask = torch.rand(1, 8, 8), (torch.rand(8, 8) < 0.7).float()
    theirs = road.NoisyLinearImputer(0.0, uneven)(image, mask)
    torch.testing.assert_close(theirs, road.NoisyLinearImputer(0.0)(image, mask))
    with compat.patch("grad-cam"), pytest.warns(compat.CompatWarning, match="weighting is ignored"):
        torch.testing.assert_close(road.NoisyLinearImputer(0.0, uneven)(image, mask), theirs, rtol=0, atol=2e-5)
    with compat.patch("grad-cam", mode="fixed"):
        fixed = road.NoisyLinearImputer(0.0, uneven)(image, mask)
    assert float((fixed - theirs).abs().max()) > 1e-3


def odd_images():
    x = torch.rand(3, 9, 8, generator=torch.Generator().manual_seed(0))
    yield "transposed", x.transpose(1, 2), torch.ones(8, 9)
    yield "strided", torch.repeat_interleave(x, 2, 2)[:, :, ::2], torch.ones(9, 8)
    yield "channels last", x[None].to(memory_format=torch.channels_last)[0], torch.ones(9, 8)
    yield "four channels", torch.cat([x, x[:1]]), torch.ones(9, 8)
    under = x.clone()
    under[:, 1, 2] = float("nan")
    yield "NaN under the mask", under, torch.ones(9, 8)
    yield "mask of bytes", x, torch.ones(9, 8, dtype=torch.uint8)
    yield "mask of doubles", x, torch.ones(9, 8, dtype=torch.float64)


@pytest.mark.parametrize(("name", "image", "mask"), list(odd_images()), ids=[c[0] for c in odd_images()])
def test_odd_images(name, image, mask):
    mask[1, 2] = mask[4, 3:6] = mask[5, 4] = 0
    theirs, state = run(road.NoisyLinearImputer(), image.clone(), mask)
    with compat.patch("grad-cam"):
        ours, our_state = run(road.NoisyLinearImputer(), image, mask)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-5)
    assert state == our_state
    assert not compat.status()["grad-cam"].passed_on


METRICS = [
    "ROADMostRelevantFirst",
    "ROADLeastRelevantFirst",
    "ROADMostRelevantFirstAverage",
    "ROADLeastRelevantFirstAverage",
    "ROADCombined",
]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", METRICS)
def test_scores_and_forward_passes(name, channels):
    images = torch.from_numpy(np.random.default_rng(3).random((5, channels, 24, 20)).astype(np.float32))
    cams, model = cases.maps(5, 24, 20), cases.small_model(channels)
    targets = [lambda out: torch.softmax(out, -1)[1]] * 5
    results = []
    for how in ("theirs", "patched", "swapped"):
        model.calls = 0
        with compat.patch("grad-cam") if how == "patched" else warnings.catch_warnings():
            metric = getattr(grad_cam if how == "swapped" else road, name)()
            scores, state = run(metric, images, cams, targets, model)
        results.append((scores, state, model.calls))
    for scores, state, calls in results[1:]:
        limit = 1e-4 * np.abs(results[0][0]).max()
        np.testing.assert_allclose(scores, results[0][0], rtol=0, atol=limit)
        assert state == results[0][1]
        assert calls == {36: 19, 18: 10, 2: 2}[results[0][2]]


def test_fault_auto_is_inverted():
    pytest.importorskip("cv2")
    image, cam = torch.rand(1, 1, 16, 16), np.random.default_rng(0).random((1, 16, 16)).astype(np.float32)
    removed = {}
    for mode in ("theirs", "faithful", "fixed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with compat.patch("grad-cam", mode=mode) if mode != "theirs" else warnings.catch_warnings():
                metric = road.ROADMostRelevantFirst("auto")
                _, changed = metric(image, cam, [lambda out: out[0]], torch.nn.Flatten(), True)
        removed[mode] = float(cam[0][(changed != image)[0, 0].numpy()].mean())
    assert removed["theirs"] == removed["faithful"] < 0.5 < removed["fixed"]


def test_fault_least_relevant_first_loses_small_values():
    image = torch.rand(1, 1, 32, 32)
    cam = np.exp(-30 * np.random.default_rng(0).random((1, 32, 32))).astype(np.float32)
    counts = {}
    for mode in ("theirs", "faithful", "fixed"):
        with compat.patch("grad-cam", mode=mode) if mode != "theirs" else warnings.catch_warnings():
            _, changed = road.ROADLeastRelevantFirst(80)(image, cam, [lambda out: out[0]], torch.nn.Flatten(), True)
        counts[mode] = int((changed != image).sum())
    assert counts["theirs"] == counts["faithful"] > 250
    assert counts["fixed"] in range(203, 207)  # 20 % of 1024


class Other:
    def __call__(self, image, cam):
        return image * 0


def test_each_reason_to_pass_on():
    images, cams = torch.rand(2, 1, 8, 8), np.random.default_rng(0).random((2, 8, 8)).astype(np.float32)
    targets, model = [lambda out: out[0]] * 2, torch.nn.Flatten()

    class Mine(road.NoisyLinearImputer):
        pass

    remove = confidence.RemoveMostRelevantFirst
    with compat.patch("grad-cam"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        confidence.PerturbationConfidenceMetric(Other())(images, cams, targets, model)
        confidence.PerturbationConfidenceMetric(remove(50, Mine()))(images, cams, targets, model)
        road.ROADMostRelevantFirst()(images * float("nan"), cams, targets, model)
        road.ROADCombined()(images, cams, targets, model.train())
        road.ROADMostRelevantFirstAverage()(images, cams, targets, model.train())
        road.NoisyLinearImputer()(images[0], torch.full((8, 8), 0.6))
    reasons = {reason for _, reason in compat.status()["grad-cam"].passed_on}
    assert reasons >= {
        "a perturbation of type Other",
        "an imputer of type Mine",
        "NaN or infinity in an image",
        "a model in training mode: forward passes may differ",
    }


def test_kornia():
    kornia = pytest.importorskip("kornia.filters")
    from roarfast.compat import torch_ops

    images = torch.rand(2, 3, 20, 24)
    for border in ("reflect", "replicate", "circular", "constant"):
        expected = kornia.gaussian_blur2d(images, (5, 9), (1.0, 2.0), border)
        torch.testing.assert_close(
            torch_ops.gaussian_blur2d(images, (5, 9), (1.0, 2.0), border), expected, rtol=0, atol=2e-6
        )
