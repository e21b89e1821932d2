"""What `roarfast score` does: model, data and maps from files, scores to files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn

from roarfast._files import write_atomic
from roarfast._types import Numpy
from roarfast.data import Dataset, load
from roarfast.explain.store import AttributionStore, StoredMaps
from roarfast.metrics.evaluation import evaluate
from roarfast.metrics.inputs import PerChannel
from roarfast.metrics.record import get_score
from roarfast.metrics.table import Scores
from roarfast.train.models import build_model, load_weights

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def run(
    model: str,
    weights: Path | None,
    data: str,
    maps: Path,
    metrics: list[str],
    split: str,
    size: int | None,
    images: int | None,
    normalize: str,
    aggregate: str,
    baselines: list[str],
    device: str,
    batch_size: int | None,
    seed: int,
    out: Path | None,
) -> str:
    """Reads model, data and maps, scores them, writes files; returns the table."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device {device!r} was asked for, but torch sees no CUDA device here")
    for name in metrics:
        get_score(name)  # a wrong name is found before minutes of reading
    source = Path(data)
    dataset = load(source if source.exists() else data, split, size=size)
    named = read_map_files(maps)
    count = images or len(dataset)
    for name, a in named.items():
        if images is None and len(a) != len(dataset):
            raise ValueError(
                f"{maps} has {len(a)} maps of {name!r}, the data has {len(dataset)} images: --images takes the first of both"
            )
    network = build(model, weights, dataset.num_classes, dataset.image_shape[2]).to(device)
    mean, std, words = normalisation(normalize, model, dataset)
    scores = evaluate(
        network,
        dataset.images[:count],
        {name: a[:count] for name, a in named.items()},
        labels=dataset.labels[:count],
        metrics=metrics,
        aggregate=aggregate,
        baselines=baselines,
        layout="NHWC",
        mean=mean,
        std=std,
        seed=seed,
        batch_size=batch_size,
        device=device,
    )
    text = f"{model}, {data} ({split}), normalised by {words}\n{scores}"
    if out is not None:
        write(out, scores, text)
        text += f"\nwrote {out}"
    return text


def read_map_files(path: Path) -> dict[str, Numpy | StoredMaps]:
    """Maps by name from an `.npz` or `.npy` file or a folder of stored maps. Nothing is unpickled."""
    if path.is_dir():
        store = AttributionStore(path)
        if not store.names():
            raise ValueError(f"{path} holds no stored maps: pass an .npz of maps by name, or such a folder")
        return {name: store.open(name) for name in store.names()}
    try:
        found = np.load(path, allow_pickle=False)
    except Exception as error:
        # NumPy takes whatever is no array for a pickle, and advises to allow that.
        why = "it holds something else than arrays" if "allow_pickle" in str(error) else error
        raise ValueError(f"maps: {path} cannot be read: {why}") from None
    if isinstance(found, np.ndarray):
        return {path.stem: found}
    with found:
        arrays = {name: found[name] for name in found.files}
    if not arrays or not all(isinstance(a, np.ndarray) for a in arrays.values()):
        raise ValueError(f"maps: {path} cannot be read: it is no .npz of arrays")
    return arrays


def build(model: str, weights: Path | None, classes: int, channels: int) -> nn.Module:
    """A model with its weights; the number of classes is that of the weights."""
    if weights is None:
        return build_model(model, classes, channels, seed=0)
    if not weights.is_file():
        raise FileNotFoundError(f"weights: {weights} is no file")
    try:
        state = torch.load(weights, map_location="cpu", weights_only=True)
    except Exception:  # of many kinds; load_weights says what is wrong with the file
        state = {}
    for key in ("model", "state_dict"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    values = state.values() if isinstance(state, dict) else ()
    last = [value for value in values if isinstance(value, torch.Tensor) and value.ndim in (1, 2)]
    network = build_model(model, int(last[-1].shape[0]) if last else classes, channels, seed=0)
    if left := load_weights(network, weights):
        raise ValueError(f"weights: {weights} lacks {', '.join(left)} of {model}")
    return network


def normalisation(how: str, model: str, dataset: Dataset) -> tuple[PerChannel, PerChannel, str]:
    """Mean and standard deviation of the model's input, and words for them."""
    if how == "auto":
        how = "imagenet" if model.startswith("torchvision.models") else "data"
    if how == "imagenet":
        return *IMAGENET, "ImageNet's statistics"
    if how == "data":
        return dataset.mean, dataset.std, "the data's statistics"
    if how == "none":
        return None, None, "nothing"
    try:
        mean, std = (tuple(float(v) for v in part.split(",")) for part in how.split("/"))
    except ValueError:
        raise ValueError(f"normalize must be 'imagenet', 'data', 'none' or 'm,m,m/s,s,s', got {how!r}") from None
    return mean, std, how


def _finite(row: Mapping[str, object]) -> dict[str, object]:
    """A row for JSON, which has no NaN: what could not be measured is null."""
    return {key: None if isinstance(v, float) and not np.isfinite(v) else v for key, v in row.items()}


def write(out: Path, scores: Scores, text: str) -> None:
    """The scores as files."""
    out.mkdir(parents=True, exist_ok=True)
    rows = scores.rows()
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(out / "scores.csv", table.getvalue())
    found = {
        "scores": [_finite(row) for row in rows],
        "comparisons": [_finite(vars(c)) for c in scores.comparisons()],
        "notes": scores.notes(),
    }
    write_atomic(out / "scores.json", json.dumps(found, indent=2, allow_nan=False))
    write_atomic(out / "scores.html", f"<!doctype html><meta charset=utf-8><title>scores</title>{scores._repr_html_()}")
    write_atomic(out / "scores.txt", text + "\n")
    picture = io.BytesIO()
    scores.plot().savefig(picture, format="png", dpi=120)
    write_atomic(out / "scores.png", picture.getvalue())
