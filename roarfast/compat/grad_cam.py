"""pytorch-grad-cam's `NoisyLinearImputer` and its five ROAD metrics, batched and with one clean forward pass.

Change the import (`from roarfast.compat.grad_cam import ROADCombined`; grad-cam need not be installed), or use
`patch("grad-cam")`. What is equal and what theirs gets wrong: docs/compat/grad-cam.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roarfast._extras import install_advice
from roarfast._torchvision import import_torchvision
from roarfast.compat import _grad_cam_scores as scores
from roarfast.compat import _imputer_class, _slots, _status
from roarfast.compat._options import Options
from roarfast.compat._peers import Peer, digest

if TYPE_CHECKING:
    import torch

PERCENTILES = (10, 20, 30, 40, 50, 60, 70, 80, 90)


class NoisyLinearImputer(_imputer_class.NoisyLinearImputer):
    """`pytorch_grad_cam.metrics.road.NoisyLinearImputer`."""

    __doc__ = _imputer_class.NoisyLinearImputer.__doc__
    peer = "grad-cam"


class RemoveMostRelevantFirst:
    """Removes the pixels of an image that reach a percentile of the map: `percentile` 80 removes 20 %.

    Args:
        percentile: In [0, 100], or `"auto"` for Otsu's threshold, which needs OpenCV.
        imputer: What fills the removed pixels.
    """

    least = False

    def __init__(self, percentile: float | str, imputer: Any) -> None:
        self.percentile = percentile
        self.imputer = imputer

    def __call__(self, input_tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The image `[C, H, W]` with pixels removed by the map `mask` `[H, W]`."""
        kept = scores.kept_pixels(mask, self.percentile, self.least, getattr(self.imputer, "options", Options()))
        return self.imputer(input_tensor, kept)  # type: ignore[no-any-return]


class RemoveLeastRelevantFirst(RemoveMostRelevantFirst):
    """As `RemoveMostRelevantFirst`, of 1 - map."""

    least = True


class PerturbationConfidenceMetric:
    """How much the scores of targets change when pixels are removed.

    Args:
        perturbation: `RemoveMostRelevantFirst(percentile, imputer)` or `RemoveLeastRelevantFirst(...)`.
    """

    def __init__(self, perturbation: Any) -> None:
        self.perturbation = perturbation

    def __call__(
        self,
        input_tensor: torch.Tensor,
        cams: Any,
        targets: Sequence[Callable[[torch.Tensor], torch.Tensor]],
        model: torch.nn.Module,
        return_visualization: bool = False,
        return_diff: bool = True,
    ) -> Any:
        """Scores `[B]`: after removal minus before (or after alone), and the images if wanted.

        Args:
            input_tensor: Images `[B, C, H, W]`.
            cams: Maps `[B, H, W]`, NumPy.
            targets: One callable per image, from the model's output for it to a score.
            model: Any callable from images to outputs.
            return_visualization: Also return the images with pixels removed.
            return_diff: Whether to subtract the scores of the untouched images.
        """
        clean = scores.clean_scores(input_tensor, targets, model) if return_diff else None
        kinds = (RemoveMostRelevantFirst, RemoveLeastRelevantFirst, NoisyLinearImputer)
        if type(self.perturbation) in kinds[:2] and type(self.perturbation.imputer) is NoisyLinearImputer:
            plan = scores.plan_of(self.perturbation, *kinds)
            images = scores.perturb(plan, input_tensor, cams, plan.imputer.options)
            _status.fast("grad-cam", "PerturbationConfidenceMetric")
        else:
            images = scores.perturb_one_by_one(self.perturbation, input_tensor, cams)
        result = scores.of_targets(model, images, targets)
        result = result if clean is None else result - clean
        return (result, images) if return_visualization else result


class ROADMostRelevantFirst(PerturbationConfidenceMetric):
    """ROAD, most relevant pixels first; `percentile` 80 removes 20 %. `options`: those of `NoisyLinearImputer`."""

    def __init__(self, percentile: float | str = 80, **options: Any) -> None:
        super().__init__(RemoveMostRelevantFirst(percentile, NoisyLinearImputer(**options)))


class ROADLeastRelevantFirst(PerturbationConfidenceMetric):
    """ROAD, least relevant pixels first; `percentile` 20 removes 80 %. `options`: those of `NoisyLinearImputer`."""

    def __init__(self, percentile: float | str = 20, **options: Any) -> None:
        super().__init__(RemoveLeastRelevantFirst(percentile, NoisyLinearImputer(**options)))


class ROADMostRelevantFirstAverage:
    """The mean of `ROADMostRelevantFirst` over percentiles, with one clean forward pass."""

    metric: type[PerturbationConfidenceMetric] = ROADMostRelevantFirst

    def __init__(self, percentiles: Sequence[float] = PERCENTILES, **options: Any) -> None:
        self.percentiles = percentiles
        self.metrics = [self.metric(p, **options) for p in percentiles]

    def __call__(self, input_tensor: torch.Tensor, cams: Any, targets: Any, model: Any, *, clean: Any = None) -> Any:
        """Scores `[B]`; `clean`: the scores of the untouched images, if they are known."""
        if clean is None:
            clean = scores.clean_scores(input_tensor, targets, model)
        return scores.mean_over(self.metrics, clean, input_tensor, cams, targets, model)


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

    def __init__(self, percentiles: Sequence[float] = PERCENTILES, **options: Any) -> None:
        self.percentiles = percentiles
        self.morf_averager = ROADMostRelevantFirstAverage(percentiles, **options)
        self.lerf_averager = ROADLeastRelevantFirstAverage(percentiles, **options)

    def __call__(self, input_tensor: torch.Tensor, cams: Any, targets: Any, model: Any) -> Any:
        """Scores `[B]`; higher is better."""
        clean = scores.clean_scores(input_tensor, targets, model)
        lerf = self.lerf_averager(input_tensor, cams, targets, model, clean=clean)
        morf = self.morf_averager(input_tensor, cams, targets, model, clean=clean)
        return (lerf - morf) / 2


# ---- the patch


def _load() -> Mapping[str, Any]:
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


def _targets(replaced: Mapping[str, Any], options: Options) -> list[_slots.Target]:
    imputer = replaced["NoisyLinearImputer"]
    metric, averager = replaced["PerturbationConfidenceMetric"], replaced["AveragerAcrossThresholds"]
    combined = replaced["ROADCombined"]
    kinds = (replaced["RemoveMostRelevantFirst"], replaced["RemoveLeastRelevantFirst"], imputer)
    original_metric = _slots.original(metric, "__call__")
    original_averager = _slots.original(averager, "__call__")
    original_combined = _slots.original(combined, "__call__")
    original_init = _slots.original(imputer, "__init__")

    def init(self: Any, noise: float = 0.01, weighting: Any = None) -> None:
        original_init(self, noise)
        if weighting is not None:
            self.weighting = weighting  # the original drops it, so that it could be neither honoured nor warned of

    def call_metric(
        self: Any,
        input_tensor: Any,
        cams: Any,
        targets: Any,
        model: Any,
        return_visualization: bool = False,
        return_diff: bool = True,
    ) -> Any:
        try:
            plan = scores.plan_of(self.perturbation, *kinds)
            scores.check_inputs(input_tensor, cams)
        except _status.Outside as outside:
            _status.passed_on("grad-cam", "PerturbationConfidenceMetric", str(outside))
            return original_metric(self, input_tensor, cams, targets, model, return_visualization, return_diff)
        clean = scores.clean_scores(input_tensor, targets, model) if return_diff else None
        images = scores.perturb(plan, input_tensor, cams, options)
        _status.fast("grad-cam", "PerturbationConfidenceMetric")
        result = scores.of_targets(model, images, targets)
        result = result if clean is None else result - clean
        return (result, images) if return_visualization else result

    def average(metrics: Sequence[Any], clean: Any, input_tensor: Any, cams: Any, targets: Any, model: Any) -> Any:
        plans = [scores.plan_of(metric.perturbation, *kinds) for metric in metrics]
        return scores.mean_of_plans(plans, [options] * len(plans), clean, input_tensor, cams, targets, model)

    def eligible(metrics: Sequence[Any], input_tensor: Any, cams: Any, model: Any) -> None:
        _status.require(not getattr(model, "training", False), "a model in training mode: forward passes may differ")
        for each in metrics:
            _status.require(type(each).__call__ is metric.__call__, "a metric with a call of its own")
            scores.plan_of(each.perturbation, *kinds)
        scores.check_inputs(input_tensor, cams)

    def call_averager(self: Any, input_tensor: Any, cams: Any, targets: Any, model: Any) -> Any:
        try:
            metrics = [self.imputer(percentile) for percentile in self.percentiles]
            _status.require(all(isinstance(each, metric) for each in metrics), "an average of other metrics")
            eligible(metrics, input_tensor, cams, model)
        except _status.Outside as outside:
            _status.passed_on("grad-cam", "AveragerAcrossThresholds", str(outside))
            return original_averager(self, input_tensor, cams, targets, model)
        clean = scores.clean_scores(input_tensor, targets, model)
        _status.fast("grad-cam", "AveragerAcrossThresholds")
        return average(metrics, clean, input_tensor, cams, targets, model)

    def call_combined(self: Any, input_tensor: Any, cams: Any, targets: Any, model: Any) -> Any:
        try:
            both = []
            for each in (self.lerf_averager, self.morf_averager):
                _status.require(isinstance(each, averager), "an average of other metrics")
                both.append([each.imputer(percentile) for percentile in each.percentiles])
                eligible(both[-1], input_tensor, cams, model)
        except _status.Outside as outside:
            _status.passed_on("grad-cam", "ROADCombined", str(outside))
            return original_combined(self, input_tensor, cams, targets, model)
        clean = scores.clean_scores(input_tensor, targets, model)
        _status.fast("grad-cam", "ROADCombined")
        lerf, morf = (average(metrics, clean, input_tensor, cams, targets, model) for metrics in both)
        return (lerf - morf) / 2

    tested = _imputer_is_tested(imputer)
    return [
        _slots.Target(imputer, "__init__", init),
        _slots.Target(
            imputer,
            "__call__",
            _imputer_class.fast_call(_slots.original(imputer, "__call__"), "grad-cam", options, tested),
        ),
        _slots.Target(metric, "__call__", call_metric),
        _slots.Target(averager, "__call__", call_averager),
        _slots.Target(combined, "__call__", call_combined),
    ]


def _imputer_is_tested(imputer: type) -> bool:
    return digest(imputer) in PEER.digests["NoisyLinearImputer"]


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
