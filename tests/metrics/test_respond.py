"""The response engine: closed forms, batches, layouts, files that survive a kill, and errors that say what is wrong."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import roarfast as rf  # noqa: E402
from roarfast.metrics import Perturbation, Responses, ResponsesCorrupt, respond  # noqa: E402
from roarfast.metrics.response_file import ResponsesMismatch  # noqa: E402
from roarfast.train import build_model  # noqa: E402

DROPS = (0.1, 0.35, 0.5, 0.9)
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def problem(n: int = 11, size: int = 8, seed: int = 0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, size, size, 3), dtype=np.uint8)
    maps = rng.random((n, size, size)).astype(np.float32)
    return images, maps, rng.integers(0, 4, n)


def linear(size: int = 8, classes: int = 4) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * size * size, classes))


def expected_logits(net, images, maps, drops, fill, order="morf", keep=False) -> np.ndarray:
    """Σ_kept w x + Σ_removed w fill + b, in float64, per rate: `[R, N, classes]`."""
    weight, bias = (p.detach().double().numpy() for p in net[1].parameters())
    out = []
    for drop in drops:
        mask = rf.removal_mask(maps, drop, order=order, keep=keep)[..., None]
        x = np.where(mask, np.asarray(fill, np.float64), images) / 255
        x = (x - MEAN) / STD
        out.append(x.transpose(0, 3, 1, 2).reshape(len(images), -1) @ weight.T + bias)
    return np.stack(out)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("order", ["morf", "lerf"])
@pytest.mark.parametrize("fill", ["zero", "dataset_mean", (10.0, 20.0, 200.0), 128.0])
def test_linear_model_in_closed_form(fill, order, keep) -> None:
    images, maps, labels = problem()
    net = linear()
    level = {"zero": 0.0, "dataset_mean": 255 * np.array(MEAN)}.get(fill, fill) if isinstance(fill, str) else fill
    logits = expected_logits(net, images, maps, DROPS, level, order, keep)
    how = Perturbation(order=order, keep=keep, fill=fill)
    got = respond(net, images, maps, DROPS, labels=labels, perturbation=how, mean=MEAN, std=STD)
    rows = np.arange(len(labels))
    np.testing.assert_allclose(got.logit, logits[:, rows, labels], atol=1e-4)
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(got.probability, (shifted / shifted.sum(-1, keepdims=True))[:, rows, labels], atol=1e-4)
    others = logits.copy()
    others[:, rows, labels] = -np.inf
    np.testing.assert_allclose(got.margin, logits[:, rows, labels] - others.max(-1), atol=1e-4)
    np.testing.assert_array_equal(got.prediction, logits.argmax(-1))
    np.testing.assert_array_equal(got.correct, logits.argmax(-1) == labels)
    whole = expected_logits(net, images, maps, (0.0,), level)[0][rows, labels]
    empty = expected_logits(net, images, maps, (1.0,), level)[0][rows, labels]
    np.testing.assert_allclose(got.whole.logit, whole, atol=1e-4)
    np.testing.assert_allclose(got.empty.logit, empty, atol=1e-4)
    counts = np.floor(np.array(DROPS) * 64 + 1e-9)[:, None] / 64
    np.testing.assert_allclose(got.removed, np.broadcast_to(1 - counts if keep else counts, got.removed.shape))


@pytest.mark.parametrize("fill", ["linear", "image_mean", "kept_mean", "blur", "noise"])
def test_fills_are_those_of_the_ops(fill) -> None:
    """Each row is what the op makes of that image at that rate; the model only reads the pixels back."""
    images, maps, labels = problem(5)
    net = nn.Flatten()
    seen = []

    def spy(x):
        seen.append(x.permute(0, 2, 3, 1).numpy().copy())
        return net(x)[:, :4]

    respond(spy, images, maps, DROPS, labels=labels, perturbation=Perturbation(fill=fill), seed=3, batch_size=7)
    got = np.concatenate(seen).reshape(5, len(DROPS) + 2, 8, 8, 3) * 255
    for j, drop in enumerate(DROPS):
        mask = rf.removal_mask(maps, drop, seed=3)
        if fill == "linear":
            expected = rf.impute_linear(images, mask, 2.55, 3, layout="NHWC")
            expected = np.clip(np.rint(expected), 0, 255)
        elif fill == "noise":
            level = images.mean((0, 1, 2)).mean()
            expected = rf.fill(images, mask, "noise", layout="NHWC", noise_mean=level, noise_std=images.std(), seed=3)
        else:
            expected = rf.fill(images, mask, fill, layout="NHWC", sigma=10.0)
        np.testing.assert_allclose(got[:, j + 1], expected, atol=1e-3)
    np.testing.assert_allclose(got[:, 0], images, atol=1e-3)


def test_batch_size_and_order_of_samples_do_not_matter() -> None:
    images, maps, labels = problem(9)
    net = linear()
    options = {"labels": labels, "mean": MEAN, "std": STD}
    whole = respond(net, images, maps, DROPS, **options)
    for size in (1, 7, 256):
        part = respond(net, images, maps, DROPS, batch_size=size, **options)
        np.testing.assert_array_equal(part.prediction, whole.prediction)
        np.testing.assert_allclose(part.logit, whole.logit, atol=1e-5)
    order = np.random.default_rng(1).permutation(9)
    mixed = respond(net, images[order], maps[order], DROPS, labels=labels[order], index=order, mean=MEAN, std=STD)
    np.testing.assert_allclose(mixed.logit, whole.logit[:, order], atol=1e-5)
    np.testing.assert_array_equal(mixed.removed, whole.removed[:, order])


def test_convnet_agrees_across_batch_sizes() -> None:
    images, maps, labels = problem(6, 16)
    net = build_model("convnet", 4, seed=0)
    many, few = (respond(net, images, maps, DROPS, labels=labels, batch_size=b) for b in (64, 5))
    np.testing.assert_allclose(many.logit, few.logit, atol=1e-5)


def test_every_kind_of_image_gives_the_same_responses() -> None:
    images, maps, labels = problem()
    net = linear()
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    unit = torch.from_numpy(planes).float() / 255
    column = (-1, 1, 1)
    normal = (unit - torch.tensor(MEAN).reshape(column)) / torch.tensor(STD).reshape(column)
    kinds = (
        images,
        planes,
        torch.from_numpy(images),
        unit,
        unit.numpy(),
        unit.permute(0, 2, 3, 1),
        normal,
        normal.double().numpy(),
        images[::-1][::-1],
    )
    first = respond(net, images, maps, DROPS, labels=labels, mean=MEAN, std=STD)
    for kind in kinds:
        got = respond(net, kind, maps, DROPS, labels=torch.from_numpy(labels), mean=MEAN, std=STD)
        np.testing.assert_array_equal(got.logit, first.logit)


def test_floats_that_are_no_8_bit_images() -> None:
    images, maps, labels = problem()
    net = linear()
    x = images.astype(np.float32) / 255
    x[0, 0, 0, 0] = 0.5001  # off the grid: the float path
    exact = respond(net, images, maps, DROPS, labels=labels, mean=MEAN, std=STD)
    for how in (Perturbation(fill="linear"), Perturbation(fill="zero"), Perturbation(fill="image_mean")):
        a = respond(net, images, maps, DROPS, labels=labels, perturbation=how, mean=MEAN, std=STD)
        b = respond(net, x, maps, DROPS, labels=labels, perturbation=how, mean=MEAN, std=STD)
        np.testing.assert_allclose(a.logit[:, 1:], b.logit[:, 1:], atol=0.02)  # bytes are rounded, floats are not
    assert exact.logit.shape == (4, 11)


def test_features_and_series() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 6)) * [1, 10, 100, 1, 1, 1]
    net = nn.Linear(6, 2)
    weight, bias = (p.detach().double().numpy() for p in net.parameters())
    labels = rng.integers(0, 2, 20)
    maps = rng.random((20, 6))
    got = respond(net, x, maps, (0.5,), labels=labels, perturbation=Perturbation(fill="dataset_mean"))
    mask = rf.removal_mask(maps, 0.5, ndim=1)
    logits = np.where(mask, x.mean(0), x) @ weight.T + bias
    np.testing.assert_allclose(got.logit[0], logits[np.arange(20), labels], rtol=1e-4, atol=1e-4)
    series = rng.standard_normal((20, 3, 5))
    net = nn.Sequential(nn.Flatten(), nn.Linear(15, 2))
    got = respond(net, series, maps[:, :5], (0.4,), labels=labels, perturbation=Perturbation(fill=7.0))
    mask = rf.removal_mask(maps[:, :5], 0.4, ndim=1)[:, None]
    with torch.no_grad():
        logits = net(torch.from_numpy(np.where(mask, 7.0, series)).float()).numpy()
    np.testing.assert_allclose(got.logit[0], logits[np.arange(20), labels], atol=1e-4)
    for fill in ("linear", "blur"):
        with pytest.raises(ValueError, match=f"fill='{fill}' needs images: features have no neighbours"):
            respond(nn.Linear(6, 2), x, maps, labels=labels, perturbation=Perturbation(fill=fill))


def test_scored_class() -> None:
    images, maps, labels = problem()
    net = linear()
    predicted = respond(net, images, maps, DROPS, labels=labels, scored="predicted")
    np.testing.assert_array_equal(predicted.scored, predicted.whole.prediction)
    given = respond(net, images, maps, DROPS, labels=labels, scored=predicted.whole.prediction)
    np.testing.assert_array_equal(given.logit, predicted.logit)
    assert (predicted.whole.margin >= 0).all()


def test_ends_and_single_rates() -> None:
    images, maps, labels = problem(1)
    net = linear()
    got = respond(net, images, maps, (0.0, 1.0), labels=labels, perturbation=Perturbation(fill="zero"))
    assert got.logit[0] == got.whole.logit and got.logit[1] == got.empty.logit
    assert got.removed.tolist() == [[0.0], [1.0]]
    none = respond(net, images[:0], maps[:0], labels=labels[:0])
    assert none.logit.shape == (9, 0) and np.isnan(none.curve()).all() and np.isnan(none.area())


def test_areas() -> None:
    images, maps, labels = problem()
    got = respond(linear(), images, maps, DROPS, labels=labels, perturbation=Perturbation(fill="zero"))
    for of in ("accuracy", "probability", "logit", "margin"):
        whole, empty = got.ends(of)
        for i in range(len(labels)):
            x = [0, *got.removed[:, i], 1]
            y = [whole[i], *got.values(of)[:, i], empty[i]]
            assert got.areas(of)[i] == pytest.approx(np.trapezoid(y, x))
    np.testing.assert_allclose(got.areas(rule="mean"), got.probability.mean(0), rtol=1e-6)
    table = got.per_class()
    np.testing.assert_allclose(table[:, 2], got.correct[:, labels == 2].mean(1))
    ratio = np.log(got.probability) - np.log(got.whole.probability)
    np.testing.assert_allclose(got.curve("log-ratio"), ratio.mean(1), rtol=1e-5)


def test_model_is_left_as_it_was() -> None:
    images, maps, labels = problem()
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dropout(), nn.Linear(144, 4))
    net.train()
    net[1].eval()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    one = respond(net, images, maps, labels=labels)
    np.testing.assert_array_equal(one.logit, respond(net, images, maps, labels=labels).logit)  # no dropout
    assert net.training and not net[1].training and net[3].training and net[0].weight.requires_grad
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())

    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("broken")

    broken = Broken().train()
    with pytest.raises(KeyError):
        respond(broken, images, maps, labels=labels)
    assert broken.training


def test_models_that_call_view() -> None:
    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(144, 4)

        def forward(self, x):
            y = self.conv(x)
            return self.fc(y.view(len(x), -1))

    images, maps, labels = problem()
    assert respond(Views(), images, maps, labels=labels).logit.shape == (9, 11)


def test_bad_input() -> None:
    images, maps, labels = problem()
    net = linear()
    ok = {"labels": labels}
    cases = [
        (
            ValueError,
            "floats? images must be in .0, 1. where mean and std are not given, got -2 to 0: pass the mean= and std=",
            lambda: respond(net, np.linspace(-2, 0, 11 * 192).reshape(11, 3, 8, 8), maps, **ok),
        ),
        (
            ValueError,
            "got 0 to 255: divide them by 255, or pass uint8",
            lambda: respond(net, np.linspace(0, 255, 11 * 192).reshape(11, 3, 8, 8), maps, **ok),
        ),
        (
            ValueError,
            r"images must be finite, got NaN or infinity in sample 0",
            lambda: respond(net, np.full((11, 3, 8, 8), np.nan), maps, **ok),
        ),
        (
            ValueError,
            r"may be \[N, C, H, W\] or \[N, H, W, C\]: say layout",
            lambda: respond(net, np.zeros((2, 3, 8, 3), np.uint8), maps, labels=[0, 1]),
        ),
        (
            ValueError,
            r"maps must be \(11, 8, 8\), one value per pixel, got shape \(11, 8, 7\)",
            lambda: respond(net, images, maps[..., 1:], **ok),
        ),
        (ValueError, "give maps or codes, got neither", lambda: respond(net, images, **ok)),
        (TypeError, "codes must be uint8", lambda: respond(net, images, codes=maps, **ok)),
        (
            ValueError,
            "codes go up to 9, but drops has 2 rates: they were made for other drops",
            lambda: respond(net, images, codes=np.full((11, 8, 8), 9, np.uint8), drops=(0.1, 0.2), **ok),
        ),
        (
            ValueError,
            r"labels must be in \[0, 4\), the model's classes, got 0 to 9",
            lambda: respond(net, images, maps, labels=np.arange(11) % 10),
        ),
        (
            ValueError,
            r"labels must be one integer per sample, \[11\], got shape \(3,\)",
            lambda: respond(net, images, maps, labels=[0, 1, 2]),
        ),
        (TypeError, "labels must be integers", lambda: respond(net, images, maps, labels=np.zeros(11))),
        (ValueError, r"scored must be in \[0, 4\)", lambda: respond(net, images, maps, scored=np.full(11, 7), **ok)),
        (
            ValueError,
            "batch_size must be an integer >= 1, got 0",
            lambda: respond(net, images, maps, batch_size=0, **ok),
        ),
        (ValueError, "must ascend", lambda: respond(net, images, maps, (0.5, 0.1), **ok)),
        (ValueError, "a must not hold NaN", lambda: respond(net, images, np.full_like(maps, np.nan), **ok)),
        (TypeError, "model must return a tensor of logits", lambda: respond(lambda x: (x, x), images, maps, **ok)),
        (
            ValueError,
            r"model must return logits \[66, classes\], got shape",
            lambda: respond(lambda x: x[:, 0, 0, 0], images[:6], maps[:6], labels=labels[:6]),
        ),
        (
            ValueError,
            "NaN or infinite for sample 0 with nothing removed",
            lambda: respond(lambda x: x.flatten(1)[:, :4] * float("nan"), images, maps, **ok),
        ),
        (
            ValueError,
            "fill must be one number or one per channel .3., got 2",
            lambda: respond(net, images, maps, perturbation=Perturbation(fill=(1.0, 2.0)), **ok),
        ),
        (ValueError, "fill must be a number", lambda: Perturbation(fill="black")),
        (
            ValueError,
            "images are on cpu, the model is on meta",
            lambda: respond(linear().to("meta"), torch.from_numpy(images), maps, **ok),
        ),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()


def test_nan_logits_name_image_and_rate() -> None:
    images, maps, labels = problem(6)

    def model(x):
        logits = x.flatten(1)[:, :4].clone()
        logits[(x == 0).flatten(1).sum(1) > 96] = float("nan")
        return logits

    with pytest.raises(ValueError, match=r"for sample 0 with drop rate 0\.9 removed"):
        respond(model, np.maximum(images, 1), maps, DROPS, labels=labels, perturbation=Perturbation(fill="zero"))


def test_cuda_memory_runs_out(monkeypatch) -> None:
    """Rows are halved until they fit; the answers are the same."""
    images, maps, labels = problem(6)
    net = linear()

    def small(x):
        if len(x) > 5:
            raise torch.cuda.OutOfMemoryError("too many")
        return net(x)

    with pytest.warns(ResourceWarning, match="out of CUDA memory: going on with 4 perturbed samples at a time"):
        got = respond(small, images, maps, labels=labels, batch_size=32)
    np.testing.assert_allclose(got.logit, respond(net, images, maps, labels=labels).logit, atol=1e-5)


def test_files(tmp_path) -> None:
    images, maps, labels = problem()
    net = linear()
    path = tmp_path / "responses.npz"
    first = respond(net, images, maps, labels=labels, file=path)
    content = path.read_bytes()
    again = respond(net, images, maps, labels=labels, file=path)
    np.testing.assert_array_equal(again.logit, first.logit)
    np.testing.assert_array_equal(again.empty.margin, first.empty.margin)
    assert again.perturbation == first.perturbation and path.read_bytes() == content
    with zipfile.ZipFile(path) as file:
        assert all(b"numpy" not in file.read(name)[:4] for name in file.namelist())
    with pytest.raises(ResponsesMismatch, match="other labels, scored"):
        respond(net, images, maps, labels=(labels + 1) % 4, file=path)
    path.write_bytes(content[:900] + bytes([content[900] ^ 1]) + content[901:])
    with pytest.raises(ResponsesCorrupt, match="damaged"):
        Responses.load(path)
    damaged = path.read_bytes()
    with pytest.warns(
        RuntimeWarning, match=r"responses\.npz is .*damaged.* kept as responses\.npz\.damaged and made again"
    ):
        respond(net, images, maps, labels=labels, file=path)
    assert path.read_bytes() == content and path.with_name("responses.npz.damaged").read_bytes() == damaged
    with pytest.raises(FileNotFoundError):
        Responses.load(tmp_path / "none.npz")


def test_files_of_functions(tmp_path) -> None:
    """A function is known by its code and by the modules, tensors and numbers that it names."""
    images, maps, labels = problem()

    def named(net, by=1.0):
        return lambda x: net(x) * by

    def other_code(net, by=1.0):
        return lambda x: net(x) + by

    class Wrapped:
        def __init__(self, net):
            self.net = net

        def __call__(self, x):
            return self.net(x)

    torch.manual_seed(5)
    trained = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
    first = named(linear())
    kinds = {
        "closure": (first, named(linear()), [named(trained), named(linear(), 2.0), other_code(linear())]),
        "partial": tuple(
            [functools.partial(call_with, net=n) for n in nets]
            if isinstance(nets, list)
            else functools.partial(call_with, net=nets)
            for nets in (linear(), linear(), [trained])
        ),
        "object": (Wrapped(linear()), Wrapped(linear()), [Wrapped(trained)]),
        "method": (linear().forward, linear().forward, [trained.forward]),
    }
    for kind, (model, same, others) in kinds.items():
        path = tmp_path / f"{kind}.npz"
        kept = respond(model, images, maps, labels=labels, file=path)
        np.testing.assert_array_equal(respond(same, images, maps, labels=labels, file=path).logit, kept.logit)
        for other in others:
            with pytest.raises(ResponsesMismatch, match=r"\(other model\)"):
                respond(other, images, maps, labels=labels, file=path)


def call_with(x, net):
    return net(x)


JOB = """
import sys, numpy as np, torch
from roarfast.metrics import respond
torch.set_num_threads(1)
rng = np.random.default_rng(0)
images = rng.integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
maps = rng.random((40, 16, 16)).astype(np.float32)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 196, 5))
print("ready", flush=True)
respond(net, images, maps, [j / 100 for j in range(2, 99)], labels=rng.integers(0, 5, 40), file=sys.argv[1], batch_size=16)
print("done", flush=True)
"""


@pytest.mark.slow
def test_killed_twenty_times_and_the_same_bytes(tmp_path) -> None:
    """97 rates; each of 20 runs is killed a little later than the one before, then one may finish."""
    script = tmp_path / "job.py"
    script.write_text(JOB)

    def start(path):
        process = subprocess.Popen([sys.executable, str(script), str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline().strip() == "ready"
        return process

    whole = tmp_path / "whole.npz"
    begun = time.monotonic()
    assert start(whole).wait(120) == 0
    seconds = time.monotonic() - begun
    broken = tmp_path / "broken.npz"
    killed = 0
    for k in range(20):
        process = start(broken)
        time.sleep(seconds * (0.02 + 0.02 * k))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert killed >= 3
    assert start(broken).wait(120) == 0
    assert broken.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "broken.npz.partial").exists()


def test_a_killed_run_goes_on(tmp_path) -> None:
    """The model dies in the middle; the next run asks only for what is missing and writes the same bytes."""
    images, maps, labels = problem(30)
    net = linear()
    whole, broken = tmp_path / "whole.npz", tmp_path / "broken.npz"
    torch.manual_seed(0)

    class Mortal(nn.Module):
        def __init__(self, lives: int) -> None:
            super().__init__()
            self.net, self.lives, self.rows = net, lives, 0

        def forward(self, x):
            self.lives -= 1
            if self.lives < 0:
                raise KeyboardInterrupt
            self.rows += len(x)
            return self.net(x)

    respond(Mortal(10**6), images, maps, labels=labels, file=whole, batch_size=8)
    with pytest.raises(KeyboardInterrupt):
        respond(Mortal(17), images, maps, labels=labels, file=broken, batch_size=8)
    last = Mortal(10**6)
    respond(last, images, maps, labels=labels, file=broken, batch_size=8)
    assert last.rows == 30 * 11 - 17 * 8
    assert broken.read_bytes() == whole.read_bytes()
