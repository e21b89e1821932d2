"""The command `strip`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roarfast.explain.names import PAPER
from roarfast.explain.postprocess import PAPER as PAPER_POSTPROCESS


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to the `roarfast` command."""
    app.command("strip")(strip_command)


def strip_command(
    out: Annotated[Path, typer.Option(help="The PNG to write.")] = Path("strip.png"),
    data: Annotated[str, typer.Option(help="Name or path of a dataset, as `roarfast data` takes them.")] = "shapes",
    split: Annotated[str, typer.Option(help="Where the pictures are from.")] = "test",
    images: Annotated[str, typer.Option(help="Numbers of the images, separated by commas.")] = "0,1,2",
    model: Annotated[str, typer.Option(help="A model, or `package.module:function`.")] = "convnet",
    weights: Annotated[Path | None, typer.Option(help="Its weights; without, it is trained briefly.")] = None,
    estimators: Annotated[str, typer.Option(help="Names of estimators, separated by spaces.")] = " ".join(PAPER),
    postprocess: Annotated[str, typer.Option(help="Post-processings, separated by spaces.")] = " ".join(
        PAPER_POSTPROCESS
    ),
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of the brief training.")] = 12,
    train_images: Annotated[int, typer.Option(min=1, help="Images of the brief training.")] = 2500,
    paper: Annotated[bool, typer.Option("--paper", help="Use the conventions of the code of Song et al.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of training, noise and random maps.")] = 0,
) -> None:
    """Draw images, the map of each estimator and each post-processing of it as one PNG."""
    from roarfast.explain import strip  # torch: `--help` need not wait for it

    try:
        if not all(i.strip().isdecimal() for i in images.split(",")):
            raise ValueError(f"--images takes numbers separated by commas, as in 0,1,2, got {images!r}")
        numbers = [int(i) for i in images.split(",")]
        path = strip.run(
            out,
            data,
            numbers,
            model,
            weights,
            estimators.split(),
            postprocess.split(),
            split=split,
            epochs=epochs,
            train_images=train_images,
            paper_conventions=paper,
            seed=seed,
        )
    except (ValueError, OSError, ModuleNotFoundError) as error:
        typer.echo(f"roarfast strip: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"wrote {path}")


def main() -> None:
    """Entry point of `python -m roarfast.explain.strip`."""
    typer.run(strip_command)


if __name__ == "__main__":
    main()
