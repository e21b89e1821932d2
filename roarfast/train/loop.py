"""The training loop: deterministic, resumable, one fused kernel per batch."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from roarfast._progress import Progress, progress_in_mode
from roarfast._stopwatch import Stopwatch
from roarfast.data.dataset import Dataset
from roarfast.data.device import DeviceDataset, Transform
from roarfast.data.order import epoch_batches
from roarfast.train.batch_norm import use_ghost_batch_norm
from roarfast.train.checkpoint import load_checkpoint, save_checkpoint
from roarfast.train.distributed import World, average_statistics, join_world, wrap
from roarfast.train.evaluate import Evaluation, autocast_to, evaluate
from roarfast.train.models import ModelFactory, build_model
from roarfast.train.optimizers import make_optimizer
from roarfast.train.recipe import Recipe
from roarfast.train.records import EpochRecord, Removal, TrainResult, first_spelling
from roarfast.train.runtime import StopRequest, deterministic, resolve_precision

_CHECK_EVERY = 50  # steps between looks at the loss on CUDA, where looking waits for the device


class DivergenceError(RuntimeError):
    """The loss is no longer a finite number; says at which step and what the likely cause is."""


def train(
    model: str | ModelFactory | nn.Module,
    train_data: Dataset | DeviceDataset,
    test_data: Dataset | DeviceDataset,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str | torch.device | None = None,
    removal: Removal | None = None,
    weights: str | Path | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
    checkpoint_pause: float = 0.0,
    tag: str = "",
    evaluate_every: int = 0,
    progress: str | Progress = "auto",
    label: str = "",
    halves: npt.NDArray[np.bool_] | None = None,
) -> TrainResult:
    """Trains a model and scores it on the test set after the last epoch.

    The same arguments give the same weights, bit for bit, on the same machine and number of threads; also when the
    training was killed and continued from its checkpoint.

    Args:
        model: A name or factory for `build_model`, or a module, which is trained in place.
        train_data: Training images; a `Dataset` is put on `device` first.
        test_data: Test images. They are normalised with the statistics of `train_data`.
        recipe: See `get_recipe`.
        seed: Of initial weights, shuffling and augmentation.
        device: Default: that of `train_data`, or CUDA where there is some, or the CPU.
        removal: Which pixels to remove; needs codes in both data sets (in `train_data`, if test images stay whole).
        weights: Initial weights for a model given by name.
        checkpoint: File to continue from if it exists, written after every epoch, every `checkpoint_seconds` and on
            Ctrl-C. It is bound to this recipe, seed, data and `tag`.
        checkpoint_seconds: Time between checkpoints within an epoch (one process only).
        checkpoint_pause: No checkpoint after an epoch if the last is not this many seconds old (one process only): saving
            may take longer than a short epoch is worth.
        tag: Anything else that defines the training, such as the key of a study's cell.
        evaluate_every: Also test every so many epochs; 0 for the end only. Never changes the training.
        progress: `"auto"`, `"bar"`, `"log"`, `"none"`, or a `roarfast._progress.Progress` that is told.
        label: What the progress display calls this training.
        halves: bool `[N]` of the test images: those on which a temperature is fitted, as in `evaluate`.

    Returns:
        A `TrainResult`.

    Raises:
        DivergenceError: The loss became NaN or infinite.
        KeyboardInterrupt: After Ctrl-C, once the state is in `checkpoint`.

    Example:
        >>> from roarfast.data import load
        >>> from roarfast.train import get_recipe, train
        >>> data = [load("shapes", split, n=200) for split in ("train", "test")]
        >>> result = train("convnet", *data, get_recipe("quick", epochs=1), progress="none")
        >>> 0 <= result.accuracy <= 1
        True
    """
    with join_world() as world, deterministic(recipe.compile), torch.random.fork_rng(_current_cuda()):
        train_set, test_set = _on_device(train_data, device, world), _on_device(test_data, device, world, train_data)
        if isinstance(model, nn.Module):
            module = model if recipe.ghost_batch is None else use_ghost_batch_norm(model, recipe.ghost_batch)
        else:
            module = build_model(
                model,
                train_set.dataset.num_classes,
                train_set.dataset.image_shape[2],
                weights=weights,
                seed=seed,
                ghost_batch=recipe.ghost_batch,
            )
        torch.manual_seed(seed)
        training = _Training(module, train_set, test_set, recipe, seed, removal, world, tag)
        with StopRequest() as stop:
            training.checkpoint_pause = checkpoint_pause if world.size == 1 else 0.0
            training.halves = halves
            return training.run(checkpoint, checkpoint_seconds, evaluate_every, progress, label, stop)


def _current_cuda() -> list[int]:
    return [torch.cuda.current_device()] if torch.cuda.is_available() else []


def _on_device(
    data: Dataset | DeviceDataset,
    device: str | torch.device | None,
    world: World,
    like: Dataset | DeviceDataset | None = None,
) -> DeviceDataset:
    if isinstance(data, DeviceDataset):
        return data
    if device is None and isinstance(like, DeviceDataset):
        device = like.device
    if device is None:
        device = f"cuda:{world.local_rank}" if torch.cuda.is_available() else "cpu"
    return DeviceDataset(data, device)


class _Training:
    """The state of one training."""

    def __init__(
        self,
        model: nn.Module,
        train_set: DeviceDataset,
        test_set: DeviceDataset,
        recipe: Recipe,
        seed: int,
        removal: Removal | None,
        world: World,
        tag: str,
    ) -> None:
        self.recipe, self.seed, self.world = recipe, seed, world
        self.train_set, self.test_set = train_set, test_set
        self.device = train_set.device
        if test_set.device != self.device:
            raise ValueError(f"train_data is on {self.device}, test_data on {test_set.device}")
        self.precision = resolve_precision(recipe, self.device)
        memory_format = torch.channels_last if recipe.layout == "NHWC" else torch.contiguous_format
        self.model = model.to(self.device, memory_format=memory_format)  # type: ignore[call-overload]
        wrapped = wrap(self.model, world, self.device)
        self.forward: Callable[[torch.Tensor], torch.Tensor] = torch.compile(wrapped) if recipe.compile else wrapped
        self.optimizer = make_optimizer(self.model, recipe)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.precision == "float16")
        whole = Transform(
            mean=train_set.dataset.mean,
            std=train_set.dataset.std,
            crop=recipe.crop,
            dtype=self.precision,
            out_layout=recipe.layout,
            seed=seed,
        )
        tested = None if removal is None else removal.of_test
        self.eval_transform = whole if tested is None else replace(whole, **tested.fields())
        self.train_transform = replace(
            whole if removal is None else replace(whole, **removal.fields()),
            pad=recipe.pad,
            random_crop=recipe.random_crop,
            flip=recipe.flip,
            scale=recipe.scale,
            ratio=None if recipe.scale is None else recipe.ratio,
        )
        self.steps_per_epoch = len(self._batches(0))
        if self.steps_per_epoch == 0:
            raise ValueError(f"train_data has {len(train_set)} images: too few for {world.size} processes")
        self.fingerprint = {
            "recipe": str(sorted(recipe.as_hashed().items())),
            "seed": seed,
            "tag": tag,
            "processes": world.size,
            "removal": first_spelling(removal),
            "data": f"{len(train_set)} images of {train_set.dataset.image_shape}",
            "labels": zlib.crc32(train_set.dataset.labels.data),
            "model": str([(name, tuple(p.shape)) for name, p in self.model.named_parameters()]),
        }
        self.checkpoint_pause = 0.0
        self.halves: npt.NDArray[np.bool_] | None = None
        self.epoch, self.step_in_epoch = 0, 0
        self.history: list[EpochRecord] = []
        self.step_losses: list[float] = []
        self._new_epoch_sums()

    def run(
        self,
        checkpoint: str | Path | None,
        checkpoint_seconds: float,
        evaluate_every: int,
        progress: str | Progress,
        label: str,
        stop: StopRequest,
    ) -> TrainResult:
        """Train to the end, from the checkpoint if there is one."""
        resumed_at = self._restore(checkpoint)
        self.watch = Stopwatch(self.device, ("data", "forward_backward", "evaluation"))
        self.checkpoint, self.stop = checkpoint, stop
        self.checkpoint_seconds, self.last_saved = checkpoint_seconds, time.monotonic()
        started = time.perf_counter()
        mode = progress if self.world.is_main else "none"
        self.label = f"{label}  " if label else ""
        total = self.recipe.epochs * self.steps_per_epoch
        with progress_in_mode(mode, label or "training", total, self._step()) as display:
            while self.epoch < self.recipe.epochs:
                self._run_epoch(display, evaluate_every)
        self.watch.start()
        test = self._evaluate(self.halves)
        self.watch.lap("evaluation")
        self.watch.collect()
        self.history[-1]["test_accuracy"] = test.accuracy
        timing = {**self.watch.seconds, "total": time.perf_counter() - started}
        return TrainResult(
            test.accuracy,
            test.loss,
            test.true_class_probability,
            self.history,
            self.step_losses,
            timing,
            self._step(),
            resumed_at,
            self.recipe.as_dict(),
            self.seed,
            self.model.eval(),
            test.scaled,
        )

    def _label(self) -> str:
        return f"{self.label}epoch {self.epoch + 1}/{self.recipe.epochs}"

    def _run_epoch(self, display: Progress, evaluate_every: int) -> None:
        self.model.train()
        began = time.perf_counter()
        already = self.seen
        batches = self._batches(self.epoch)[self.step_in_epoch :]
        on_cpu = self.device.type == "cpu"
        self.watch.start()
        for x, y in self.train_set.batches(batches, self.train_transform, epoch=self.epoch, reuse=on_cpu):
            self.watch.lap("data")
            self._train_step(x, y)
            self.watch.lap("forward_backward")
            if on_cpu or self.step_in_epoch % _CHECK_EVERY == 0:
                self._check_finite()
                loss, correct = self.loss_sum.item(), self.correct.item()
                speed = (self.seen - already) * self.world.size / (time.perf_counter() - began)
                facts = f"loss {loss / self.seen:.3f}  acc {100 * correct / self.seen:.1f} %  {speed:.0f} img/s"
                display.update(self._step(), what=self._label(), note=facts)
            self._between_steps()
            self.watch.start()
        self._check_finite()
        self._finish_epoch(display, evaluate_every, (self.seen - already) * self.world.size, began)

    def _train_step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr_at(self._step(), self.steps_per_epoch)
        with autocast_to(self.precision):
            logits = self.forward(x)
            loss = F.cross_entropy(logits, y, label_smoothing=self.recipe.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        if self.recipe.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        detached = loss.detach().float()
        self.epoch_losses.append(detached)
        self.loss_sum += detached.double() * len(y)
        self.correct += (logits.detach().argmax(1) == y).sum()
        self.seen += len(y)
        self.step_in_epoch += 1

    def _between_steps(self) -> None:
        """Ctrl-C and checkpoints within an epoch."""
        alone = self.world.size == 1
        stop = (
            self.stop.requested
            if alone
            else self.step_in_epoch % 16 == 0 and self.world.any(self.stop.requested, self.device)
        )
        due = alone and time.monotonic() - self.last_saved >= self.checkpoint_seconds
        if self.checkpoint is not None and (stop or due):
            average_statistics(self.model, self.world)
            self._save()
        if stop:
            kept = f"; its state is in {self.checkpoint}: run it again to continue" if self.checkpoint else ""
            raise KeyboardInterrupt(f"training stopped after step {self._step()}{kept}")

    def _finish_epoch(self, display: Progress, evaluate_every: int, images: int, began: float) -> None:
        average_statistics(self.model, self.world)
        losses = self.world.sum(torch.stack(self.epoch_losses)) / self.world.size
        self.step_losses += losses.tolist()
        loss_sum, correct, seen = self.world.sum(
            torch.stack([self.loss_sum, self.correct.double(), torch.tensor(float(self.seen)).to(self.loss_sum)])
        ).tolist()
        self.watch.collect()
        record: EpochRecord = {
            "epoch": self.epoch + 1,
            "loss": loss_sum / seen,
            "accuracy": correct / seen,
            "images_per_second": images / max(time.perf_counter() - began, 1e-9),
            "test_accuracy": None,
        }
        if evaluate_every and (self.epoch + 1) % evaluate_every == 0 and self.epoch + 1 < self.recipe.epochs:
            self.watch.start()
            record["test_accuracy"] = self._evaluate().accuracy
            self.watch.lap("evaluation")
        self.history.append(record)
        tested = f"  test {100 * record['test_accuracy']:.2f} %" if record["test_accuracy"] is not None else ""
        gone = time.monotonic() - display.started
        display.item(
            f"{self._label()}  loss {record['loss']:.4f}  train {100 * record['accuracy']:.2f} %{tested}  "
            f"{record['images_per_second']:.0f} img/s  {gone:.0f} s, {display.seconds_left() or 0:.0f} s left"
        )
        self.epoch, self.step_in_epoch = self.epoch + 1, 0
        self._new_epoch_sums()
        if self.checkpoint is not None and time.monotonic() - self.last_saved >= self.checkpoint_pause:
            self._save()

    def _evaluate(self, halves: npt.NDArray[np.bool_] | None = None) -> Evaluation:
        return evaluate(
            self.model,
            self.test_set,
            self.eval_transform,
            batch_size=self.recipe.eval_batch_size,
            autocast=self.precision,
            world=self.world,
            halves=halves,
        )

    def _batches(self, epoch: int) -> list[npt.NDArray[np.int64]]:
        return epoch_batches(
            len(self.train_set),
            self.recipe.batch_size,
            self.seed,
            epoch,
            drop_last=self.recipe.drop_last,
            rank=self.world.rank,
            world=self.world.size,
        )

    def _step(self) -> int:
        return self.epoch * self.steps_per_epoch + self.step_in_epoch

    def _new_epoch_sums(self) -> None:
        self.loss_sum = torch.zeros((), dtype=torch.float64, device=self.device)
        self.correct = torch.zeros((), dtype=torch.int64, device=self.device)
        self.seen = 0
        self.epoch_losses: list[torch.Tensor] = []

    def _check_finite(self) -> None:
        if not self.epoch_losses or math.isfinite(self.loss_sum.item()):
            return
        losses = torch.stack(self.epoch_losses).tolist()
        first = next(i for i, loss in enumerate(losses) if not math.isfinite(loss))
        step = self.epoch * self.steps_per_epoch + first
        before = [*self.step_losses, *losses[:first]]
        lr = self.recipe.lr_at(step, self.steps_per_epoch)
        raise DivergenceError(
            f"the loss became {losses[first]} at step {step} (epoch {self.epoch + 1}, learning rate {lr:.3g}); the losses "
            f"before were {[round(v, 3) for v in before[-5:]]}. Likely cause: {self._likely_cause(before)}."
        )

    def _likely_cause(self, before: list[float]) -> str:
        if not before:
            return "the initial weights or the images hold NaN or infinity (or a sample index is out of range on CUDA)"
        if before[-1] > 2 * before[0] or max(before[-5:]) > 3 * min(before):
            return "the learning rate is too high: lower lr, lengthen warmup_epochs or set clip_norm"
        if self.precision == "float16":
            return "float16 overflow: use precision='bfloat16' or 'float32'"
        return "a sudden overflow: lower lr or set clip_norm"

    def _save(self) -> None:
        self.last_saved = time.monotonic()
        if self.world.is_main:
            state = {
                "fingerprint": self.fingerprint,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scaler": self.scaler.state_dict(),
                "epoch": self.epoch,
                "step_in_epoch": self.step_in_epoch,
                "history": self.history,
                "step_losses": self.step_losses,
                "loss_sum": self.loss_sum,
                "correct": self.correct,
                "seen": self.seen,
                "epoch_losses": torch.stack(self.epoch_losses) if self.epoch_losses else torch.zeros(0),
                "rng": torch.get_rng_state(),
                "cuda_rng": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
            }
            assert self.checkpoint is not None
            save_checkpoint(self.checkpoint, state)
        self.world.barrier()

    def _restore(self, checkpoint: str | Path | None) -> int | None:
        state = load_checkpoint(checkpoint, self.fingerprint) if checkpoint is not None else None
        if state is None:
            return None
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        for name in ("epoch", "step_in_epoch", "history", "step_losses", "seen"):
            setattr(self, name, state[name])
        self.loss_sum, self.correct = state["loss_sum"].to(self.device), state["correct"].to(self.device)
        self.epoch_losses = list(state["epoch_losses"].to(self.device).unbind())
        torch.set_rng_state(state["rng"])
        if state["cuda_rng"] is not None and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["cuda_rng"], self.device)
        return self._step()
