"""Soundness (Li et al.): the share of attribution that lies on pixels which raised the accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from torch import Tensor

import roarfast as rf
from roarfast.metrics.maps import take_values
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Detail, Line, Outcome, Score, register
from roarfast.metrics.resampling import Statistic
from roarfast.metrics.responses import Responses

Floats = npt.NDArray[np.float64]
LEVELS = (0.2, 0.3, 0.4, 0.5, 0.6)
UNREACHED = ("nan", "highest")
FLAGGED_BY = ("accuracy", "probability", "logit")


@dataclass(frozen=True)
class Convention:
    """How steps are judged.

    Attributes:
        start: Accuracy before the first step: `"empty"` (that of images with everything removed) or `"zero"`.
        epsilon: A step is false if the accuracy rises by less.
        per: What epsilon is per: `"area"` (1.0 is 0.01 for a step of 1 %) or `"step"`, whatever its size.
        strict: Less than epsilon, else less than or equal.
        lag: Whether a step's flag counts from the next step on only.
        warmup: No step is flagged while the accuracy is at most this.
        offset: Added to the attribution shown so far before dividing by it.
    """

    start: str = "empty"
    epsilon: float = 0.0
    per: str = "area"
    strict: bool = False
    lag: bool = False
    warmup: float = -1.0
    offset: float = 0.0


CONVENTIONS = {
    # Definition 4.8: a step is false if the accuracy does not rise, beginning from the empty image.
    "exact": Convention(),
    # Algorithms 1 and 3 as printed.
    "paper": Convention(start="zero", epsilon=0.01, per="step", strict=True),
    # The authors' code: `<=`, one step late, nothing flagged up to an accuracy of 0.04, 1e-6 in the denominator.
    "soco": Convention(start="zero", epsilon=0.01, per="step", lag=True, warmup=0.04, offset=1e-6),
}


@dataclass(frozen=True)
class Soundness:
    """Soundness along the expansion of the most relevant pixels.

    Attributes:
        removed: float64 `[K]`, the rates still removed at each step, descending.
        accuracy: float64 `[K]`.
        flagged: bool `[K]`, steps whose pixels are false; `[K, N]` if each image has flags of its own.
        value: float64 `[K]`, mean over images.
        per_image: float64 `[K, N]`, NaN for images whose maps are 0 everywhere.
        empty: How many images those are.
        saturated: The first step from which no step is unflagged any more; K if the last is not flagged.
    """

    removed: Floats
    accuracy: Floats
    flagged: npt.NDArray[np.bool_]
    value: Floats
    per_image: Floats
    empty: int
    saturated: int

    def at(self, levels: Sequence[float]) -> Floats:
        """Soundness at the first step whose accuracy reaches each level; NaN where none does."""
        for level in levels:
            _check_level("levels", level)
        reached = [np.flatnonzero(self.accuracy >= level) for level in levels]
        return np.array([self.value[steps[0]] if len(steps) else np.nan for steps in reached])


def _check_level(name: str, level: float) -> None:
    if not 0 < level <= 1:
        raise ValueError(f"{name} must be in (0, 1], got {level!r}")


def find_flags(accuracy: Floats, start: Floats | float, width: Floats, how: Convention) -> npt.NDArray[np.bool_]:
    """Which steps are false: accuracies `[..., K]` along the expansion, `start` before it, `width` `[K]` of the steps."""
    first = np.broadcast_to(np.asarray(start, np.float64)[..., None], (*accuracy.shape[:-1], 1))
    gain = np.diff(np.concatenate([first, accuracy], -1), axis=-1)
    limit = how.epsilon * width if how.per == "area" else how.epsilon
    false = gain < limit if how.strict else gain <= limit
    return np.asarray(false & (accuracy > how.warmup))


def soundness_of(
    responses: Responses,
    mass: Floats,
    convention: str | Convention = "exact",
    *,
    smooth: int = 1,
    indicator: str = "accuracy",
) -> Soundness:
    """The bookkeeping of Algorithms 1 and 3, in closed form: accuracies do not depend on the flags.

    Args:
        responses: With order `"lerf"`.
        mass: float64 `[N, R + 1]`: attribution of the pixels of each code, as `roarfast.code_sums` gives it.
        convention: `"exact"`, `"paper"`, `"soco"` or a `Convention`.
        smooth: Steps of a moving mean of the accuracies before flags are set.
        indicator: `"accuracy"`: a step is false, for all images, if the accuracy does not rise; `"probability"` or
            `"logit"`: it is false for an image if that image's does not.

    Example:
        >>> from roarfast.metrics import respond
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> maps, rates = torch.rand(6, 8, 8), (0.25, 0.5, 0.75)
        >>> how = Perturbation(order="lerf")
        >>> answers = respond(net, torch.rand(6, 3, 8, 8), maps, rates, labels=[0, 1, 2, 3, 0, 1], perturbation=how)
        >>> mass = rf.code_sums(maps, rf.rank_codes(maps, rates, order="lerf"), 4).numpy()
        >>> soundness_of(answers, mass).accuracy.shape
        (3,)
    """
    if indicator not in FLAGGED_BY:
        raise ValueError(f"indicator must be one of {', '.join(FLAGGED_BY)}, got {indicator!r}")
    if responses.perturbation.order != "lerf" or responses.perturbation.keep:
        raise ValueError(
            f"soundness needs responses with order='lerf' (least relevant first), got {responses.perturbation.describe()}"
        )
    count, n = responses.correct.shape
    if mass.shape != (n, count + 1):
        raise ValueError(f"mass must be [{n}, {count + 1}], one number per image and code, got shape {mass.shape}")
    empty = float(responses.empty.correct.mean()) if n else 0.0
    accuracy, rates = responses.curve("accuracy"), responses.rates
    if indicator == "accuracy":
        return soundness_along(rates, accuracy, empty, mass, convention, smooth=smooth)
    how = convention_of(convention)
    flags = _flags_of_images(responses, how, indicator, smooth)
    return _assemble(rates, _smooth(accuracy[::-1], smooth), flags, mass, how)


def _flags_of_images(responses: Responses, how: Convention, indicator: str, smooth: int) -> npt.NDArray[np.bool_]:
    """Which steps are false for which image, `[K, N]`."""
    answers = responses.values(indicator)[::-1].T
    along = np.stack([_smooth(row, smooth) for row in answers]) if len(responses) else answers
    start = responses.ends(indicator)[1] if how.start == "empty" else np.zeros(len(responses))
    return find_flags(along, start, step_widths(responses.rates), how).T


def soundness_along(
    rates: Floats,
    accuracy: Floats,
    empty: float,
    mass: Floats,
    convention: str | Convention = "exact",
    *,
    smooth: int = 1,
) -> Soundness:
    """Soundness from accuracies, measured or exact.

    Args:
        rates: float64 `[R]`, ascending: the fraction still removed, least relevant first.
        accuracy: float64 `[R]`, at these rates.
        empty: Accuracy with everything removed.
        mass: float64 `[N, R + 1]`: attribution of the pixels of each code.
        convention: As in `soundness_of`.
        smooth: As in `soundness_of`.

    Example:
        >>> accuracy = np.array([0.9, 0.9, 0.5])  # with 25, 50 and 75 % removed: the last step shown raises nothing
        >>> found = soundness_along(np.array([0.25, 0.5, 0.75]), accuracy, 0.1, np.array([[1.0, 1.0, 2.0, 4.0]]))
        >>> found.value.round(3).tolist()
        [1.0, 1.0, 0.857]
    """
    how = convention_of(convention)
    along = _smooth(np.asarray(accuracy, np.float64)[::-1], smooth)
    flags = find_flags(along, empty if how.start == "empty" else 0.0, step_widths(rates), how)
    return _assemble(rates, along, flags, mass, how)


def _assemble(rates: Floats, along: Floats, flags: npt.NDArray[np.bool_], mass: Floats, how: Convention) -> Soundness:
    n, count = mass.shape[0], len(rates)
    added = mass[:, :0:-1].T  # [K, N]: step k shows the pixels of code R - k
    shown = added.cumsum(0)
    per_image = _shares(added, shown, flags, how)
    known = shown[-1] > 0 if count else np.zeros(n, bool)
    value = per_image[:, known].mean(1) if known.any() else np.full(count, np.nan)
    unflagged = np.flatnonzero(~flags if flags.ndim == 1 else ~flags.all(1))
    return Soundness(
        rates[::-1].copy(),
        along,
        flags,
        value,
        np.where(known, per_image, np.nan),
        int((~known).sum()),
        int(unflagged[-1]) + 1 if len(unflagged) else 0,
    )


def convention_of(convention: str | Convention) -> Convention:
    """A convention by name."""
    if isinstance(convention, Convention):
        found = convention
    elif convention in CONVENTIONS:
        found = CONVENTIONS[convention]
    else:
        raise ValueError(f"convention must be one of {', '.join(CONVENTIONS)}, got {convention!r}")
    if found.start not in ("empty", "zero"):
        raise ValueError(f"start must be 'empty' or 'zero', got {found.start!r}")
    if found.per not in ("area", "step"):
        raise ValueError(f"per must be 'area' or 'step', got {found.per!r}")
    if found.epsilon < 0:
        raise ValueError(f"epsilon must be >= 0, got {found.epsilon!r}")
    return found


def step_widths(rates: Floats) -> Floats:
    """Area shown by each step, along the expansion: `[K]`."""
    return np.asarray(-np.diff(np.concatenate([[1.0], rates[::-1]])))


def _shares(added: Floats, shown: Floats, flags: npt.NDArray[np.bool_], how: Convention) -> Floats:
    false = (added * flags.reshape(len(flags), -1)).cumsum(0)
    if how.lag:
        false = np.concatenate([np.zeros((1, added.shape[1])), false[:-1]])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1 - false / (shown + how.offset))


def _smooth(values: Floats, width: int) -> Floats:
    if width < 1 or width % 2 == 0:
        raise ValueError(f"smooth must be an odd number of steps, got {width!r}")
    if width == 1 or len(values) < width:
        return np.asarray(values)
    padded = np.pad(values, width // 2, mode="edge")
    return np.convolve(padded, np.ones(width) / width, "valid")


def soundness(
    problem: Problem,
    maps: Tensor,
    *,
    step: float = 0.01,
    convention: str = "exact",
    epsilon: float | None = None,
    level: float | None = None,
    levels: Sequence[float] = LEVELS,
    fill: Fill = "auto",
    values: str = "raw",
    smooth: int = 1,
    noise: float = 0.01,
    unreached: str = "nan",
    indicator: str = "accuracy",
) -> Outcome:
    """The share of attribution on pixels that raised the accuracy, at one accuracy (Li et al.; higher is better).

    Pixels are shown from the most relevant on, `step` of the area at a time, the rest imputed. A step that does not
    raise the accuracy is false; soundness is one minus the share of attribution on false steps so far, at the first step
    whose accuracy reaches `level`.

    Known defects: flags are one bit per step for all images, so false attribution that sits at other ranks in every image
    is not seen (soundness 1.0 where the definition gives 0.80 to 0.88); the printed algorithm (`convention="paper"`)
    starts from 0, so its first step is never false, and with its epsilon true features are flagged once the curve is
    flat; epsilon's unit is accuracy per area. Intervals are wide: neighbouring accuracies are compared.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`, >= 0.
        step: Area shown per step, in (0, 0.5].
        convention: `"exact"`, `"paper"` or `"soco"`.
        epsilon: Another one than the convention's, in its unit.
        level: The accuracy at which soundness is taken; default halfway between empty and whole images.
        levels: Accuracies for `details`.
        fill: As in `Perturbation`; `"auto"`: linear imputation for images, the mean otherwise.
        values: `"raw"`, `"positive"` or `"abs"`: what is taken of the maps.
        smooth: Steps of a moving mean of the accuracies.
        noise: Of the imputation.
        unreached: What soundness is where no step's accuracy reaches the level: `"nan"`, or `"highest"`, that of the step
            with the highest accuracy, which a note says.
        indicator: `"accuracy"`: a step is false for all images at once, as the paper has it; `"probability"` or
            `"logit"` of the label: for each image by itself. Sees false attribution at any rank, and is noisy: steps of
            true features by which one image does not gain count as false, too. Levels stay accuracies.
    """
    if level is not None:
        _check_level("level", level)
    if unreached not in UNREACHED:
        raise ValueError(f"unreached must be one of {', '.join(UNREACHED)}, got {unreached!r}")
    if not 0 < step <= 0.5:
        raise ValueError(f"step must be in (0, 0.5], got {step!r}")
    how = convention_of(convention)
    if epsilon is not None:
        if epsilon <= 0:
            raise ValueError(f"epsilon must be > 0, got {epsilon!r}")
        how = replace(how, epsilon=epsilon)
    a = take_values("soundness", maps, values)
    rates = soundness_rates(step, convention)
    perturbation = Perturbation(order="lerf", fill=problem.auto_fill(fill), noise=noise)
    codes = problem.codes(a, rates, perturbation)
    responses = problem.respond(None, rates, perturbation, codes=codes)
    mass = rf.code_sums(a, codes, len(rates) + 1).numpy()
    found = soundness_of(responses, mass, how, smooth=smooth, indicator=indicator)
    n = len(problem)
    ends = (float(responses.empty.correct.mean()), float(responses.whole.correct.mean())) if n else (0.0, 1.0)
    aim = sum(ends) / 2 if level is None else level
    details: dict[str, Detail] = {"level": aim, "saturated at": found.saturated, "maps that are 0": found.empty}
    details |= {f"at {v:g}": float(q) for v, q in zip(levels, found.at(levels))}
    notes = []
    if found.empty:
        notes.append(f"{found.empty} maps are 0 everywhere and have no soundness")
    highest = float(found.accuracy.max()) if n else 0.0
    details["highest accuracy"] = highest
    if n and highest < aim:
        instead = "undefined" if unreached == "nan" else f"taken at its highest, {highest:.3f}"
        notes.append(f"the accuracy never reaches the level {aim:.3f}: soundness is {instead}")
    if n and np.ptp(np.concatenate([[ends[0]], found.accuracy])) == 0:
        every = ": every step is false" if indicator == "accuracy" else ""
        notes.append(f"accuracy does not change with the rate{every}")
    curve = Line(found.accuracy, found.per_image, "accuracy", "soundness", responses, found.value)
    return Outcome(
        statistic=at_level(responses, mass, how, aim, smooth, unreached, indicator),
        per_image=None,
        curves={"soundness": curve},
        details=details,
        notes=tuple(notes),
    )


def soundness_rates(step: float, convention: str = "exact") -> tuple[float, ...]:
    """Rates still removed, ascending: 2 steps to 1 - 2 steps (97 rates for 1 %); soco ends one step earlier."""
    count = round(1 / step)
    first = 3 if convention == "soco" else 2
    rates = tuple(k / count for k in range(first, count - 1))
    if not rates:
        raise ValueError(f"step must be small enough to leave rates between 2 and {count - 2} steps, got {step!r}")
    return rates


def at_level(
    responses: Responses,
    mass: Floats,
    how: Convention,
    level: float,
    smooth: int,
    unreached: str = "nan",
    indicator: str = "accuracy",
) -> Statistic:
    """Soundness at a level as a function of weights `[B, N]` of the images.

    Flags by the accuracy are found anew for every resample; those of single images are theirs.
    """
    correct = responses.values("accuracy")[::-1]  # [K, N]
    added = mass[:, :0:-1].T
    shown = added.cumsum(0)
    known = shown[-1] > 0 if len(shown) else np.zeros(0, bool)
    widths = step_widths(responses.rates)
    own = (
        None
        if indicator == "accuracy"
        else _shares(added, shown, _flags_of_images(responses, how, indicator, smooth), how)
    )

    def statistic(weights: Floats) -> Floats:
        total = np.maximum(weights.sum(1, keepdims=True), 1e-300)  # 0 without images
        accuracy = (weights @ correct.T) / total
        if smooth > 1:
            accuracy = np.stack([_smooth(row, smooth) for row in accuracy])
        reached = accuracy >= level
        step = np.where(reached.any(1), reached.argmax(1), accuracy.argmax(1) if unreached == "highest" else -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            if own is None:
                start = (weights @ responses.empty.of("accuracy")) / total[:, 0] if how.start == "empty" else 0.0
                flags = find_flags(accuracy, np.broadcast_to(start, (len(weights),)), widths, how).astype(np.float64)
                steps = np.arange(flags.shape[1])
                counted = flags * (steps < (step + (0 if how.lag else 1))[:, None])
                share = 1 - counted @ added / (shown[step] + how.offset)  # [B, N]
            else:
                share = own[step]
            value = (weights * np.where(known, share, 0.0)).sum(1) / (weights * known).sum(1)
        return np.asarray(np.where(step >= 0, value, np.nan))

    return statistic


register(Score("soundness", soundness, "higher", "attribution lies only on pixels that raise the accuracy"))
