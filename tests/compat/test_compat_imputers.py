"""`patch(SomeClass)`, options of the import swaps, DataLoader workers, torch's blurs and captum's perturbation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
from helpers import peer_cases as cases

torch = pytest.importorskip("torch")

from helpers import vendored_imputer as vendored  # noqa: E402 - needs torch

from roarfast import compat  # noqa: E402
from roarfast._torchvision import import_torchvision  # noqa: E402
from roarfast.compat import _impute, grad_cam, ndimage, quantus, road, roar, torch_ops  # noqa: E402
from roarfast.compat.captum import RandomRemoval  # noqa: E402

NAME = "helpers.vendored_imputer.NoisyLinearImputer"


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()


@pytest.fixture
def image():
    return torch.from_numpy(np.random.default_rng(0).random((3, 12, 14)).astype(np.float32))


@pytest.fixture
def mask():
    return torch.from_numpy((np.random.default_rng(1).random((12, 14)) < 0.5).astype(np.float32))


def both(cls, image, mask, **kwargs):
    results = []
    for patched in (False, True):
        imputer = cls(**kwargs)
        torch.manual_seed(3)
        if patched:
            with compat.patch(cls):
                results.append((imputer(image, mask), torch.random.get_rng_state()))
        else:
            results.append((imputer(image, mask), torch.random.get_rng_state()))
    return results


def test_a_vendored_class(image, mask):
    before = vars(vendored.NoisyLinearImputer)["__call__"]
    (theirs, state), (ours, our_state) = both(vendored.NoisyLinearImputer, image, mask)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert torch.equal(state, our_state)
    assert vars(vendored.NoisyLinearImputer)["__call__"] is before
    assert compat.status()[NAME].fast == {"NoisyLinearImputer": 1}
    assert "__call__" not in vars(vendored.Honest)


@pytest.mark.parametrize("cls", [vendored.Shifted, vendored.Broken])
def test_a_class_that_gives_other_numbers_keeps_its_own(image, mask, cls):
    one = image[:1]
    (theirs, _), (ours, _) = both(cls, one, mask)
    assert torch.equal(ours, theirs)
    ((_, passed),) = compat.status()[f"helpers.vendored_imputer.{cls.__name__}"].passed_on.items()
    assert passed == 1


def test_a_copy_that_honours_its_weighting(image, mask):
    uneven = [((0, 1), 0.4), ((0, -1), 0.4), ((1, 0), 0.1), ((-1, 0), 0.1)]
    (theirs, _), (ours, _) = both(vendored.Honest, image, mask, weighting=uneven)
    assert torch.equal(ours, theirs)  # passed on: the trial showed that it is not road_evaluation's
    assert not compat.status()["helpers.vendored_imputer.Honest"].fast
    torch.manual_seed(3)
    fixed = road.NoisyLinearImputer(0.01, uneven, mode="fixed")(image, mask)
    torch.testing.assert_close(fixed, theirs, rtol=0, atol=1e-5)
    torch.manual_seed(3)
    with pytest.warns(compat.CompatWarning, match="weighting is ignored"):
        faithful = road.NoisyLinearImputer(0.01, uneven)(image, mask)
    torch.manual_seed(3)
    torch.testing.assert_close(faithful, vendored.NoisyLinearImputer()(image, mask), rtol=0, atol=1e-5)


def test_bad_weightings(image, mask):
    with pytest.raises(ValueError, match=r"eight neighbours, got the offset \(0, 2\)"):
        road.NoisyLinearImputer(weighting=[((0, 2), 1.0)], mode="fixed")(image, mask)
    with pytest.raises(ValueError, match="point-symmetric"):
        road.NoisyLinearImputer(weighting=[((0, 1), 1.0)], mode="fixed")(image, mask)


REASONS = [
    (lambda x, m: (x, m * 0.3 + 0.1), "a mask with values between 0 and 1"),
    (lambda x, m: (x * float("nan"), m), "NaN or infinity in a known pixel"),
    (lambda x, m: (x.long(), m), "an image of dtype torch.int64"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("change", "reason"), REASONS, ids=[r for _, r in REASONS])
def test_each_reason_to_pass_on(image, mask, change, reason):
    with compat.patch(vendored.NoisyLinearImputer):
        try:
            vendored.NoisyLinearImputer()(*change(image, mask))
        except Exception as error:  # the original's own
            assert not isinstance(error, compat._status.Outside)
    assert compat.status()[NAME].passed_on == {("NoisyLinearImputer", reason): 1}


def test_not_a_copy():
    with (
        pytest.raises(TypeError, match=r"builtins\.dict is no copy of road_evaluation's NoisyLinearImputer"),
        compat.patch(dict),
    ):
        pass


def test_philox_noise_leaves_the_peers_generators_alone(image, mask):
    state = cases.state_digest()
    first = road.NoisyLinearImputer(0.1, noise_source="philox")(image, mask)
    second = road.NoisyLinearImputer(0.1, noise_source="philox")(image, mask)
    assert cases.state_digest() == state
    assert not torch.equal(first, second)  # two images, two samples of noise
    removed = (mask == 0).expand_as(image)
    clean = road.NoisyLinearImputer(0)(image, mask)
    assert 0.07 < float((first - clean)[removed].std()) < 0.13
    assert torch.equal(first[~removed], image[~removed])


def test_dtypes_that_the_originals_refuse(image, mask):
    for dtype in (torch.float64, torch.float16, torch.uint8):
        x = (image * 255).to(dtype) if dtype == torch.uint8 else image.to(dtype)
        result = grad_cam.NoisyLinearImputer(0.0)(x, mask)
        assert result.dtype == dtype
    grad = image.clone().requires_grad_()
    assert not grad_cam.NoisyLinearImputer()(grad, mask).requires_grad


def test_quantus_refuses_by_name(image):
    with pytest.raises(ValueError, match=r"indices 1-D integers of its pixels, got indices out of range"):
        quantus.noisy_linear_imputation(image.numpy(), np.array([500]))
    with pytest.raises(ValueError, match="got an image of integers"):
        quantus.noisy_linear_imputation(image.numpy().astype(np.uint8), np.array([5]))
    with pytest.raises(ValueError, match="got indices that are no 1-D array"):
        quantus.noisy_linear_imputation(image.numpy(), [5])


def test_quantus_duplicate_indices(image):
    x, indices = image.numpy(), np.array([5, 9, 5, 30, 9])
    np.random.seed(0)  # noqa: NPY002
    got = quantus.noisy_linear_imputation(x, indices, 0.1)
    np.random.seed(0)  # noqa: NPY002
    drawn = np.random.randn(3, 5)  # noqa: NPY002
    clean = quantus.noisy_linear_imputation(x, indices, 0).reshape(3, -1)
    np.testing.assert_allclose(
        got.reshape(3, -1)[:, [30, 5, 9]], (clean[:, [30, 5, 9]] + 0.1 * drawn[:, [3, 2, 4]]), atol=1e-6
    )


def test_attributions_are_checked_without_a_set():
    rng = np.random.default_rng(0)
    x = np.zeros((4, 3, 20, 20), np.float32)
    fine = rng.random((4, 1, 20, 20)).astype(np.float32)
    assert quantus.attributions_are_fine(x, fine)
    late = np.zeros((4, 1, 200, 20), np.float32)
    late[3, 0, -1, -1] = 1
    assert quantus.attributions_are_fine(np.zeros((4, 3, 200, 20), np.float32), late)
    for bad in (fine * 0, fine * 0 + 1, -fine - 1, fine * np.nan, fine.astype(int), fine[:3], fine[:, 0], list(fine)):
        assert not quantus.attributions_are_fine(x, bad)


class Items:
    """A data set that a spawned process can import."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.from_numpy(np.random.default_rng(i).random((3, 8, 9)).astype(np.float32)), i


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_imputed_dataset_in_workers(method):
    maps = np.random.default_rng(9).random((6, 8, 9, 1))
    results = []
    for workers in (0, 2):
        np.random.seed(1)  # noqa: NPY002
        data = road.ImputedDataset(Items(), maps, 0.4, imputation=road.NoisyLinearImputer(0.0))
        loader = torch.utils.data.DataLoader(
            data,
            2,
            num_workers=workers,
            worker_init_fn=compat.worker_init_fn(),
            multiprocessing_context=method if workers else None,
        )
        results.append(torch.cat([images for images, _, _ in loader]))
    assert torch.equal(*results)


def test_philox_noise_does_not_depend_on_workers():
    maps = np.random.default_rng(9).random((6, 8, 9, 1))
    results = []
    for workers in (0, 2):
        np.random.seed(1)  # noqa: NPY002
        imputer = road.NoisyLinearImputer(0.1, noise_source="philox")
        data = road.ImputedDataset(Items(), maps, 0.4, imputation=imputer)
        context = "fork" if workers else None
        loader = torch.utils.data.DataLoader(data, 2, num_workers=workers, multiprocessing_context=context)
        results.append(torch.cat([images for images, _, _ in loader]))
    assert torch.equal(*results)


class Ids:
    """The ids that the Philox noise of an imputer without `sample` would get."""

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.tensor(_impute.sample_ids(3))


def test_no_two_workers_share_their_philox_noise():
    loader = torch.utils.data.DataLoader(Ids(), 1, num_workers=2, multiprocessing_context="fork")
    ids = [*torch.cat([batch for _ in range(2) for batch in loader]).flatten().tolist(), *_impute.sample_ids(3)]
    assert len(set(ids)) == len(ids) == 51
    assert min(ids) >= 0


class Patched:
    """Whether SciPy and a vendored class are patched where the items are made."""

    def __len__(self):
        return 2

    def __getitem__(self, i):
        kept = torch.ones(8, 9)
        kept[2:4] = 0
        vendored.NoisyLinearImputer(0.0)(Items()[i][0], kept)
        fast = compat.status().get(NAME)
        return scipy.ndimage.sobel is ndimage.sobel, bool(fast and fast.fast)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_patches_in_workers(method):
    theirs = scipy.ndimage.sobel
    for init, expected in ((True, True), (False, method == "fork")):
        with compat.patch("scipy", vendored.NoisyLinearImputer):
            loader = torch.utils.data.DataLoader(
                Patched(),
                num_workers=1,
                worker_init_fn=compat.worker_init_fn() if init else None,
                multiprocessing_context=method,
            )
            found = torch.stack([torch.cat(flags) for flags in loader])
        assert (found == expected).all()
    assert scipy.ndimage.sobel is theirs


def test_run_road_fixed_is_the_true_class():
    model = cases.small_model(3)
    data = [(Items()[i][0], 2) for i in range(6)]
    maps = np.random.default_rng(9).random((6, 8, 9, 1))
    accuracy, probability = road.run_road(
        model, data, maps, None, [0.0, 0.5], imputation="zero", num_workers=0, mode="fixed"
    )
    images = torch.stack([x for x, _ in data])
    with torch.no_grad():
        expected = torch.softmax(model(images), 1)[:, 2].mean()
    torch.testing.assert_close(probability[0], expected)
    assert accuracy.shape == (2,)
    with pytest.raises(ValueError, match="imputation must be one of 'linear', 'fixed' or 'zero', got 'gain'"):
        road.run_road(model, data, maps, None, [0.5], imputation="gain", num_workers=0)


def test_grad_cam_fixed():
    pytest.importorskip("cv2")
    image, cam = torch.rand(1, 1, 16, 16), np.random.default_rng(0).random((1, 16, 16)).astype(np.float32)
    for cls, low in ((grad_cam.ROADMostRelevantFirst, False), (grad_cam.ROADLeastRelevantFirst, True)):
        _, changed = cls("auto", mode="fixed", noise=0.5)(image, cam, [lambda o: o[0]], torch.nn.Flatten(), True)
        gone = (changed != image)[0, 0].numpy()
        assert (cam[0][gone].mean() < 0.5) == low
    spaced = np.exp(-30 * cam)  # 1 - m is 1 for most of these in float32
    _, changed = grad_cam.ROADLeastRelevantFirst(80, mode="fixed", noise=0.5)(
        image, spaced, [lambda o: o[0]], torch.nn.Flatten(), True
    )
    gone = (changed != image)[0, 0].numpy()
    assert gone.sum() in range(50, 53)  # 20 % of 256
    assert spaced[0][gone].max() <= spaced[0][~gone].min()


def test_averages_of_a_model_in_training_mode_or_of_other_perturbations():
    class Twice:
        def __call__(self, image, cam):
            return image * 2

    metric = grad_cam.PerturbationConfidenceMetric(Twice())
    images = torch.rand(2, 1, 4, 4)
    got = metric(images, np.zeros((2, 4, 4), np.float32), [lambda o: o[0]] * 2, torch.nn.Flatten())
    np.testing.assert_allclose(got, images[:, 0, 0, 0])


@pytest.mark.parametrize("name", ["ROADMostRelevantFirst", "ROADCombined"])
def test_grad_cam_maps(name):
    images, cams = torch.rand(2, 1, 6, 7), np.random.default_rng(0).random((2, 6, 7)).astype(np.float32)
    arguments = [lambda o: o[0]] * 2, torch.nn.Flatten()
    metric = getattr(grad_cam, name)(noise=0.0)
    np.testing.assert_array_equal(metric(images, list(cams), *arguments), metric(images, cams, *arguments))
    bad = [
        (images, cams * np.float32("nan"), "NaN or infinity in a map"),
        (images, cams[:, 1:], "maps of another size than the images"),
        (images * float("nan"), cams, "NaN or infinity in a known pixel"),
    ]
    for x, a, reason in bad:
        with pytest.raises(ValueError, match=rf"^input_tensor must be finite .* and cams finite .*, got {reason}"):
            metric(x, a, *arguments)


def test_roar_refuses_by_name():
    with pytest.raises(ValueError, match="an image of dtype uint8"):
        roar.linear_imputation(np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4)))
    with pytest.raises(ValueError, match="kind must be one of 'none', 'maximum' or 'gaussian', got 'median'"):
        roar.removal_mask(np.zeros((3, 4, 4)), 10, "median")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("size", "sigma"), [(9, None), (5, 1.3), ([3, 11], [0.7, 2.0]), (1, None)], ids=str)
def test_torchvisions_blur(dtype, size, sigma):
    images = torch.rand(2, 3, 20, 24, dtype=dtype)
    expected = import_torchvision("transforms.functional").gaussian_blur(images, size, sigma)
    torch.testing.assert_close(torch_ops.gaussian_blur(images, size, sigma), expected, rtol=0, atol=2e-6)
    assert compat.status()["torchvision"].fast == {"gaussian_blur": 1}


@pytest.mark.parametrize(
    ("images", "size", "reason"),
    [
        (torch.rand(1, 9, 9, requires_grad=True), 3, "a gradient is wanted"),
        (torch.zeros(1, 9, 9, dtype=torch.uint8), 3, "an input of dtype torch.uint8"),
    ],
)
def test_torchvisions_blur_is_asked(images, size, reason):
    result = torch_ops.gaussian_blur(images, size)
    assert result.requires_grad == images.requires_grad
    assert compat.status()["torchvision"].passed_on == {("gaussian_blur", reason): 1}


FLAT = torch.rand(1, 1, 9, 9)
ONE = (1.0, 1.0)
TORCH_OPS = [
    ("gaussian_blur", (FLAT.numpy(), 3), {}, "an input of type ndarray"),
    ("gaussian_blur", (FLAT[0, 0, 0], 3), {}, "an input with too few dimensions, or without values"),
    ("gaussian_blur", (FLAT, 4), {}, "an even kernel_size"),
    ("gaussian_blur", (FLAT, 3, -1.0), {}, "a sigma that is not positive"),
    ("gaussian_blur", (FLAT, [3, 3, 3]), {}, "kernel_size of another length than 2"),
    ("gaussian_blur", (FLAT, 3.0), {}, "kernel_size of another type"),
    ("gaussian_blur", (FLAT, 31), {}, "a kernel larger than torch can reflect"),
    ("gaussian_blur2d", (FLAT[None], 3, ONE), {}, "an input that is not [B, C, H, W]"),
    ("gaussian_blur2d", (FLAT, 3, ONE, "mirror"), {}, "an unknown border_type"),
    ("gaussian_blur2d", (FLAT, 21, ONE, "circular"), {}, "a kernel larger than torch can wrap"),
    ("quantile", (FLAT, 0.5), {"interpolation": "nearest"}, "another interpolation, or out="),
    ("quantile", (FLAT, 0.5), {"out": torch.zeros(())}, "another interpolation, or out="),
    ("quantile", (FLAT, torch.rand(2, 2)), {}, "q with more than one dimension"),
    ("quantile", (FLAT, 1.5), {}, "q outside [0, 1]"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "reason"), TORCH_OPS, ids=[f"{x[0]}-{x[3]}" for x in TORCH_OPS])
def test_what_torchs_own_are_asked(monkeypatch, name, args, kwargs, reason):
    asked = []

    def theirs(*given, **options):
        asked.append((given[: len(args)], options))
        return "theirs"

    peer, module, attribute = {
        "gaussian_blur": ("torchvision", torch_ops, "_torchvision_blur"),
        "gaussian_blur2d": ("kornia", torch_ops, "_kornia_blur"),
        "quantile": ("torch", torch, "quantile"),
    }[name]
    monkeypatch.setattr(module, attribute, theirs)
    assert getattr(torch_ops, name)(*args, **kwargs) == "theirs"
    assert all(a is b for a, b in zip(asked[0][0], args))
    assert kwargs.items() <= asked[0][1].items()
    assert compat.status()[peer].passed_on == {(name, reason): 1}


@pytest.mark.parametrize("border", ["reflect", "replicate", "circular", "constant"])
def test_kornias_blur_is_scipys(border):
    images = torch.rand(2, 1, 12, 15, dtype=torch.float64)
    mode = {"reflect": "mirror", "replicate": "nearest", "circular": "wrap", "constant": "constant"}[border]
    got = torch_ops.gaussian_blur2d(images, (5, 7), (1.0, 1.5), border)
    expected = scipy.ndimage.gaussian_filter(images.numpy(), (1, 1.5), mode=mode, radius=(2, 3), axes=(2, 3))
    np.testing.assert_allclose(got, expected, atol=1e-12)


@pytest.mark.parametrize("dim", [None, 0, -1])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("q", [0.3, torch.tensor([0.0, 0.25, 0.9, 1.0])], ids=["one", "four"])
def test_quantile(q, dim, keepdim):
    a = torch.randn(7, 5, 33)
    q = q.to(a.dtype) if isinstance(q, torch.Tensor) else q
    got = torch_ops.quantile(a, q, dim, keepdim)
    expected = torch.quantile(a, q, dim, keepdim)
    assert got.shape == expected.shape
    torch.testing.assert_close(got, expected, rtol=0, atol=2e-6)
    a[0, 0, 0] = float("nan")
    torch.testing.assert_close(
        torch_ops.quantile(a, q, dim, keepdim), torch.quantile(a, q, dim, keepdim), equal_nan=True, rtol=0, atol=2e-6
    )
    assert compat.status()["torch"].passed_on == {("quantile", "NaN"): 1}


@pytest.mark.parametrize("shape", ["pixel", "block"])
def test_captums_infidelity(shape):
    metrics = pytest.importorskip("captum.metrics")
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 1, bias=False)).eval()
    images = torch.rand(4, 3, 8, 8)
    exact = model[1].weight.reshape(1, 3, 8, 8).expand(4, -1, -1, -1)
    perturb = RandomRemoval(0.3, shape)
    score = metrics.infidelity(model, perturb, images, exact, n_perturb_samples=5)
    assert float(score.max()) < 1e-10  # the gradient of a linear model predicts every change
    assert float(metrics.infidelity(model, perturb, images, -exact, n_perturb_samples=5).min()) > 1e-6
    twice = [RandomRemoval(0.3, shape, seed=5)(images)[1] for _ in range(2)]
    assert torch.equal(*twice)


def test_captums_perturbation_has_bounds():
    with pytest.raises(ValueError, match=r"drop must be in \[0, 1\], got 30"):
        RandomRemoval(30)
    with pytest.raises(ValueError, match="shape must be one of 'pixel' or 'block', got 'disc'"):
        RandomRemoval(0.3, "disc")
