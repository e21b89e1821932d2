"""pytorch-grad-cam's `NoisyLinearImputer` and its five ROAD metrics, batched and with one clean forward pass.

Change the import (`from roarfast.compat.grad_cam import ROADCombined`; grad-cam need not be installed), or use
`patch("grad-cam")`. What is equal and what theirs gets wrong: docs/compat/grad-cam.md.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload

from roarfast._extras import install_advice
from roarfast._torchvision import import_torchvision
from roarfast._types import Numpy
from roarfast.compat import _grad_cam_scores as scores
from roarfast.compat import _impute, _imputer_class, _slots, _status
from roarfast.compat._options import Options
from roarfast.compat._peers import Peer, Replaced, digest

if TYPE_CHECKING:
    from typing import Unpack

    import torch

    from roarfast.compat._imputer_class import ImputerOptions

PERCENTILES = (10, 20, 30, 40, 50, 60, 70, 80, 90)

Fill: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
"""Of an image `[C, H, W]` and `[H, W]`: of an imputer the pixels that stay, of a perturbation the map."""

ImputerT = TypeVar("ImputerT", bound=Fill)


class NoisyLinearImputer(_imputer_class.NoisyLinearImputer):
    """`pytorch_grad_cam.metrics.road.NoisyLinearImputer`."""

    __doc__ = _imputer_class.NoisyLinearImputer.__doc__
    peer = "grad-cam"


class RemoveMostRelevantFirst(Generic[ImputerT]):
    """Removes the pixels of an image that reach a percentile of the map: `percentile` 80 removes 20 %.

    Args:
        percentile: In [0, 100], or `"auto"` for Otsu's threshold, which needs OpenCV.
        imputer: What fills the removed pixels.
    """

    least = False

    def __init__(self, percentile: float | str, imputer: ImputerT) -> None:
        self.percentile = percentile
        self.imputer = imputer

    def __call__(self, input_tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The image `[C, H, W]` with pixels removed by the map `mask` `[H, W]`."""
        kept = scores.kept_pixels(mask, self.percentile, self.least, getattr(self.imputer, "options", Options()))
        return self.imputer(input_tensor, kept)


class RemoveLeastRelevantFirst(RemoveMostRelevantFirst[ImputerT]):
    """As `RemoveMostRelevantFirst`, of 1 - map."""

    least = True


class PerturbationConfidenceMetric:
    """How much the scores of targets change when pixels are removed.

    Args:
        perturbation: `RemoveMostRelevantFirst(percentile, imputer)` or `RemoveLeastRelevantFirst(...)`.
    """

    def __init__(self, perturbation: Fill) -> None:
        self.perturbation = perturbation

    @overload
    def __call__(
        self,
        input_tensor: torch.Tensor,
        cams: Numpy,
        targets: scores.Targets,
        model: scores.Model,
        return_visualization: Literal[False] = ...,
        return_diff: bool = ...,
    ) -> scores.Scores: ...

    @overload
    def __call__(
        self,
        input_tensor: torch.Tensor,
        cams: Numpy,
        targets: scores.Targets,
        model: scores.Model,
        return_visualization: bool,
        return_diff: bool = ...,
    ) -> scores.Scores | tuple[scores.Scores, torch.Tensor]: ...

    def __call__(
        self,
        input_tensor: torch.Tensor,
        cams: Numpy,
        targets: scores.Targets,
        model: scores.Model,
        return_visualization: bool = False,
        return_diff: bool = True,
    ) -> scores.Scores | tuple[scores.Scores, torch.Tensor]:
        """Scores `[B]`: after removal minus before (or after alone), and the images if wanted.

        Args:
            input_tensor: Images `[B, C, H, W]`.
            cams: Maps `[B, H, W]`, NumPy.
            targets: One callable per image, from the model's output for it to a score.
            model: Any callable from images to outputs.
            return_visualization: Also return the images with pixels removed.
            return_diff: Whether to subtract the scores of the untouched images.
        """
        asked = scores.Asked(input_tensor, cams, targets, model)
        kinds = (RemoveMostRelevantFirst, RemoveLeastRelevantFirst, NoisyLinearImputer)
        perturbation = self.perturbation
        if (
            isinstance(perturbation, RemoveMostRelevantFirst)
            and type(perturbation) in kinds[:2]
            and type(perturbation.imputer) is NoisyLinearImputer
        ):
            plan, options = scores.plan_of(perturbation, *kinds), perturbation.imputer.options
            with scores.refusal():
                scores.check_maps(cams, input_tensor)
                images = functools.partial(scores.perturb, plan, input_tensor, cams, options)
                result = scores.of_metric(asked, images, return_visualization, return_diff)
            _status.fast("grad-cam", "PerturbationConfidenceMetric")
            return result
        images = functools.partial(scores.perturb_one_by_one, perturbation, input_tensor, cams)
        return scores.of_metric(asked, images, return_visualization, return_diff)


class ROADMostRelevantFirst(PerturbationConfidenceMetric):
    """ROAD, most relevant pixels first; `percentile` 80 removes 20 %. `options`: those of `NoisyLinearImputer`."""

    perturbation: RemoveMostRelevantFirst[NoisyLinearImputer]

    def __init__(self, percentile: float | str = 80, **options: Unpack[ImputerOptions]) -> None:
        super().__init__(RemoveMostRelevantFirst(percentile, NoisyLinearImputer(**options)))


class ROADLeastRelevantFirst(PerturbationConfidenceMetric):
    """ROAD, least relevant pixels first; `percentile` 20 removes 80 %. `options`: those of `NoisyLinearImputer`."""

    perturbation: RemoveLeastRelevantFirst[NoisyLinearImputer]

    def __init__(self, percentile: float | str = 20, **options: Unpack[ImputerOptions]) -> None:
        super().__init__(RemoveLeastRelevantFirst(percentile, NoisyLinearImputer(**options)))


class ROADMostRelevantFirstAverage:
    """The mean of `ROADMostRelevantFirst` over percentiles, with one clean forward pass."""

    metric: type[ROADMostRelevantFirst | ROADLeastRelevantFirst] = ROADMostRelevantFirst

    def __init__(self, percentiles: Sequence[float] = PERCENTILES, **options: Unpack[ImputerOptions]) -> None:
        self.percentiles = percentiles
        self.metrics = [self.metric(p, **options) for p in percentiles]

    def __call__(
        self,
        input_tensor: torch.Tensor,
        cams: Numpy,
        targets: scores.Targets,
        model: scores.Model,
        *,
        clean: scores.Scores | None = None,
    ) -> scores.Scores:
        """Scores `[B]`; `clean`: the scores of the untouched images, if they are known."""
        asked = scores.Asked(input_tensor, cams, targets, model)
        return scores.mean_over(self.metrics, scores.clean_scores(asked) if clean is None else clean, asked)


class ROADLeastRelevantFirstAverage(ROADMostRelevantFirstAverage):
    """The mean of `ROADLeastRelevantFirst` over percentiles, with one clean forward pass."""

    metric = ROADLeastRelevantFirst


class ROADCombined:
    """(least relevant first - most relevant first) / 2, averaged over percentiles: 19 forward passes, not 36.

    Example:
        >>> import numpy as np, torch
        >>> from roarfast.compat.grad_cam import ROADCombined
        >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 5)).eval()
        >>> cams = np.random.rand(2, 8, 8).astype(np.float32)
        >>> ROADCombined()(torch.rand(2, 3, 8, 8), cams, [lambda out: out[0]] * 2, model).shape
        (2,)
    """

    def __init__(self, percentiles: Sequence[float] = PERCENTILES, **options: Unpack[ImputerOptions]) -> None:
        self.percentiles = percentiles
        self.morf_averager = ROADMostRelevantFirstAverage(percentiles, **options)
        self.lerf_averager = ROADLeastRelevantFirstAverage(percentiles, **options)

    def __call__(
        self, input_tensor: torch.Tensor, cams: Numpy, targets: scores.Targets, model: scores.Model
    ) -> scores.Scores:
        """Scores `[B]`; higher is better."""
        clean = scores.clean_scores(scores.Asked(input_tensor, cams, targets, model))
        lerf = self.lerf_averager(input_tensor, cams, targets, model, clean=clean)
        morf = self.morf_averager(input_tensor, cams, targets, model, clean=clean)
        return (lerf - morf) / 2


# ---- the patch


class _Metric(Protocol):
    """What is read of the peer's `PerturbationConfidenceMetric`."""

    perturbation: scores.Perturbation


class _Averager(Protocol):
    """What is read of the peer's `AveragerAcrossThresholds`; its `imputer` makes metrics."""

    imputer: Callable[[float], _Metric]
    percentiles: Sequence[float]


class _Combined(Protocol):
    """What is read of the peer's `ROADCombined`."""

    lerf_averager: _Averager
    morf_averager: _Averager


def _load() -> Replaced:
    try:
        import_torchvision()  # grad-cam imports it, which fails beside a torch that it was not built for
        road = importlib.import_module("pytorch_grad_cam.metrics.road")
        confidence = importlib.import_module("pytorch_grad_cam.metrics.perturbation_confidence")
    except ModuleNotFoundError as error:
        advice = install_advice("pytorch_grad_cam")
        raise ModuleNotFoundError(f"pytorch-grad-cam cannot be imported ({error}); {advice}") from None
    return {
        "NoisyLinearImputer": road.NoisyLinearImputer,
        "ROADCombined": road.ROADCombined,
        "PerturbationConfidenceMetric": confidence.PerturbationConfidenceMetric,
        "RemoveMostRelevantFirst": confidence.RemoveMostRelevantFirst,
        "RemoveLeastRelevantFirst": confidence.RemoveLeastRelevantFirst,
        "AveragerAcrossThresholds": confidence.AveragerAcrossThresholds,
    }


def _targets(replaced: Replaced, options: Options) -> list[_slots.Target]:
    imputer = replaced["NoisyLinearImputer"]
    metric, averager = replaced["PerturbationConfidenceMetric"], replaced["AveragerAcrossThresholds"]
    combined = replaced["ROADCombined"]
    kinds = (replaced["RemoveMostRelevantFirst"], replaced["RemoveLeastRelevantFirst"], imputer)
    original_metric = _slots.original(metric, "__call__")
    original_averager = _slots.original(averager, "__call__")
    original_combined = _slots.original(combined, "__call__")
    original_init = _slots.original(imputer, "__init__")
    tested = digest(imputer) in PEER.digests["NoisyLinearImputer"]
    trial = _imputer_class.Trial(_slots.original(imputer, "__call__"), options, tested)

    def init(
        self: _imputer_class.WeightedImputer, noise: float = 0.01, weighting: _impute.Weighting | None = None
    ) -> None:
        original_init(self, noise)
        if weighting is not None:
            self.weighting = weighting  # the original drops it, so that it could be neither honoured nor warned of

    def plan_of(of: _Metric) -> scores.Plan:
        plan = scores.plan_of(of.perturbation, *kinds)
        trial.require(plan.imputer)
        return plan

    def call_metric(
        self: _Metric,
        input_tensor: torch.Tensor,
        cams: Numpy,
        targets: scores.Targets,
        model: scores.Model,
        return_visualization: bool = False,
        return_diff: bool = True,
    ) -> scores.Scores | tuple[scores.Scores, torch.Tensor]:
        asked = scores.Asked(input_tensor, cams, targets, model)
        try:
            scores.check_inputs(input_tensor, cams)
            plan = plan_of(self)
        except _status.Outside as outside:
            _status.passed_on("grad-cam", "PerturbationConfidenceMetric", str(outside))
            return original_metric(self, *asked, return_visualization, return_diff)
        images = functools.partial(scores.perturb, plan, input_tensor, cams, options)
        result = scores.of_metric(asked, images, return_visualization, return_diff)
        _status.fast("grad-cam", "PerturbationConfidenceMetric")
        return result

    def plans_of(metrics: Sequence[_Metric], asked: scores.Asked) -> list[scores.Plan]:
        training = getattr(asked.model, "training", False)
        _status.require(not training, "a model in training mode: forward passes may differ")
        for each in metrics:
            _status.require(isinstance(each, metric), "an average of other metrics")
            _status.require(type(each).__call__ is metric.__call__, "a metric with a call of its own")
        scores.check_inputs(asked.input_tensor, asked.cams)
        return [plan_of(each) for each in metrics]

    def average(plans: Sequence[scores.Plan], clean: scores.Scores, asked: scores.Asked) -> scores.Scores:
        return scores.mean_of_plans(plans, [options] * len(plans), clean, asked)

    # The four arguments, by position or by name, as the original takes them.
    def call_averager(self: _Averager, *args: Any, **kwargs: Any) -> scores.Scores:
        asked = scores.Asked(*args, **kwargs)
        try:
            plans = plans_of([self.imputer(percentile) for percentile in self.percentiles], asked)
        except _status.Outside as outside:
            _status.passed_on("grad-cam", "AveragerAcrossThresholds", str(outside))
            return original_averager(self, *asked)
        _status.fast("grad-cam", "AveragerAcrossThresholds")
        return average(plans, scores.clean_scores(asked), asked)

    def call_combined(self: _Combined, *args: Any, **kwargs: Any) -> scores.Scores:
        asked = scores.Asked(*args, **kwargs)
        try:
            both = []
            for each in (self.lerf_averager, self.morf_averager):
                _status.require(isinstance(each, averager), "an average of other metrics")
                both.append(plans_of([each.imputer(percentile) for percentile in each.percentiles], asked))
        except _status.Outside as outside:
            _status.passed_on("grad-cam", "ROADCombined", str(outside))
            return original_combined(self, *asked)
        clean = scores.clean_scores(asked)
        _status.fast("grad-cam", "ROADCombined")
        lerf, morf = (average(plans, clean, asked) for plans in both)
        return (lerf - morf) / 2

    return [
        _slots.Target(imputer, "__init__", init),
        _slots.Target(imputer, "__call__", _imputer_class.fast_call(trial, "grad-cam", options)),
        _slots.Target(metric, "__call__", call_metric),
        _slots.Target(averager, "__call__", call_averager),
        _slots.Target(combined, "__call__", call_combined),
    ]


PEER = Peer(
    "grad-cam",
    "grad-cam",
    ("1.5.7",),
    _load,
    _targets,
    {
        "NoisyLinearImputer": ("59b8fc239d76bf87",),
        "ROADCombined": ("9736250410ea478e",),
        "PerturbationConfidenceMetric": ("e86ae030574f57a3",),
        "RemoveMostRelevantFirst": ("7c25b5d83d0368a4",),
        "RemoveLeastRelevantFirst": ("28e23287bbf408b7",),
        "AveragerAcrossThresholds": ("a263c6d58d98c68b",),
    },
)
