"""Levels A to E on golden files: what peers returned, against ours. No peer is needed.

The files `quantus-*` and `grad-cam-*` are made by `tests/helpers/make_golden.py`. Those of road_evaluation (commit e6b9987),
soco (6da1d96) and roar (8073944) hold what these calls returned on the cases of `helpers.peer_cases` with seed 11:
`NoisyLinearImputer(noise)(image, kept)`, `ImputedDataset(...)[i]` and `run_road(...)`; `ROAD(mask_ratio=0.4)(images, maps)`;
`LinearImputation(noise).transform(...)` and `RemOve(..., ratio, filter).transform(...)`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import peer_cases as cases

from roarfast import compat
from roarfast.compat import _grad_cam_scores as scores
from roarfast.compat import _impute, _road_masks, _status, grad_cam, quantus, road, roar
from roarfast.compat._options import Options

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).parent / "golden"
SEED = 11


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()


def load(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        return dict(file)


def image_cases(golden):
    """(case, first and last pixel) of the cases in a file, rebuilt from the file alone."""
    images, removed = golden["images"], np.unpackbits(golden["removed"]).astype(bool)
    at = gone_at = 0
    for name, shape in json.loads(str(golden["names"])):
        c, h, w = shape
        image = images[at : at + c * h * w].reshape(shape).astype(np.float64)
        gone = removed[gone_at : gone_at + h * w].reshape(h, w)
        at, gone_at = at + c * h * w, gone_at + h * w
        low, high = cases.RANGES[name.split("-")[-1]]
        yield cases.Case(name, image, gone, high - low)


def check_images(golden, call, runs, extra_ulp=0):
    """Levels A and B (images, generators) and E (errors and NaN of the peer that we answer)."""
    errors, states = json.loads(str(golden["errors"])), json.loads(str(golden["states"]))
    for dtype, noise in runs:
        expected, at, compared = golden[f"{dtype}/{noise}"], 0, 0
        tol = 1e-8 if dtype == "float64" else 1e-5
        for case in image_cases(golden):
            key = f"{case.name}/{dtype}/{noise}"
            image = case.image.astype(dtype)
            cases.seed_everything(SEED)
            got = call(image, case.removed, noise)
            assert got.dtype == image.dtype, key
            np.testing.assert_array_equal(got[:, ~case.removed], image[:, ~case.removed], err_msg=key)
            imputed = got[:, case.removed]
            assert np.isfinite(imputed).all(), key
            if key in errors:  # the peer raises on valid input: there is no number to compare with
                assert errors[key] in ("RuntimeError", "IndexError", "ValueError"), errors[key]
                continue
            theirs = expected[at : at + imputed.size].reshape(imputed.shape)
            at += imputed.size
            if case.removed.all():  # zeros, or NaN by accident of the sparse solver: zeros here, always
                assert np.abs(imputed).max() <= 6 * noise
                assert np.isnan(theirs).any() or np.abs(theirs).max() <= 6 * noise
            else:
                limit = cases.bound(case, dtype, tol)
                np.testing.assert_allclose(imputed.astype(float), theirs.astype(float), rtol=0, atol=limit, err_msg=key)
                compared += 1
            assert cases.state_digest() == states[key], key
        assert at == expected.size
        assert compared > 30 or len(errors) > 30


def test_quantus_images_and_generator():
    def call(image, removed, noise):
        return quantus.noisy_linear_imputation(image, np.flatnonzero(removed)[::-1].copy(), noise)

    check_images(
        load("quantus-0.6.0"), call, [("float32", 0.0), ("float32", 0.01), ("float64", 0.01), ("float16", 0.01)]
    )


def torch_call(cls):
    def call(image, removed, noise):
        kept = torch.from_numpy((~removed).astype(np.float32))
        return cls(noise)(torch.from_numpy(image), kept).numpy()

    return call


def test_grad_cam_images_and_generator():
    runs = [("float32", 0.0), ("float32", 0.01), ("float64", 0.01)]
    check_images(load("grad-cam-1.5.7"), torch_call(grad_cam.NoisyLinearImputer), runs)


def test_road_images_and_generator():
    check_images(load("road_evaluation"), torch_call(road.NoisyLinearImputer), [("float32", 0.0), ("float32", 0.01)])


def test_roar_images_and_generator():
    def call(image, removed, noise):
        return roar.linear_imputation(image.transpose(1, 2, 0), removed[..., None], noise).transpose(2, 0, 1)

    check_images(load("roar"), call, [("float32", 0.0), ("float32", 0.01), ("float64", 0.01)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_soco_images_masks_and_generator(dtype):
    golden = load("soco")
    images = torch.from_numpy(golden["images"]).to(getattr(torch, dtype))
    for area in (True, False):
        for mode in ("morf", "lerf"):
            key = f"{dtype}/{area}/{mode}"
            bits = np.unpackbits(golden[f"{key}/mask"])[: images[:, 0].numel()]
            removed = torch.from_numpy(bits.reshape(len(images), *images.shape[2:]).astype(bool))
            cases.seed_everything(SEED)
            if area:  # the masks of soco take a permutation per map
                for _ in images:
                    torch.randperm(images[0, 0].numel())
            got = _impute.impute_torch(images, removed, 0.01, Options(), noise_dtype=images.dtype)
            assert cases.state_digest() == str(golden[f"{key}/state"])
            if golden[key].size:
                tol = (1e-8 if dtype == "float64" else 1e-5) + 3 * torch.finfo(images.dtype).eps
                np.testing.assert_allclose(got.double(), golden[key].astype(float), rtol=0, atol=tol)


@pytest.mark.filterwarnings("ignore::roarfast.compat.CompatWarning")
def test_grad_cam_masks_ties_included():
    golden, cams = load("grad-cam-1.5.7"), cases.maps(6, 16, 18)
    for kind, least in (("RemoveMostRelevantFirst", False), ("RemoveLeastRelevantFirst", True)):
        for percentile in (0, 10, 37.5, 80, 100, "auto"):
            if percentile == "auto":
                pytest.importorskip("cv2")
            for cam, expected in zip(cams, golden[f"masks/{kind}/{percentile}"]):
                kept = scores.kept_pixels(torch.from_numpy(cam), percentile, least, Options())
                np.testing.assert_array_equal(kept.numpy() == 0, expected)


def test_road_masks():
    golden = load("road_evaluation")
    explanations = np.stack([cases.maps(6, 16, 18)] * 3, -1) * np.array([1, 0.5, 0.25], np.float32)
    image = torch.zeros(3, 16, 18)
    for dtype in ("float32", "float64"):
        for remove in (True, False):
            for share in (0.0, 0.1, 0.5, 0.9, 1.0):
                cases.seed_everything(SEED)
                data = road.ImputedDataset(
                    [(image, 0)] * 6, explanations.astype(dtype), share, remove, lambda img, mask: mask
                )
                got = np.stack([data[i][0].numpy() == 0 for i in range(6)])
                key = f"masks/{dtype}/{remove}/{share}"
                np.testing.assert_array_equal(np.packbits(got), golden[key], err_msg=key)
                assert cases.state_digest() == str(golden[f"{key}/state"])


def test_road_lerf_share_is_named():
    data = road.ImputedDataset(
        [(torch.zeros(1, 4, 5), 0)], np.arange(20.0).reshape(1, 4, 5, 1), 0.1, False, lambda i, m: m, lerf="share"
    )
    np.testing.assert_array_equal(np.flatnonzero(data[0][0].numpy() == 0), [0, 1])


def test_roar_masks():
    golden = load("roar")
    for kind in ("none", "maximum", "gaussian"):
        for ratio in (0, 10, 50, 90, 100):
            got = np.stack([roar.removal_mask(a, ratio, kind) for a in golden["maps"]])
            np.testing.assert_array_equal(np.packbits(got), golden[f"masks/{kind}/{ratio}"], err_msg=f"{kind} {ratio}")


def test_road_other_imputers_and_their_input():
    golden = load("road_evaluation")
    images = torch.from_numpy(np.random.default_rng(3).random((6, 3, 16, 18)).astype(np.float32))
    mask = torch.from_numpy(cases.maps(6, 16, 18)[0] > 0.4).to(torch.uint8)
    before = images.clone()
    for name, imputer in (("mean", road.ChannelMeanImputer()), ("zero", road.ZeroImputer())):
        np.testing.assert_array_equal(imputer(images[0], mask).numpy(), golden[f"{name}/single"])
        batch = imputer.batched_call(images[:2], torch.stack([mask, mask]).float())
        np.testing.assert_allclose(batch.numpy(), golden[f"{name}/batch"], rtol=1e-6)
    assert torch.equal(images, before)  # the original overwrites it


METRICS = [
    "ROADMostRelevantFirst",
    "ROADLeastRelevantFirst",
    "ROADMostRelevantFirstAverage",
    "ROADLeastRelevantFirstAverage",
    "ROADCombined",
]


@pytest.mark.parametrize("name", METRICS)
def test_grad_cam_scores(name):
    golden = load("grad-cam-1.5.7")
    images = torch.from_numpy(np.random.default_rng(3).random((6, 3, 16, 18)).astype(np.float32))
    model = cases.small_model(3)
    cases.seed_everything(SEED)
    got = getattr(grad_cam, name)()(images, cases.maps(6, 16, 18), [lambda out: torch.softmax(out, -1)[1]] * 6, model)
    expected = golden[f"scores/{name}"]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert got.dtype == expected.dtype
    assert cases.state_digest() == str(golden[f"scores/{name}/state"])
    passes = {"ROADCombined": (36, 19), "ROADMostRelevantFirst": (2, 2), "ROADLeastRelevantFirst": (2, 2)}
    assert (int(golden[f"scores/{name}/calls"]), model.calls) == passes.get(name, (18, 10))


@pytest.mark.parametrize("morf", [True, False])
def test_run_road_scores(morf):
    golden = load("road_evaluation")
    images = torch.from_numpy(np.random.default_rng(3).random((6, 3, 16, 18)).astype(np.float32))
    model = cases.small_model(3)
    with torch.no_grad():
        labels = model(images).argmax(1)
    data = [(images[i % 6], int(labels[i % 6]) if i % 3 else 0) for i in range(18)]
    maps = np.stack([cases.maps(6, 16, 18)] * 3, -1) * np.array([1, 0.5, 0.25], np.float32)
    explanations = np.concatenate([maps.astype(np.float64)] * 3)
    cases.seed_everything(SEED)
    with pytest.warns(compat.CompatWarning, match="probability is that of class 0"):
        got = road.run_road(model, data, explanations, None, [0.3, 0.8], morf, 4)  # 8 workers, as in the original
    np.testing.assert_allclose(torch.stack(got).numpy(), golden[f"run_road/{morf}"], rtol=0, atol=1e-5)


def test_golden_files_say_what_made_them():
    for path in FOLDER.glob("*.npz"):
        versions = json.loads(str(load(path.stem)["versions"]))
        assert {"numpy", "scipy", "torch"} < set(versions)


def test_tied_maps_are_ranked_by_the_same_sort():
    tied = np.round(np.random.default_rng(0).random((30, 40, 1)), 1).astype(np.float32)
    image = torch.zeros(1, 30, 40)
    zero = np.zeros((30, 40))
    for share in (0.1, 0.55):
        got = _road_masks.kept(tied, zero, share, True, False, image)
        summed = tied.sum(-1)
        values = (summed - summed.min()) / (summed.max() - summed.min() + 1e-5)
        order = torch.argsort(torch.tensor(values.reshape(-1, 1)), axis=0, descending=True)
        expected = torch.ones(1200, dtype=torch.uint8)
        expected[order[: int(1200 * share)]] = 0
        assert torch.equal(got.flatten(), expected)


def test_non_finite_known_pixels_are_refused():
    image = torch.ones(1, 4, 4)
    image[0, 0, 0] = float("nan")
    mask = torch.ones(4, 4)
    mask[2, 2] = 0
    with pytest.raises(ValueError, match="NaN or infinity in a known pixel"):
        road.NoisyLinearImputer()(image, mask)
    mask[0, 0] = 0  # under the mask it does not matter
    assert torch.isfinite(road.NoisyLinearImputer()(image, mask)).all()
    with pytest.raises(_status.Outside):
        _impute.removed_of(mask * 0.3)
