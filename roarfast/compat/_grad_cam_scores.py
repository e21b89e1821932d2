"""What pytorch-grad-cam's ROAD metrics compute: masks by percentile, batches of imputed images, scores of targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from roarfast._types import Numpy
from roarfast.compat import _impute, _imputer_class, _status
from roarfast.compat._options import Options
from roarfast.ops.percentile import percentile as _percentile

if TYPE_CHECKING:
    import torch

Model: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
"""From images to outputs."""

Targets: TypeAlias = "Sequence[Callable[[torch.Tensor], torch.Tensor]]"
"""Per image, from its output to its score."""

Scores: TypeAlias = npt.NDArray[np.floating]
"""`[B]`, float32."""


class Perturbation(Protocol):
    """What is read of a `RemoveMostRelevantFirst` or `RemoveLeastRelevantFirst`, ours or the peer's."""

    @property
    def percentile(self) -> float | str: ...

    @property
    def imputer(self) -> _imputer_class.PeerImputer: ...


class OwnPerturbation(Protocol):
    """What is read of ours."""

    @property
    def percentile(self) -> float | str: ...

    @property
    def least(self) -> bool: ...

    @property
    def imputer(self) -> _imputer_class.NoisyLinearImputer: ...


class OwnMetric(Protocol):
    """A metric of ours."""

    @property
    def perturbation(self) -> OwnPerturbation: ...


class Asked(NamedTuple):
    """What all metrics are called with, in the order and by the names of the original."""

    input_tensor: torch.Tensor
    cams: Numpy
    targets: Targets
    model: Model


class Plan(NamedTuple):
    """What one metric removes and fills with."""

    percentile: float | str
    least: bool
    imputer: _imputer_class.PeerImputer


def plan_of(perturbation: Perturbation, most: type, least: type, imputer: type) -> Plan:
    """The plan of a perturbation object; `Outside` if it is of another kind than these classes."""
    kind = type(perturbation)
    _status.require(kind in (most, least), f"a perturbation of type {kind.__name__}")
    _status.require(type(perturbation.imputer) is imputer, f"an imputer of type {type(perturbation.imputer).__name__}")
    return Plan(perturbation.percentile, kind is least, perturbation.imputer)


def check_inputs(images: torch.Tensor, cams: Numpy) -> None:
    """`Outside` unless these are images `[B, C, H, W]` of torch and maps `[B, H, W]` of NumPy."""
    import torch

    _status.require(isinstance(images, torch.Tensor) and images.ndim == 4, "an input that is no [B, C, H, W] tensor")
    _status.require(images.is_floating_point() and images.numel() > 0, "an input without floats")
    _status.require(bool(torch.isfinite(images).all()), "NaN or infinity in an image")
    _status.require(
        isinstance(cams, np.ndarray) and cams.ndim == 3 and len(cams) >= len(images), "other maps than [B, H, W]"
    )
    _status.require(cams.dtype in (np.float32, np.float64), f"maps of dtype {cams.dtype}")
    check_maps(cams, images)


def check_maps(cams: Numpy, images: torch.Tensor) -> None:
    """`Outside` unless the map of every image has its size and is finite; a list of maps is as good as an array."""
    for cam in (cams[i] for i in range(len(images))):
        _status.require(np.shape(cam) == tuple(images.shape[2:]), "maps of another size than the images")
        _status.require(bool(np.isfinite(cam).all()), "NaN or infinity in a map")


def kept_pixels(cam: torch.Tensor, percentile: float | str, least: bool, options: Options) -> torch.Tensor:
    """Which pixels of one map `[H, W]` stay, as the original's mask: 1 (or 255) = kept, 0 = removed."""
    import torch

    ranked = 1 - cam if least else cam
    if percentile == "auto":
        return _otsu(ranked, options)
    if least and options.fixed:
        # 1 - m in float32 would make one of many small values.
        return (cam > _threshold(cam, 100 - float(percentile))).float()
    # A comparison of torch: it rounds the threshold to the dtype of the map, as the original's does.
    return (ranked < _threshold(ranked, float(percentile))).to(torch.float32)


def _threshold(cam: torch.Tensor, percentile: float) -> float:
    # Equal to np.percentile bit for bit, and several times faster.
    return _percentile(cam.detach().cpu().numpy(), percentile).item()


def _otsu(ranked: torch.Tensor, options: Options) -> torch.Tensor:
    import cv2
    import torch

    levels = (ranked.cpu() * 255).numpy().astype(np.uint8)
    _, binary = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    if options.fixed:
        binary = 255 - binary
    else:
        _status.warn_once(
            "grad-cam",
            'percentile="auto" keeps what it should remove (above Otsu\'s threshold), as the original does; mode="fixed" does not',
        )
    return torch.from_numpy(binary).to(ranked.device)


def perturb(plan: Plan, images: torch.Tensor, cams: Numpy, options: Options) -> torch.Tensor:
    """Images `[B, C, H, W]` with pixels removed by their maps: one solve, then the noise of each image in turn."""
    import torch

    host = images.detach().cpu()
    removed = torch.stack(
        [
            _impute.removed_of(kept_pixels(torch.from_numpy(cams[i]), plan.percentile, plan.least, options))
            for i in range(len(images))
        ]
    )
    weights = _imputer_class.chosen_weights("grad-cam", getattr(plan.imputer, "weighting", None), options)
    return _impute.impute_torch(host, removed, float(plan.imputer.noise), options, weights).to(images.device)


def perturb_one_by_one(
    perturbation: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], images: torch.Tensor, cams: Numpy
) -> torch.Tensor:
    """The same for a perturbation of any kind, a callable of an image and its map."""
    import torch

    parts = [perturbation(image.cpu(), torch.from_numpy(cam)) for image, cam in zip(images, cams)]
    return torch.stack(parts).to(images.device)


def of_targets(model: Model, images: torch.Tensor, targets: Targets) -> Scores:
    """Scores `[B]`, float32."""
    import torch

    with torch.no_grad():
        outputs = model(images)
    return np.asarray([target(output).cpu().numpy() for target, output in zip(targets, outputs)], np.float32)


def clean_scores(asked: Asked) -> Scores:
    """Scores of the untouched images."""
    return of_targets(asked.model, asked.input_tensor, asked.targets)


def of_metric(
    asked: Asked, perturbed: Callable[[], torch.Tensor], return_visualization: bool, return_diff: bool
) -> Scores | tuple[Scores, torch.Tensor]:
    """What one metric returns, given what makes the images with pixels removed."""
    clean = clean_scores(asked) if return_diff else None
    images = perturbed()
    result = of_targets(asked.model, images, asked.targets)
    result = result if clean is None else result - clean
    return (result, images) if return_visualization else result


def mean_of_plans(plans: Sequence[Plan], options: Sequence[Options], clean: Scores, asked: Asked) -> Scores:
    """The mean change of the scores over plans, each with one forward pass."""
    changes = []
    for plan, chosen in zip(plans, options):
        images = perturb(plan, asked.input_tensor, asked.cams, chosen)
        changes.append(of_targets(asked.model, images, asked.targets) - clean)
    return np.mean(np.asarray(changes, np.float32), axis=0)


def mean_over(metrics: Sequence[OwnMetric], clean: Scores, asked: Asked) -> Scores:
    """`mean_of_plans` of our own metrics."""
    plans = [Plan(m.perturbation.percentile, m.perturbation.least, m.perturbation.imputer) for m in metrics]
    with refusal():
        check_maps(asked.cams, asked.input_tensor)
        return mean_of_plans(plans, [m.perturbation.imputer.options for m in metrics], clean, asked)


def refusal() -> _status.refusal:
    """The error of the import swaps."""
    return _status.refusal("input_tensor must be finite images [B, C, H, W] and cams finite floats [B, H, W]")
