"""The command `roarfast score`: scores of a trained model's maps, without a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to the `roarfast` command."""
    app.command("score")(score_command)


def score_command(
    model: Annotated[str, typer.Option(help="A model, or `package.module:function`, as torchvision.models:resnet18.")],
    data: Annotated[str, typer.Option(help="Name or path of a dataset: a folder, a pack, an .npz file.")],
    maps: Annotated[Path, typer.Option(help=".npz of maps by name, .npy, or a folder of stored maps.", exists=True)],
    weights: Annotated[Path | None, typer.Option(help="Its weights: a state dict saved by torch.save.")] = None,
    metrics: Annotated[
        str, typer.Option(help="Scores separated by spaces, as in 'road deletion(fill=zero)'.")
    ] = "road deletion insertion soundness completeness",
    split: Annotated[str, typer.Option(help="Which split of the data.")] = "test",
    size: Annotated[int | None, typer.Option(min=1, help="Side to resize images of a folder to.")] = None,
    images: Annotated[int | None, typer.Option(min=1, help="Only the first so many images and maps.")] = None,
    normalize: Annotated[
        str, typer.Option(help="'imagenet', 'data', 'none', or 'm,m,m/s,s,s'; default: by the model.")
    ] = "auto",
    aggregate: Annotated[str, typer.Option(help="How channels of maps become one value.")] = "mean(abs)",
    baselines: Annotated[str, typer.Option(help="Label-free maps to score beside: random sobel center.")] = "random",
    device: Annotated[str, typer.Option(help="'cpu', 'cuda', …")] = "cpu",
    batch_size: Annotated[int | None, typer.Option(min=1, help="Perturbed images in a batch.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of ties, noise and random masks.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for scores.csv, scores.json, scores.html and scores.png.")
    ] = None,
) -> None:
    """Score attribution maps of a trained model: nothing is trained, a table is printed."""
    from roarfast.data import DataError

    try:
        text = run(
            model, weights, data, maps, metrics.split(), split, size, images, normalize, aggregate, baselines.split(), device,
            batch_size, seed, out,
        )  # fmt: skip
    except (DataError, ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        typer.echo(f"roarfast score: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(text)


def run(
    model: str, weights: Path | None, data: str, maps: Path, metrics: list[str], split: str, size: int | None,
    images: int | None, normalize: str, aggregate: str, baselines: list[str], device: str, batch_size: int | None,
    seed: int, out: Path | None,
) -> str:  # fmt: skip
    """Reads model, data and maps, scores them, writes files; returns the table."""
    from roarfast.data import load
    from roarfast.metrics.evaluation import evaluate
    from roarfast.metrics.record import get_score

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
        network, dataset.images[:count], {name: a[:count] for name, a in named.items()}, labels=dataset.labels[:count],
        metrics=metrics, aggregate=aggregate, baselines=baselines, layout="NHWC", mean=mean, std=std, seed=seed,
        batch_size=batch_size, device=device,
    )  # fmt: skip
    text = f"{model}, {data} ({split}), normalised by {words}\n{scores}"
    if out is not None:
        write(out, scores, text)
        text += f"\nwrote {out}"
    return text


def read_map_files(path: Path) -> dict[str, Any]:
    """Maps by name from an `.npz` or `.npy` file or a folder of stored maps. Nothing is unpickled."""
    import numpy as np

    if path.is_dir():
        from roarfast.explain.store import AttributionStore

        store = AttributionStore(path)
        if not store.names():
            raise ValueError(f"{path} holds no stored maps: pass an .npz of maps by name, or such a folder")
        return {name: store.open(name) for name in store.names()}
    try:
        found = np.load(path, allow_pickle=False)
    except Exception as error:
        raise ValueError(f"maps: {path} cannot be read: {error}") from None
    if isinstance(found, np.ndarray):
        return {path.stem: found}
    with found:
        arrays = {name: found[name] for name in found.files}
    if not arrays or not all(isinstance(a, np.ndarray) for a in arrays.values()):
        raise ValueError(f"maps: {path} cannot be read: it is no .npz of arrays")
    return arrays


def build(model: str, weights: Path | None, classes: int, channels: int) -> Any:
    """A model with its weights; the number of classes is that of the weights."""
    import torch

    from roarfast.train.models import build_model, load_weights

    if weights is None:
        return build_model(model, classes, channels, seed=0)
    if not weights.is_file():
        raise FileNotFoundError(f"weights: {weights} is no file")
    state = torch.load(weights, map_location="cpu", weights_only=True)
    for key in ("model", "state_dict"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    last = [value for value in state.values() if isinstance(value, torch.Tensor) and value.ndim in (1, 2)]
    network = build_model(model, int(last[-1].shape[0]) if last else classes, channels, seed=0)
    if left := load_weights(network, weights):
        raise ValueError(f"weights: {weights} lacks {', '.join(left)} of {model}")
    return network


def normalisation(how: str, model: str, dataset: Any) -> tuple[Any, Any, str]:
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


def write(out: Path, scores: Any, text: str) -> None:
    """The scores as files."""
    import csv
    import io

    from roarfast._files import write_atomic

    out.mkdir(parents=True, exist_ok=True)
    rows = scores.rows()
    table = io.StringIO()
    writer = csv.DictWriter(table, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    write_atomic(out / "scores.csv", table.getvalue())
    pairs = [vars(c) for c in scores.comparisons()]
    write_atomic(
        out / "scores.json", json.dumps({"scores": rows, "comparisons": pairs, "notes": scores.notes()}, indent=2)
    )
    write_atomic(out / "scores.html", f"<!doctype html><meta charset=utf-8><title>scores</title>{scores._repr_html_()}")
    write_atomic(out / "scores.txt", text + "\n")
    picture = io.BytesIO()
    scores.plot().savefig(picture, format="png", dpi=120)
    write_atomic(out / "scores.png", picture.getvalue())
