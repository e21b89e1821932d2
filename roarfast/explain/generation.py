"""Maps of a whole dataset into a store: resumable, with progress and total variation on the way."""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import roarfast as rf
from roarfast._progress import progress
from roarfast.explain.explainer import Explainer
from roarfast.explain.hashing import Rows, data_hash, model_hash
from roarfast.explain.names import Name
from roarfast.explain.options import Options
from roarfast.explain.postprocess import PAPER, PostProcess
from roarfast.explain.record import Estimator
from roarfast.explain.store import AttributionStore, MapWriter, StoredMaps

if TYPE_CHECKING:
    from roarfast._types import Json

TV_NORMALIZE = "minmax"


def as_input(images: npt.ArrayLike | Tensor) -> Tensor:
    """A batch of images as the float tensor `[N, C, H, W]` that a model takes.

    Float images pass as they are. uint8 images, `[N, C, H, W]` or `[N, H, W, C]` with 1, 3 or 4 channels, go to
    [0, 1]; wrap the model in `Normalized` if it wants more than that.

    Example:
        >>> as_input(np.full((2, 8, 8, 3), 255, np.uint8)).shape
        torch.Size([2, 3, 8, 8])
    """
    x = images if isinstance(images, Tensor) else torch.from_numpy(np.ascontiguousarray(images))
    if x.dtype != torch.uint8:
        return x
    if x.ndim == 4 and x.shape[-1] in (1, 3, 4) and x.shape[1] not in (1, 3, 4):
        x = x.permute(0, 3, 1, 2)
    return x.float() / 255


def identity_of(explainer: Explainer, name: Name, model: str, data: str) -> dict[str, Json]:
    """What the maps of one estimator are made from: what must be equal for stored maps to be used again.

    Model and seed are left out (null) where the estimator does not depend on them.
    """
    record = explainer.plan.records[name.base]
    random = name.ensemble is not None or record.random
    alone = record.of_image is not None
    identity: dict[str, Json] = {
        "estimator": str(name),
        "options": _relevant(name, record, explainer.options),
        "target": None if alone else explainer.target,
        "aggregation": str(explainer.aggregation_of(name)),
        "seed": explainer.seed if random else None,
        "model": None if alone else model,
        "data": data,
    }
    return identity if record.version == 1 else identity | {"version": record.version}


def generate(
    store: AttributionStore,
    explainer: Explainer,
    images: Rows,
    *,
    labels: npt.ArrayLike | None = None,
    index: npt.ArrayLike | None = None,
    postprocess: Sequence[str | PostProcess] = PAPER,
    to_input: Callable[[Any], Tensor] = as_input,
    dtype: npt.DTypeLike = np.float32,
    chunk: int = 256,
    overwrite: bool = False,
    show_progress: bool | None = None,
    data: str | None = None,
    model: str | None = None,
) -> dict[str, StoredMaps]:
    """Computes the maps of every image that are not in the store yet, and opens them.

    Maps already there for the same model, data and settings are used; for others it is a `StoreMismatch`. A run that
    was killed resumes after the last chunk it finished.

    Args:
        store: Where the maps go.
        explainer: What to compute.
        images: `[N, ...]`: an array, a memory map, a tensor, or anything with a length that can be sliced.
        labels: True classes `[N]`, for `target="label"`.
        index: Sample ids `[N]`; 0, 1, 2, … by default.
        postprocess: Post-processings whose total variation is computed on the way.
        to_input: Turns a slice of `images` into what the model takes.
        dtype: float32 or float16.
        chunk: Images per step that a killed run cannot lose.
        overwrite: Replace maps made from something else.
        show_progress: Show a progress bar; None: on a terminal.
        data: Hash of the data, if it is known; otherwise `data_hash` of images, ids and (where used) labels.
        model: Hash of the model, if it is known.

    Returns:
        The stored maps by estimator name.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> images = np.zeros((5, 8, 8, 3), np.uint8)
        >>> stored = generate(AttributionStore("maps"), Explainer(net, ["grad", "rand"]), images)
        >>> stored["grad"][1:3].shape
        (2, 8, 8)
    """
    started = time.monotonic()
    n = len(images)
    ids = np.arange(n) if index is None else np.asarray(index)
    chains = [PostProcess.parse(k) for k in postprocess]
    if explainer.target == "label" and labels is None:
        raise ValueError("labels must be given for target='label'")
    used_labels = np.asarray(labels) if explainer.target == "label" else None
    if data is None:
        data = data_hash(images, ids) if used_labels is None else data_hash(images, ids, used_labels)
    model = model or model_hash(explainer.model)
    example = _checked(to_input(images[:1])) if n else torch.empty(0, 0, 0, 0)
    with contextlib.ExitStack() as stack:
        writers: dict[str, MapWriter] = {}
        for name in explainer.names:
            identity = identity_of(explainer, name, model, data)
            shape = explainer.map_shape(name, example) if n else (0, 0)
            identity.update(shape=[n, *shape], postprocess=[str(k) for k in chains], tv_normalize=TV_NORMALIZE)
            writers[str(name)] = stack.enter_context(store.writer(identity, dtype, chunk, overwrite))
        missing = sorted({c for w in writers.values() for c in w.missing})
        left = sum(stop - start for start, stop in missing)
        with progress("attribution maps", n, show=show_progress if left else False, done=n - left) as job:
            for start, stop in missing:
                wanted = [name for name, w in writers.items() if (start, stop) in w.missing]
                part = explainer.subset(wanted)
                maps = part(
                    to_input(images[start:stop]),
                    ids[start:stop],
                    None if used_labels is None else used_labels[start:stop],
                    out_device="cpu",
                )
                explainer.batch_size = part.batch_size  # it may have been halved
                for text, a in maps.items():
                    writers[text].write(start, *_with_variation(a.float().numpy(), chains))
                job.advance(stop - start)
        extra = {"versions": _versions(), "seconds": time.monotonic() - started}
        for writer in writers.values():
            writer.finish(extra)
    return {str(name): store.open(name, verify=False) for name in explainer.names}


def _with_variation(
    maps: npt.NDArray[np.float32], chains: Sequence[PostProcess]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    columns = []
    for k in chains:
        tv = rf.total_variation(k(maps), normalize=TV_NORMALIZE)
        columns.append(tv if tv.ndim == 1 else tv.mean(1))  # per-channel maps: the mean over channels
    return maps, np.stack(columns, 1) if columns else np.empty((len(maps), 0))


def _checked(example: Tensor) -> Tensor:
    if example.ndim != 4:
        raise ValueError(f"to_input must return images [N, C, H, W], got shape {tuple(example.shape)}")
    return example


_OF_NOISE = ("noise_samples", "noise", "noise_absolute", "input_range", "abs_before_average")


def _relevant(name: Name, record: Estimator, options: Options) -> dict[str, Json]:
    keep = record.options + (() if name.ensemble is None else _OF_NOISE)
    if name.ensemble == "vg":
        keep += ("vg_unbiased",)
    return {key: value for key, value in options.as_dict().items() if key in keep}


def _versions() -> dict[str, str]:
    return {
        "roarfast": rf.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
