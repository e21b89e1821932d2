"""The command `roarfast score`: scores of a trained model's maps, without a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roarfast._objects import make_importable
from roarfast.data.dataset import DataError


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
    from roarfast.metrics import score_files  # torch: `--help` need not wait for it

    make_importable(Path.cwd())  # `--model my_file:function`, a file beside the images

    try:
        text = score_files.run(
            model,
            weights,
            data,
            maps,
            metrics.split(),
            split,
            size,
            images,
            normalize,
            aggregate,
            baselines.split(),
            device,
            batch_size,
            seed,
            out,
        )
    except (DataError, ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        typer.echo(f"roarfast score: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(text)
