"""The training loop: learns, repeats itself bit for bit, and says what went wrong."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys

import numpy as np
import pytest
from helpers.threads import one_thread  # noqa: F401

from roarfast.data import load

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast.data import DeviceDataset, Transform  # noqa: E402
from roarfast.train import (  # noqa: E402
    CheckpointError,
    DivergenceError,
    Recipe,
    Removal,
    build_model,
    evaluate,
    get_recipe,
    train,
)

RECIPE = Recipe(epochs=2, batch_size=20, lr=0.02, pad=2, random_crop=True, flip=True, drop_last=True, nesterov=True)


@pytest.fixture(scope="module")
def shapes():
    return load("shapes", "train", n=200), load("shapes", "test", n=60)


def tiny(seed=0, **options):
    return build_model("convnet", 10, seed=seed, widths=(4, 8), **options)


def run(data, recipe=RECIPE, model=None, **options):
    return train(model or tiny(), *data, recipe, progress="none", **options)


def same_weights(a, b):
    a, b = a.state_dict(), b.state_dict()
    return all(torch.equal(a[k], b[k]) for k in a)


def test_digits_are_learned():
    data = load("digits", "train"), load("digits", "test")
    recipe = Recipe(epochs=4, batch_size=32, lr=0.1, nesterov=True, warmup_epochs=0.5)
    result = train(build_model("convnet", 10, 1, seed=0, widths=(8, 16)), *data, recipe, progress="none")
    assert result.accuracy > 0.9
    assert result.history[-1]["loss"] < result.history[0]["loss"] / 2
    assert result.history[-1]["test_accuracy"] == result.accuracy


def test_result_and_timing(shapes):
    result = run(shapes, evaluate_every=1)
    assert result.steps == 20
    assert len(result.step_losses) == 20
    assert [h["epoch"] for h in result.history] == [1, 2]
    assert all(h["test_accuracy"] is not None for h in result.history)
    assert set(result.timing) == {"data", "forward_backward", "evaluation", "total"}
    assert 0 < sum(v for k, v in result.timing.items() if k != "total") <= result.timing["total"] * 1.01
    assert result.recipe["lr"] == 0.02
    assert not result.model.training
    np.testing.assert_allclose(np.mean(result.step_losses[:10]), result.history[0]["loss"], rtol=1e-5)


def test_reruns_are_identical(shapes):
    a, b = run(shapes, model=tiny(dropout=0.2)), run(shapes, model=tiny(dropout=0.2))
    assert same_weights(a.model, b.model)
    assert a.step_losses == b.step_losses
    assert not same_weights(a.model, run(shapes, model=tiny(dropout=0.2), seed=1).model)
    torch.rand(3)  # the global generator does not matter
    assert same_weights(a.model, run(shapes, model=tiny(dropout=0.2), evaluate_every=1).model)


def test_streaming_trains_to_the_same_weights(shapes):
    streamed = [DeviceDataset(d, budget=0) for d in shapes]
    assert same_weights(run(shapes).model, run(streamed).model)


def test_training_leaves_global_state_alone(shapes):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    run(shapes)
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.are_deterministic_algorithms_enabled()


def test_removal_reaches_training_and_test(shapes, rng):
    """Removing every pixel leaves nothing to learn; removing none changes nothing."""
    codes = [rng.integers(0, 3, d.images.shape[:3], dtype=np.uint8) for d in shapes]
    data = [DeviceDataset(d, codes=c) for d, c in zip(shapes, codes)]
    assert same_weights(run(shapes).model, run(data, removal=Removal(rate_index=-1)).model)
    assert not same_weights(run(shapes).model, run(data, removal=Removal(rate_index=0)).model)
    blank = run(data, removal=Removal(rate_index=2))
    logits = [
        blank.model(x)
        for x, _ in data[1].batches([np.arange(5)], Transform(rate_index=2, mean=shapes[0].mean, std=shapes[0].std))
    ]
    assert torch.equal(logits[0], logits[0][:1].expand(5, -1))


def test_checkpoint_continues_to_the_same_weights(shapes, tmp_path):
    """Stopped after each epoch, and in the middle of one."""
    whole = run(shapes, dataclasses.replace(RECIPE, epochs=3), model=tiny(dropout=0.2))
    path = tmp_path / "run" / "c.pt"
    stopped = 0

    class StopAfter(nn.Module):
        def __init__(self, model, steps):
            super().__init__()
            self.model, self.steps = model, steps

        def forward(self, x):
            if self.training:
                self.steps -= 1
                if self.steps < 0:
                    raise RuntimeError("killed")
            return self.model(x)

    for steps in (7, 4, 12, 1000):
        try:
            result = train(
                StopAfter(tiny(dropout=0.2), steps),
                *shapes,
                dataclasses.replace(RECIPE, epochs=3),
                progress="none",
                checkpoint=path,
                checkpoint_seconds=0,
            )
        except RuntimeError:
            stopped += 1
    assert stopped == 3
    assert result.resumed_at == 7 + 4 + 12
    assert same_weights(result.model.model, whole.model)
    assert result.step_losses == whole.step_losses
    assert result.history[1]["loss"] == whole.history[1]["loss"]
    assert [p.name for p in path.parent.iterdir()] == ["c.pt"]
    # Asked again, it is already finished.
    again = train(
        StopAfter(tiny(dropout=0.2), 0),
        *shapes,
        dataclasses.replace(RECIPE, epochs=3),
        progress="none",
        checkpoint=path,
    )
    assert again.accuracy == whole.accuracy


@pytest.mark.parametrize(("pause", "saved"), [(0.0, 3), (3600.0, 0)])
def test_short_epochs_need_not_be_saved_each(shapes, tmp_path, monkeypatch, pause, saved):
    seen = []
    monkeypatch.setattr("roarfast.train.loop.save_checkpoint", lambda path, state: seen.append(state["epoch"]))
    recipe = dataclasses.replace(RECIPE, epochs=3)
    train(tiny(), *shapes, recipe, progress="none", checkpoint=tmp_path / "c.pt", checkpoint_pause=pause)
    assert len(seen) == saved


def test_ctrl_c_leaves_a_resumable_state(shapes, tmp_path):
    class InterruptAt(nn.Module):
        def __init__(self, step):
            super().__init__()
            self.model, self.step = tiny(), step

        def forward(self, x):
            self.step -= self.training
            if self.step == 0:
                signal.raise_signal(signal.SIGINT)  # in the middle of a step
            return self.model(x)

    before = signal.getsignal(signal.SIGINT)
    path = tmp_path / "c.pt"
    with pytest.raises(KeyboardInterrupt, match=r"training stopped after step 13; its state is in .*c\.pt"):
        run(shapes, model=InterruptAt(13), checkpoint=path)
    assert signal.getsignal(signal.SIGINT) is before
    resumed = run(shapes, model=InterruptAt(-1), checkpoint=path)
    assert resumed.resumed_at == 13
    assert same_weights(resumed.model.model, run(shapes).model)


def test_checkpoint_of_another_training(shapes, tmp_path):
    path = tmp_path / "c.pt"
    run(shapes, checkpoint=path)
    with pytest.raises(CheckpointError, match="of another training: seed was 0, now 1"):
        run(shapes, checkpoint=path, seed=1)
    with pytest.raises(CheckpointError, match="of another training: recipe"):
        run(shapes, dataclasses.replace(RECIPE, lr=0.01), checkpoint=path)
    with pytest.raises(CheckpointError, match="of another training: tag"):
        run(shapes, checkpoint=path, tag="cell 7")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match="cannot read checkpoint"):
        run(shapes, checkpoint=path)


def test_divergence_is_reported(shapes):
    with pytest.raises(DivergenceError, match=r"at step \d+ \(epoch \d, learning rate .*learning rate is too high"):
        run(shapes, Recipe(epochs=3, batch_size=20, lr=1e12, momentum=0.0))
    poisoned = tiny()
    with torch.no_grad():
        poisoned.fc.bias[0] = float("nan")
    with pytest.raises(DivergenceError, match=r"at step 0 .*initial weights or the images hold NaN"):
        run(shapes, model=poisoned)


def test_precision_needs_cuda(shapes):
    with pytest.raises(ValueError, match="precision bfloat16 needs CUDA"):
        run(shapes, dataclasses.replace(RECIPE, precision="bfloat16"))


def test_progress_modes(shapes, capsys):
    one = dataclasses.replace(RECIPE, epochs=1)
    train(tiny(), *shapes, one, progress="log", label="cell 3")
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert all(word in lines[0] for word in ("cell 3", "epoch 1/1", "loss", "train", "img/s", "left"))
    train(tiny(), *shapes, one, progress="none")
    assert capsys.readouterr().err == ""
    pytest.importorskip("rich")
    train(tiny(), *shapes, one, progress="bar")
    with pytest.raises(ValueError, match="progress must be one of"):
        train(tiny(), *shapes, one, progress="loud")


def test_evaluate(shapes):
    data = DeviceDataset(shapes[1])
    model = tiny()
    a, b = (evaluate(model, data, batch_size=size) for size in (7, 60))
    assert a.accuracy == b.accuracy
    assert a.loss == pytest.approx(b.loss, rel=1e-5)
    assert a.count == 60
    assert model.training


def test_model_by_name(shapes):
    small = [d.subset(slice(0, 40)) for d in shapes]
    result = train(
        "resnet8",
        *small,
        get_recipe("quick", model="resnet8", epochs=1, batch_size=20, warmup_epochs=0.5),
        progress="none",
    )
    assert type(result.model).__name__ == "ResNet8"
    assert result.steps == 2


@pytest.mark.parametrize(
    ("preset", "model", "overrides"),
    [
        ("cifar10", "resnet18", {}),
        ("svhn", "resnet18", {}),
        ("cub200", "resnet50", {"pretrained": False}),
        ("imagenet-roar", "resnet50", {"crop": 28, "ghost_batch": 4}),
    ],
)
def test_recipes_of_the_papers_run(shapes, preset, model, overrides):
    small = [d.subset(slice(0, 24)) for d in shapes]
    recipe = get_recipe(preset, epochs=1, batch_size=8, lr=0.001, warmup_epochs=0, eval_batch_size=8, **overrides)
    result = train(model, *small, recipe, progress="none")
    assert result.steps == 3
    assert np.isfinite(result.loss)
    assert sum(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in result.model.modules()) >= 20


def test_compiled_training_equals_eager_training(shapes):
    pytest.importorskip("torch._inductor")
    small = [d.subset(slice(0, 40)) for d in shapes]
    recipe = dataclasses.replace(RECIPE, epochs=1)
    eager, compiled = (run(small, dataclasses.replace(recipe, compile=c)) for c in (False, True))
    np.testing.assert_allclose(compiled.step_losses, eager.step_losses, rtol=1e-4)
    assert compiled.model.state_dict().keys() == eager.model.state_dict().keys()


def test_determinism_is_restored_and_does_not_import_the_compiler():
    """torch's own switch imports torch.compile's machinery: seconds in every process that trains."""
    code = """
import sys, torch
from roarfast.train.runtime import deterministic
with deterministic():
    assert torch.get_deterministic_debug_mode() == 1 and torch.backends.cudnn.deterministic
assert torch.get_deterministic_debug_mode() == 0
assert "torch._inductor" not in sys.modules
with deterministic(compiled=True):
    assert getattr(sys.modules["torch._inductor.config"], "deterministic", True)
assert not getattr(sys.modules["torch._inductor.config"], "deterministic", False)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_whole_test_images_need_no_codes_and_change_no_weight(shapes):
    codes = np.zeros(shapes[0].images.shape[:3], np.uint8)
    codes[:, 8:] = 1
    train_set = DeviceDataset(shapes[0], "cpu").with_codes(codes)
    test_set = DeviceDataset(shapes[1], "cpu")
    half = run((train_set, test_set), removal=Removal(0, fill=(0.0,) * 3, whole_test=True))
    with_codes = test_set.with_codes(np.zeros(shapes[1].images.shape[:3], np.uint8))
    both = run((train_set, with_codes), removal=Removal(0, fill=(0.0,) * 3))
    assert same_weights(half.model, both.model)
    assert half.loss != both.loss
    with pytest.raises(ValueError, match="this DeviceDataset has no codes"):
        run((train_set, test_set), removal=Removal(0, fill=(0.0,) * 3))
