"""`respond`: the one function that runs a model on perturbed samples, for all rates in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import roarfast as rf
from roarfast._progress import progress as show_progress
from roarfast._temperature import losses_at
from roarfast._types import Array, Json
from roarfast.metrics.batches import EMPTY, WHOLE, Perturber
from roarfast.metrics.inputs import Inputs, Integers, PerChannel, integers, read_inputs
from roarfast.metrics.model import Logits, Model, choose_device, evaluating, home
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.pgd import adversarial_pixels
from roarfast.metrics.response_file import ANSWER, LOSSES, AnswerFile, identify
from roarfast.metrics.responses import Responses, Row

# Numbers in a batch: 4 MB. Activations of twice as many leave the caches, which costs a convnet a fifth.
_BATCH_VALUES = 1 << 20
_MAX_BATCH = 4096


class RunOptions(TypedDict, total=False):
    """How `respond` runs a model."""

    batch_size: int | None
    device: str | torch.device | None
    progress: bool | None


class InputOptions(RunOptions, total=False):
    """How `respond` runs a model and reads samples."""

    layout: str | None
    mean: PerChannel
    std: PerChannel
    normalized: bool | None


def respond(
    model: Model,
    images: Array | Inputs,
    maps: Array | None = None,
    drops: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    *,
    labels: Integers,
    codes: Array | None = None,
    filled: Array | None = None,
    perturbation: Perturbation | None = None,
    scored: str | Integers = "label",
    layout: str | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    normalized: bool | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    index: Integers | None = None,
    device: str | torch.device | None = None,
    progress: bool | None = None,
    file: str | Path | None = None,
    ends: tuple[Row, Row] | None = None,
    halves: Array | Sequence[bool] | None = None,
) -> Responses:
    """What a model answers when pixels are removed, at every rate, for every sample.

    Rows of a batch are (sample, rate) pairs made on the fly from one byte per pixel, so a batch is full however few
    samples there are, and no more than `batch_size` perturbed samples exist at a time. The model is used in evaluation
    mode and left as it was.

    Args:
        model: An `nn.Module` or a function; returns logits `[B, classes]`.
        images: Images `[N, C, H, W]` or `[N, H, W, C]` (uint8 or float), series `[N, C, T]` or features `[N, F]`.
        maps: Attribution maps `[N, H, W]` (`[N, T]`, `[N, F]`), one value per pixel.
        drops: Ascending drop rates in [0, 1], at most 254.
        labels: The true classes, int `[N]`.
        codes: Rank codes, uint8 like maps, made for `drops` by `roarfast.rank_codes`, in place of `maps`.
        filled: Like 8-bit images `[N, H, W, C]`, or float planes: removed pixels are taken from these, whatever the
            perturbation's fill. `adversarial` makes them itself where they are not given.
        perturbation: Which pixels go and what takes their place; default ROAD's: the most relevant first, linear
            imputation.
        scored: The class that probability, logit and margin are of: `"label"`, `"predicted"` (for the whole sample), or
            int `[N]`.
        layout: `"NCHW"` or `"NHWC"`; None: found out.
        mean: Normalisation of the model's input per channel, in units of 0..1.
        std: Likewise.
        normalized: Whether float images are normalised already; None: if they leave [0, 1].
        batch_size: Perturbed samples that go through the model together; halved when a CUDA device runs out of memory.
        seed: Breaks ties and draws noise.
        index: Sample ids int `[N]` that key ties and noise; default 0, 1, 2, …
        device: Where to run; default where the model is.
        progress: Whether to show how far it is; None: on a terminal or in a notebook.
        file: Keeps the answers in this file, from which a killed run resumes; a finished one is read. One of another model
            is refused; of a function, its code and the modules it names are compared.
        ends: The answers to whole and to empty samples, if they are known: those of other responses of this model to these
            samples, with the same fill and the same `scored`.
        halves: bool `[N]`: also keeps what `Responses.scaled` needs to fit a temperature on the samples that are True and try
            it on the others.

    Returns:
        The responses `[rates, samples]`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> images, maps = np.zeros((5, 8, 8, 3), np.uint8), np.random.default_rng(0).random((5, 8, 8))
        >>> respond(net, images, maps, labels=[0, 1, 2, 3, 0]).logit.shape
        (9, 5)
    """
    inputs = (
        images
        if isinstance(images, Inputs)
        else read_inputs(images, layout=layout, mean=mean, std=std, normalized=normalized)
    )
    how = perturbation or Perturbation()
    n = len(inputs)
    truth = integers("labels", labels, n)
    ids = torch.arange(n) if index is None else integers("index", index, n)
    rates = rf.ops._selection.rates("drops", drops)
    if maps is not None and codes is not None:
        raise ValueError("give either maps or codes, got both")
    if maps is not None:
        table = make_codes(inputs, maps, rates, how, seed, ids)
    elif codes is not None:
        table = _check_codes(inputs, codes, len(rates))
    else:
        raise ValueError("give maps or codes, got neither")
    from_numpy = not isinstance(images, Tensor)
    place = choose_device(model, inputs.pixels, from_numpy, device)
    size = batch_size_for(inputs, batch_size)
    other = None if filled is None else torch.as_tensor(filled)
    if ends is not None and any(len(row.correct) != n for row in ends):
        raise ValueError(f"ends must be of {n} samples, got {[len(row.correct) for row in ends]}")
    fitted = _check_halves(halves, n)
    kind = ANSWER if fitted is None else LOSSES
    engine = _Engine(model, inputs, table, how, seed, ids, truth, place, size, other, ends, kind)
    with evaluating(model):
        attack = how.fill == "adversarial" and other is None
        if attack:
            engine.perturber.filled = inputs.pixels  # to find the class of whole images
        target = engine.targets(scored)
        if attack:
            engine.perturber.filled = adversarial_pixels(model, inputs, target, place)
        rows = engine.pairs(len(rates))
        if file is None:
            answers = np.empty(rows, kind)
            todo = engine.batches(rows)
            with show_progress("responding", rows, show=progress) as job:
                for start, stop in todo:
                    answers[start:stop] = engine.answer(start, stop, target, rates)
                    job.advance(stop - start)
        else:
            identity = identify(model, inputs, table, truth, target, rates, how, seed, ids, size, other, fitted)
            finished = AnswerFile.finished(Path(file), identity)
            if finished is not None:
                return finished
            with AnswerFile(Path(file), identity, rows, size, kind) as store:
                done = rows - sum(stop - start for start, stop in store.missing)
                with show_progress("responding", rows, show=progress, done=done) as job:
                    for start, stop in list(store.missing):
                        part = [engine.answer(s, min(s + size, stop), target, rates) for s in range(start, stop, size)]
                        store.write(start, np.concatenate(part))
                        job.advance(stop - start)
                answers = store.read()
                result = _assemble(answers, rates, table, how, truth, target, identity, ends, fitted)
                store.finish(result)
                return result
    return _assemble(answers, rates, table, how, truth, target, {}, ends, fitted)


def make_codes(
    inputs: Inputs,
    maps: Array,
    rates: Sequence[float],
    how: Perturbation,
    seed: int = 0,
    index: Integers | None = None,
) -> Tensor:
    """Rank codes uint8 `[N, H, W]` of maps, on the host.

    Args:
        inputs: The samples.
        maps: `[N, H, W]`, `[N, T]` of series or `[N, F]` of features.
        rates: Ascending, in [0, 1].
        how: Rule and order are read.
        seed: Breaks ties.
        index: Sample ids.

    Example:
        >>> from roarfast.metrics import Perturbation, read_inputs
        >>> inputs = read_inputs(np.zeros((1, 4), np.float32))  # one sample of four features
        >>> make_codes(inputs, np.array([[1.0, 4.0, 2.0, 3.0]]), [0.25, 0.5], Perturbation()).tolist()
        [[[2, 0, 2, 1]]]
    """
    a = maps if isinstance(maps, Tensor) else torch.from_numpy(np.ascontiguousarray(maps))
    a = map_tensor(inputs, a)
    return rf.rank_codes(a, rates, rule=how.rule, order=how.order, seed=seed, index=index)


def map_tensor(inputs: Inputs, a: Tensor, name: str = "maps") -> Tensor:
    """Maps as `[N, H, W]` on the host, checked."""
    a = a.detach().cpu()
    if inputs.kind != "images" and a.ndim == 2:
        a = a[:, None, :]
    expected = (len(inputs), *inputs.map_shape)
    if tuple(a.shape) != expected:
        shown = expected if inputs.kind == "images" else (expected[0], expected[2])
        raise ValueError(f"{name} must be {shown}, one value per pixel, got shape {tuple(a.shape)}")
    return a


def _check_codes(inputs: Inputs, codes: Array, count: int) -> Tensor:
    table = codes if isinstance(codes, Tensor) else torch.from_numpy(np.ascontiguousarray(codes))
    if table.dtype != torch.uint8:
        raise TypeError(f"codes must be uint8, as rank_codes makes them, got {table.dtype}; pass maps as maps=")
    table = map_tensor(inputs, table, "codes").contiguous()
    if table.numel() and int(table.max()) > count:
        raise ValueError(
            f"codes go up to {int(table.max())}, but drops has {count} rates: they were made for other drops"
        )
    return table


def _check_halves(halves: Array | Sequence[bool] | None, n: int) -> Tensor | None:
    found = None if halves is None else torch.as_tensor(halves)
    if found is not None and (found.dtype != torch.bool or tuple(found.shape) != (n,)):
        raise ValueError(
            f"halves must be bool {(n,)}, True for the samples to fit on, got {found.dtype} {tuple(found.shape)}"
        )
    return None if found is None else found.cpu()


def batch_size_for(inputs: Inputs, batch_size: int | None) -> int:
    """How many samples go through a model together: as asked, or as caches hold."""
    if batch_size is None:
        fit = max(16, _BATCH_VALUES // max(inputs.values, 1))
        return min(_MAX_BATCH, 1 << (fit.bit_length() - 1))
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"batch_size must be an integer >= 1, got {batch_size!r}")
    return batch_size


class _Engine:
    """Answers to pairs: pair p is sample p // K at rate p % K, K = rates + 2: nothing removed, the rates, everything.

    Where the ends are known, K = rates.
    """

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        codes: Tensor,
        how: Perturbation,
        seed: int,
        ids: Tensor,
        labels: Tensor,
        device: torch.device,
        size: int,
        filled: Tensor | None = None,
        ends: tuple[Row, Row] | None = None,
        kind: np.dtype[np.void] = ANSWER,
    ) -> None:
        self.inputs, self.labels, self.device, self.size, self.ends = inputs, labels, device, size, ends
        self.kind = kind
        self.perturber = Perturber(inputs, codes, how, seed, ids, device, home(model)[1], filled)
        self.logits = Logits(model, labels)
        self.rows_at_once = size

    def pairs(self, rates: int) -> int:
        return len(self.inputs) * (rates if self.ends is not None else rates + 2)

    def batches(self, rows: int) -> list[tuple[int, int]]:
        return [(start, min(start + self.size, rows)) for start in range(0, rows, self.size)]

    def targets(self, scored: str | Integers) -> Tensor:
        """int64 `[N]`: the class that is scored."""
        n = len(self.inputs)
        if isinstance(scored, str) and scored == "label":
            return self.labels
        if isinstance(scored, str) and scored == "predicted" and self.ends is not None:
            return torch.from_numpy(self.ends[0].prediction.astype(np.int64))
        if isinstance(scored, str) and scored == "predicted":
            found = torch.empty(n, dtype=torch.int64)
            for start in range(0, n, self.size):
                sample = torch.arange(start, min(start + self.size, n))
                found[sample] = self._run(sample, torch.full_like(sample, WHOLE)).argmax(1).cpu()
            return found
        if isinstance(scored, str):
            raise ValueError(f"scored must be 'label', 'predicted' or one class per sample, got {scored!r}")
        target = integers("scored", scored, n)
        if n:
            classes = self._run(torch.arange(1), torch.full((1,), WHOLE)).shape[1]
            if not 0 <= int(target.min()) <= int(target.max()) < classes:
                raise ValueError(
                    f"scored must be in [0, {classes}), the model's classes, got {int(target.min())} to {int(target.max())}"
                )
        return target

    def answer(self, start: int, stop: int, target: Tensor, rates: Sequence[float]) -> npt.NDArray[np.void]:
        """Answers to pairs [start, stop)."""
        count = len(rates)
        pair = torch.arange(start, stop)
        if self.ends is not None:
            sample, rate = pair // count, pair % count
        else:
            sample, rate = pair // (count + 2), pair % (count + 2) - 1
            rate[rate == count] = EMPTY
        logits = self._run(sample, rate)
        if not bool(torch.isfinite(logits).all()):
            bad = int((~torch.isfinite(logits)).any(1).nonzero()[0])
            where = {WHOLE: "nothing", EMPTY: "everything"}.get(int(rate[bad]), "")
            at = where or f"drop rate {rates[int(rate[bad])]:g}"
            raise ValueError(f"the model's logits are NaN or infinite for sample {int(sample[bad])} with {at} removed")
        chosen = target[sample].to(logits.device)[:, None]
        score = logits.gather(1, chosen)[:, 0]
        others = logits.scatter(1, chosen, float("-inf")).amax(1)
        out = np.empty(stop - start, self.kind)
        if self.kind == LOSSES:
            out["losses"] = losses_at(logits, self.labels[sample]).cpu().numpy()
        out["logit"] = score.cpu().numpy()
        out["probability"] = (logits.softmax(1).gather(1, chosen)[:, 0]).cpu().numpy()
        out["margin"] = (score - others).cpu().numpy()
        out["prediction"] = logits.argmax(1).cpu().numpy()
        return out

    def _run(self, sample: Tensor, rate: Tensor) -> Tensor:
        """Logits of pairs; in halves where a CUDA device has too little memory."""
        parts: list[Tensor] = []
        start = 0
        while start < len(sample):
            stop = min(start + self.rows_at_once, len(sample))
            try:
                x = self.perturber.rows(sample[start:stop], rate[start:stop])
                parts.append(self.logits(self.inputs.for_model(x)))
            except torch.cuda.OutOfMemoryError:
                if self.rows_at_once == 1:
                    raise
                self.rows_at_once = max(1, min(self.rows_at_once, stop - start) // 2)
                torch.cuda.empty_cache()
                message = f"out of CUDA memory: going on with {self.rows_at_once} perturbed samples at a time"
                warnings.warn(message, ResourceWarning, stacklevel=4)
                continue
            start = stop
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _assemble(
    answers: npt.NDArray[np.void],
    rates: Sequence[float],
    codes: Tensor,
    how: Perturbation,
    labels: Tensor,
    target: Tensor,
    identity: dict[str, Json],
    ends: tuple[Row, Row] | None = None,
    halves: Tensor | None = None,
) -> Responses:
    n, count = len(labels), len(rates)
    table = answers.reshape(n, count if ends is not None else count + 2).T
    truth = labels.numpy()

    def row(j: int) -> Row:
        one = {name: np.ascontiguousarray(table[name][j]) for name in ANSWER.names or ()}
        return Row(one["prediction"] == truth, **one)

    inner = table if ends is not None else table[1:-1]
    middle = {name: np.ascontiguousarray(inner[name]) for name in ANSWER.names or ()}
    whole, empty = ends if ends is not None else (row(0), row(count + 1))
    removed = removed_fractions(codes, count)
    return Responses(
        rates=np.array(rates, np.float64),
        removed=1 - removed if how.keep else removed,
        correct=middle["prediction"] == truth,
        whole=whole,
        empty=empty,
        labels=truth,
        scored=target.numpy(),
        perturbation=how,
        identity=identity,
        halves=None if halves is None else halves.numpy(),
        losses=None if halves is None else _mean_losses(inner["losses"], halves.numpy()),
        **middle,
    )


def _mean_losses(losses: npt.NDArray[np.float32], first: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """float64 `[R, 2, T]` of losses `[R, N, T]`: the mean over each half; NaN for one without samples."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.einsum("rnt,n->rt", losses, part, dtype=np.float64) / part.sum() for part in (first, ~first)]
    return np.stack(means, 1)


def removed_fractions(codes: Tensor, count: int) -> npt.NDArray[np.float64]:
    """float64 `[count, N]`: the fraction of each map that codes remove at each rate."""
    sums = rf.code_sums(torch.ones_like(codes), codes, count)
    return np.asarray((sums.cumsum(1) / max(codes[0].numel() if len(codes) else 1, 1)).T.numpy())
