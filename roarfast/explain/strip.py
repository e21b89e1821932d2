"""The picture strip: images, the map of each estimator, and each post-processing of it, as one PNG.

`python -m roarfast.explain.strip --help` shows the command.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from roarfast._files import write_atomic
from roarfast.data import Dataset, load
from roarfast.explain.explainer import Explainer
from roarfast.explain.generation import as_input
from roarfast.explain.model_state import Normalized, frozen
from roarfast.explain.names import PAPER, parse_all
from roarfast.explain.options import Options
from roarfast.explain.postprocess import PAPER as PAPER_POSTPROCESS
from roarfast.explain.postprocess import PostProcess
from roarfast.train import build_model, get_recipe, train

_CELL_INCHES = 1.05
_LABEL_INCHES = 0.95
_SATURATED_PERCENTILE = 99.0  # one hot pixel would leave the rest of a squared map black


def picture_strip(
    path: str | os.PathLike[str],
    explainer: Explainer,
    images: npt.NDArray[np.uint8],
    *,
    index: npt.ArrayLike | None = None,
    labels: npt.ArrayLike | None = None,
    captions: Sequence[str] = (),
    postprocess: Sequence[str | PostProcess] = PAPER_POSTPROCESS,
) -> Path:
    """Draws maps beside their images.

    For each image there is a row per post-processing; the columns are the image and the estimators. Each map is
    scaled to its own range (the top 1 % is white).

    Args:
        path: The PNG to write.
        explainer: Computes the maps; its model takes images in [0, 1] (see `Normalized`).
        images: uint8 `[N, H, W, C]`, C = 1 or 3.
        index: Sample ids `[N]`, which key noise and random maps.
        labels: Classes `[N]`, for `target="label"`.
        captions: A line above each image.
        postprocess: The rows.

    Returns:
        The path.

    Example:
        >>> from roarfast.data import load
        >>> net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))
        >>> images = load("shapes", "test", n=2).images
        >>> picture_strip("strip.png", Explainer(net, ["grad", "sobel"]), images, captions=("one", "two")).name
        'strip.png'
    """
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[-1] not in (1, 3) or not len(images):
        raise ValueError(f"images must be uint8 [N, H, W, 1 or 3], got {images.dtype} of shape {images.shape}")
    chains = [PostProcess.parse(k) for k in postprocess]
    maps = {name: a.float().numpy() for name, a in explainer(as_input(images), index, labels, out_device="cpu").items()}
    cells = [[_map_picture(k(a[i])) for a in maps.values()] for i in range(len(images)) for k in chains]
    return _draw(Path(path), images, cells, list(maps), [str(k) for k in chains], captions)


def _map_picture(a: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    low, high = float(a.min()), float(np.percentile(a, _SATURATED_PERCENTILE))
    return np.clip((a - low) / (high - low if high > low else 1.0), 0, 1)  # type: ignore[no-any-return]


def _draw(
    path: Path,
    images: npt.NDArray[np.uint8],
    cells: list[list[npt.NDArray[np.float32]]],
    columns: list[str],
    rows: list[str],
    captions: Sequence[str],
) -> Path:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n_rows, n_columns = len(cells), len(columns) + 1
    figure = Figure(figsize=(n_columns * _CELL_INCHES + _LABEL_INCHES, n_rows * _CELL_INCHES + 0.4), dpi=120)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(
        n_rows,
        n_columns,
        wspace=0.04,
        hspace=0.04,
        left=_LABEL_INCHES / figure.get_figwidth(),
        right=0.995,
        bottom=0.01,
        top=1 - 0.3 / figure.get_figheight(),
    )
    for r, cell_row in enumerate(cells):
        image, k = divmod(r, len(rows))
        for c in range(n_columns):
            axes = figure.add_subplot(grid[r, c])
            axes.set_xticks([])
            axes.set_yticks([])
            for side in axes.spines.values():
                side.set_visible(False)
            if c > 0:
                axes.imshow(cell_row[c - 1], cmap="inferno", vmin=0, vmax=1, interpolation="nearest")
            elif k == 0:
                axes.imshow(images[image].squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            elif k == 1 and image < len(captions):
                axes.text(0.5, 0.95, captions[image], ha="center", va="top", fontsize=7)
            if c == 0:
                axes.set_ylabel(rows[k], fontsize=8, rotation=0, ha="right", va="center")
            if r == 0:
                axes.set_title(columns[c - 1] if c else "image", fontsize=9, pad=3)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    figure.savefig(content, format="png")
    write_atomic(path, content.getvalue())
    return path


def run(
    out: str | os.PathLike[str] = "strip.png",
    data: str = "shapes",
    images: Sequence[int] = (0, 1, 2),
    model: str = "convnet",
    weights: str | Path | None = None,
    estimators: Sequence[str] = PAPER,
    postprocess: Sequence[str] = PAPER_POSTPROCESS,
    *,
    split: str = "test",
    epochs: int = 12,
    train_images: int = 2500,
    paper_conventions: bool = False,
    seed: int = 0,
) -> Path:
    """Draws a strip for images of a dataset; the command line is in `roarfast.explain.cli`.

    Without `weights`, the model is first trained on the training images for a few epochs.
    """
    chosen = load(data, split)
    bad = [i for i in images if not 0 <= i < len(chosen)]
    if bad or not images:
        raise ValueError(f"images must be numbers in [0, {len(chosen) - 1}], got {list(images)}")
    parse_all(estimators)  # an error in a name now, not after the training
    shape, classes = chosen.image_shape, chosen.num_classes
    if weights is not None:
        mean, std = chosen.mean, chosen.std
        net: nn.Module = build_model(model, classes, shape[2], weights=weights)
    else:
        net, mean, std = _train(data, chosen, model, epochs, train_images, seed)
    options = Options.paper() if paper_conventions else Options()
    explainer = Explainer(Normalized(net, mean, std), estimators, options=options, seed=seed)
    print(explainer.plan.describe())
    index = np.asarray(images)
    pictures, labels = chosen.images[index], chosen.labels[index]
    predicted = _predict(explainer, pictures)
    captions = [
        f"{chosen.class_names[label]}\npredicted:\n{chosen.class_names[p]}" for label, p in zip(labels, predicted)
    ]
    return picture_strip(out, explainer, pictures, index=index, captions=captions, postprocess=postprocess)


def _train(
    data: str, test: Dataset, model: str, epochs: int, count: int, seed: int
) -> tuple[nn.Module, tuple[float, ...], tuple[float, ...]]:
    training = load(data, "train", n=count)
    net = build_model(model, training.num_classes, training.image_shape[2], seed=seed)
    recipe = get_recipe("quick", model, epochs=epochs, batch_size=50, lr=0.03)  # few images, so many small steps
    result = train(net, training, test, recipe, seed=seed, label=f"{model} on {data}")
    return result.model, training.mean, training.std


def _predict(explainer: Explainer, pictures: npt.NDArray[np.uint8]) -> list[int]:
    with frozen(explainer.model), torch.no_grad():
        return [int(c) for c in explainer.model(as_input(pictures)).argmax(1)]
