"""Metrics of other packages that are whole metrics: their masks, steps and areas, as scores of `roarfast.metrics`.

    metrics.evaluate(model, images, maps, labels=y, metrics=["roarfast.compat.presets:rise_deletion(step=224)"])

Masks and areas are the peers' wherever a map has no ties (theirs fall as a sort happens to leave them; ours by a hash).
Substrates are theirs too: a number, a tensor or a function of the images as the model takes them. docs/compat/presets.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from roarfast._types import Numpy
from roarfast.metrics.batches import WHOLE, Perturber
from roarfast.metrics.engine import make_codes
from roarfast.metrics.model import Logits, choose_device, evaluating, home
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Line, Outcome, Score
from roarfast.ops import _check as check
from roarfast.ops import gaussian_filter, pixel_random, removal_mask

Floats = npt.NDArray[np.float64]
MapsT = TypeVar("MapsT", Numpy, Tensor)
Substrate = float | Tensor | Callable[[Tensor], Tensor]
INDICATORS = ("probability", "logit", "accuracy")
_CODES = 254  # rates that one table of rank codes holds
_BATCH = 64


# ---- steps: how many pixels are replaced at each point of a curve


def rise_counts(pixels: int, step: int) -> list[int]:
    """RISE: `step` pixels at a time, the last time what is left."""
    return [*range(0, pixels, step), pixels]


def torchcam_counts(pixels: int, steps: int) -> list[int]:
    """torch-cam: at most `steps` steps of equal size, rounded up."""
    return rise_counts(pixels, (pixels + steps - 1) // steps)


def xplique_counts(pixels: int, steps: int, share: float = 1.0) -> list[int]:
    """xplique: `steps` steps (-1: one pixel each) up to a share of the pixels, rounded down one by one."""
    most = int(np.floor(pixels * share))
    return [int(n) for n in np.linspace(0, most, (most if steps == -1 else steps) + 1, dtype=np.int32)]


def f_fidelity_counts(pixels: int, percents: Sequence[int], as_published: bool = False) -> list[int]:
    """F-Fidelity: percents of the pixels. The published code removes one percent more than it says."""
    return [min(int(pixels / 100 * (p + as_published)), pixels) for p in percents]


# ---- areas under a curve [points, samples]


def _even(values: Floats, counts: Sequence[int]) -> Floats:
    """Points counted as equally far apart: RISE and xplique, whose last step may be shorter."""
    return (values[:-1] + values[1:]).mean(0) / 2  # type: ignore[no-any-return]


def _by_fraction(values: Floats, counts: Sequence[int]) -> Floats:
    """Over the fraction really replaced: torch-cam."""
    width = np.diff(np.asarray(counts, np.float64))[:, None] / counts[-1]
    return np.asarray(((values[:-1] + values[1:]) / 2 * width).sum(0))


# ---- answers


class _Answers:
    """What the model says to samples of which some pixels are replaced by a substrate."""

    def __init__(self, problem: Problem, maps: Tensor, substrate: Substrate, scored: str, indicator: str) -> None:
        check.one_of("indicator", indicator, INDICATORS)
        check.one_of("scored", scored, ("label", "predicted"))
        self.problem, self.maps, self.substrate = problem, maps, substrate
        self.indicator, inputs = indicator, problem.inputs
        self.device = choose_device(problem.model, inputs.pixels, True, problem.options.get("device"))
        self.logits = Logits(problem.model, problem.labels)
        none = torch.zeros((len(problem), *inputs.map_shape), dtype=torch.uint8)
        self.perturber = Perturber(
            inputs, none, Perturbation(fill="zero"), problem.seed, problem.ids, self.device, home(problem.model)[1]
        )
        self.size = problem.options.get("batch_size") or _BATCH
        self.classes = problem.labels
        if scored == "predicted":
            parts = [self._run(self._whole(s)).argmax(1).cpu() for s in torch.arange(len(problem)).split(self.size)]
            self.classes = torch.cat(parts) if parts else problem.labels

    def at(self, counts: Sequence[int], order: str = "morf", insert: bool = False) -> Floats:
        """float64 `[counts, N]`: with that many pixels replaced, or with all but that many."""
        result = np.empty((len(counts), len(self.problem)))
        for start in range(0, len(counts), _CODES):
            part = counts[start : start + _CODES]
            codes, index = self._codes(part, order)
            pairs = torch.cartesian_prod(torch.arange(len(self.problem)), torch.arange(len(part)))
            for rows in pairs.split(self.size):
                sample, point = rows.unbind(1)
                replaced = codes[sample] <= index[point][:, None, None]
                result[start + point.numpy(), sample.numpy()] = self._answer(sample, replaced, insert)
        return result

    def _codes(self, counts: Sequence[int], order: str) -> tuple[Tensor, Tensor]:
        """Rank codes int16 `[N, H, W]`, and for every count the code up to which pixels are replaced."""
        pixels = self.problem.features
        several = sorted({n for n in counts if n > 0})
        if not several:
            return torch.zeros((len(self.problem), 1, 1), dtype=torch.int16), torch.full((len(counts),), -1)
        # Half a pixel more, so that the product with the number of pixels rounds down to the count.
        rates = [min((n + 0.5) / pixels, 1.0) for n in several]
        codes = make_codes(
            self.problem.inputs, self.maps, rates, Perturbation(order=order), self.problem.seed, self.problem.ids
        )
        return codes.to(torch.int16), torch.tensor([several.index(n) if n else -1 for n in counts])

    def masked(self, sample: Tensor, replaced: Tensor) -> Floats:
        """float64 `[B]`: the samples with pixels replaced where `replaced` `[B, H, W]` says so."""
        return self._answer(sample, replaced, False)

    def _answer(self, sample: Tensor, replaced: Tensor, insert: bool) -> Floats:
        whole = self._whole(sample)
        other = self._substrate(whole, sample)
        where = replaced.to(self.device)[:, None]
        logits = self._run(torch.where(where, whole, other) if insert else torch.where(where, other, whole))
        chosen = self.classes[sample].to(logits.device)[:, None]
        if self.indicator == "accuracy":
            values = (logits.argmax(1) == chosen[:, 0]).double()
        else:
            values = (logits.softmax(1) if self.indicator == "probability" else logits).gather(1, chosen)[:, 0]
        return np.asarray(values.double().cpu().numpy())

    def _whole(self, sample: Tensor) -> Tensor:
        """The samples as the model takes them; each is prepared once."""
        unique, where = torch.unique_consecutive(sample, return_inverse=True)
        return self.perturber.rows(unique, torch.full_like(unique, WHOLE))[where]

    def _substrate(self, whole: Tensor, sample: Tensor) -> Tensor:
        if isinstance(self.substrate, Tensor):
            given = self.substrate.to(whole)
            return given[sample.to(given.device)] if given.ndim == 4 and len(given) > 1 else given
        other = self.substrate(whole) if callable(self.substrate) else torch.full_like(whole, float(self.substrate))
        if tuple(other.shape) != tuple(whole.shape):
            raise ValueError(f"substrate must return images {tuple(whole.shape)}, got {tuple(other.shape)}")
        return other

    def _run(self, x: Tensor) -> Tensor:
        return self.logits(self.problem.inputs.for_model(x))


def _curve(
    problem: Problem,
    maps: Tensor,
    counts: Sequence[int],
    area: Callable[[Floats, Sequence[int]], Floats],
    substrate: Substrate,
    scored: str,
    indicator: str,
    insert: bool,
) -> Outcome:
    if problem.segments is not None:
        raise ValueError("presets of other packages remove single pixels: evaluate them without segments")
    with evaluating(problem.model):
        values = _Answers(problem, maps, substrate, scored, indicator).at(counts, insert=insert)
    shown = "fraction put back" if insert else "fraction replaced"
    x = np.asarray(counts, np.float64) / problem.features
    return Outcome(area(values, counts), curves={"curve": Line(x, values, shown, indicator)})


# ---- RISE


def rise_blur(x: Tensor, size: int = 11, sigma: float = 5.0) -> Tensor:
    """RISE's substrate of insertion: a Gaussian kernel folded into `size` × `size` pixels, zeros beyond the border."""
    point = np.zeros((1, size))
    point[0, size // 2] = 1
    kernel = torch.from_numpy(gaussian_filter(point, (0.0, sigma))[0]).to(x)
    channels = x.shape[1]
    rows = kernel.reshape(1, 1, -1, 1).expand(channels, 1, -1, 1)
    x = torch.nn.functional.conv2d(x, rows, padding=(size // 2, 0), groups=channels)
    return torch.nn.functional.conv2d(x, rows.transpose(2, 3), padding=(0, size // 2), groups=channels)


def _rise(
    problem: Problem, maps: Tensor, *, insert: bool, step: int | None = None, substrate: Substrate | None = None
) -> Outcome:
    size = problem.inputs.map_shape[1] if step is None else check.integer("step", step, 1, 2**31)
    other = substrate if substrate is not None else rise_blur if insert else 0.0
    return _curve(problem, maps, rise_counts(problem.features, size), _even, other, "predicted", "probability", insert)


# ---- torch-cam and xplique


def _torchcam(
    problem: Problem,
    maps: Tensor,
    *,
    insert: bool,
    steps: int = 20,
    baseline: Substrate = 0.0,
    indicator: str = "logit",
    scored: str = "predicted",
) -> Outcome:
    counts = torchcam_counts(problem.features, check.integer("steps", steps, 1, 2**31))
    return _curve(problem, maps, counts, _by_fraction, baseline, scored, indicator, insert)


def _xplique(
    problem: Problem,
    maps: Tensor,
    *,
    insert: bool,
    steps: int = 10,
    max_percentage_perturbed: float = 1.0,
    baseline: Substrate = 0.0,
    indicator: str = "logit",
) -> Outcome:
    share = check.number("max_percentage_perturbed", max_percentage_perturbed, 0, 1)
    counts = xplique_counts(problem.features, check.integer("steps", steps, -1, 2**31), share)
    return _curve(problem, maps, counts, _even, baseline, "label", indicator, insert)


# ---- F-Fidelity

PERCENTS = tuple(range(5, 101, 5))


def _f_fidelity(
    problem: Problem,
    maps: Tensor,
    *,
    order: str,
    percents: Sequence[int] = PERCENTS,
    ratio: float = 0.5,
    samples: int = 50,
    max_ratio: float | None = None,
    as_published: bool = False,
) -> Outcome:
    """Accuracy lost when each of the top pixels goes with probability `ratio`, over `samples` draws; zero fill."""
    share = check.number("ratio", ratio, 0, 1)
    draws = check.integer("samples", samples, 1, 2**20)
    pixels, n = problem.features, len(problem)
    counts = f_fidelity_counts(pixels, percents, as_published)
    with evaluating(problem.model):
        answers = _Answers(problem, maps, 0.0, "label", "accuracy")
        codes, index = answers._codes(counts, order)
        whole = answers.at([0])[0]
        values = np.zeros((len(counts), n))
        shape = (n, *problem.inputs.map_shape)
        for draw in range(draws):
            seed = (problem.seed + 0x9E3779B9 * (draw + 1)) % 2**63
            chance = torch.from_numpy(pixel_random(shape, seed, problem.ids.numpy()))
            for j, count in enumerate(counts):
                # At most max_ratio of all pixels go, so that removal stays what the model was fine-tuned on.
                p = share if max_ratio is None or not count else min(share, max_ratio * pixels / count)
                for sample in torch.arange(n).split(answers.size):
                    gone = (codes[sample] <= index[j]) & (chance[sample] <= p)
                    values[j, sample.numpy()] += answers.masked(sample, gone) / draws
    lost = whole - values
    line = Line(np.asarray(counts, np.float64) / pixels, values, "fraction that may go", "accuracy")
    return Outcome(lost.mean(0), curves={"accuracy": line})


# ---- google-research's ROAR


def google_roar_mask(saliency: MapsT, threshold: float, squared: bool = False, seed: int = 0) -> MapsT:
    """Which values ROAR's first code replaces: the `threshold` percent largest of all values of an image, channels apart.

    Args:
        saliency: `[N, H, W, C]` or `[N, C, H, W]`, NumPy or torch: one value per channel and pixel.
        threshold: Percent of the values, in [0, 100].
        squared: Whether to rank squares, as `use_squared_value` does. Rescaling to [0, 1] changes no order.
        seed: Breaks ties.

    Returns:
        bool, shaped like `saliency`: True = replaced (kept, where the original keeps information).

    Example:
        >>> google_roar_mask(np.arange(12.0).reshape(1, 2, 2, 3), 25).sum()
        np.int64(3)
    """
    check.array("saliency", saliency, ("float16", "bfloat16", "float32", "float64"), 4, "[N, H, W, C]")
    share = check.number("threshold", threshold, 0, 100, "in percent") / 100
    values = saliency.reshape(len(saliency), -1)
    count = int(share * values.shape[1])
    values = values * values if squared else values
    drop = min((count + 0.5) / max(values.shape[1], 1), 1.0) if count else 0.0
    return removal_mask(values, drop, seed=seed, ndim=1).reshape(saliency.shape)


def _both(peer: str, run: Callable[..., Outcome]) -> tuple[Score, Score]:
    """Deletion and insertion of a package."""
    return (
        Score(
            f"{peer} deletion",
            run,
            "lower",
            "order of pixels by how much the class needs them",
            options={"insert": False},
        ),
        Score(f"{peer} insertion", run, "higher", "order of pixels by how much they suffice", options={"insert": True}),
    )


rise_deletion, rise_insertion = _both("RISE", _rise)
torchcam_deletion, torchcam_insertion = _both("torch-cam", _torchcam)
xplique_deletion, xplique_insertion = _both("xplique", _xplique)
f_fidelity_plus = Score(
    "F-Fidelity+",
    _f_fidelity,
    "higher",
    "accuracy lost with part of the most relevant pixels",
    options={"order": "morf"},
)
f_fidelity_minus = Score(
    "F-Fidelity-",
    _f_fidelity,
    "lower",
    "accuracy lost with part of the least relevant pixels",
    options={"order": "lerf"},
)
