"""`roarfast data …`: pack image folders, look into datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roarfast._progress import progress
from roarfast.data.dataset import DataError
from roarfast.data.load import load
from roarfast.data.pack import open_pack, write_pack

app = typer.Typer(help="Datasets: pack an image folder, check a pack, describe any dataset.", no_args_is_help=True)


@app.command("pack")
def pack_command(
    source: Annotated[Path, typer.Argument(help="Image folder (one folder per class), or CUB-200-2011.")],
    target: Annotated[Path, typer.Argument(help="The pack to write (a folder).")],
    size: Annotated[int, typer.Option("--size", min=1, help="Side of the square images.")] = 224,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Decoding threads; default all cores.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing pack.")] = False,
) -> None:
    """Decode and resize an image folder once into a memory-mapped pack. Interrupted? Run it again to continue."""
    try:
        with progress("packing", None, show=True) as job:
            write_pack(source, target, size, workers=workers, overwrite=overwrite, progress=job.update)
    except (DataError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("interrupted; run the same command again to continue", err=True)
        raise typer.Exit(130) from None
    data = open_pack(target)
    typer.echo(f"{target}: {len(data)} images of {size}x{size}, {data.num_classes} classes")


@app.command("verify")
def verify_command(pack: Annotated[Path, typer.Argument(help="The pack to check.")]) -> None:
    """Read every image of a pack and compare its checksum."""
    try:
        data = open_pack(pack, verify=True)
    except (DataError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{pack}: {len(data)} images, all checksums right")


@app.command("watermark")
def watermark_command(
    source: Annotated[str, typer.Argument(help="Name or path of a dataset, as for roarfast.data.load.")],
    target: Annotated[Path, typer.Argument(help="The .npz file to write.")],
    kind: Annotated[str, typer.Option("--kind", help="number, or stripes.")] = "number",
    canvas: Annotated[str, typer.Option("--canvas", help="image, or blank (grey).")] = "image",
    relabel: Annotated[str, typer.Option("--relabel", help="random: deal labels anew; keep them.")] = "random",
    split: Annotated[str, typer.Option("--split", help="train, test or all.")] = "train",
    root: Annotated[Path | None, typer.Option("--root", help="Folder of the named datasets.")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Only the first n images.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of labels and places.")] = 0,
) -> None:
    """Write the label into each image, so that it is known where an explanation must point."""
    from roarfast.data import watermark  # `--help` need not wait for it

    try:
        data = watermark.watermark(load(source, split, root, n=n), kind, canvas=canvas, labels=relabel, seed=seed)
        watermark.save(data, target)
    except (DataError, OSError, ValueError, ModuleNotFoundError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(
        f"{target}: {len(data)} images with their {kind}, {data.num_classes} classes, masks of the effective region"
    )


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="Name or path, as for roarfast.data.load.")],
    split: Annotated[str, typer.Option("--split", help="train, test or all.")] = "train",
    root: Annotated[Path | None, typer.Option("--root", help="Folder of the named datasets.")] = None,
    size: Annotated[int | None, typer.Option("--size", min=1, help="Scale and crop image files to this side.")] = None,
) -> None:
    """Describe a dataset: size, classes, channel statistics."""
    try:
        data = load(name, split, root, size=size)
    except (DataError, OSError, ImportError, ValueError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{data.name} ({data.split}): {data.describe()}")
    for note in data.notes:
        typer.echo(f"note: {note}")
    typer.echo("mean " + " ".join(f"{m:.4f}" for m in data.mean) + "   std " + " ".join(f"{s:.4f}" for s in data.std))
