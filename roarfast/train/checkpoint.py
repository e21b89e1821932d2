"""Checkpoints: atomic files that let a training continue as if it had never stopped."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from roarfast._files import write_atomic
from roarfast._sealed import read_sealed, seal

VERSION = 1


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read or belongs to another training."""


def save_checkpoint(path: str | Path, state: Mapping[str, object]) -> None:
    """Writes a checkpoint: at any moment the file is the old one or the new one, whole.

    Args:
        path: The file; its folder is made.
        state: Tensors, numbers, strings, lists and dicts of them.

    Example:
        >>> save_checkpoint("run.pt", {"fingerprint": {"seed": 0}, "epoch": 3})
        >>> load_checkpoint("run.pt")["epoch"]
        3
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save({"version": VERSION, **state}, buffer)
    write_atomic(path, seal(buffer.getvalue()))


def load_checkpoint(path: str | Path, fingerprint: Mapping[str, object] | None = None) -> dict[str, Any] | None:
    """Reads a checkpoint; None if there is no file.

    Args:
        path: The file.
        fingerprint: What the checkpoint must have been made for (recipe, seed, data, …); a difference is an error that
            names it.

    Raises:
        CheckpointError: Unreadable, or of another training.

    Example:
        >>> load_checkpoint("not there.pt") is None
        True
        >>> save_checkpoint("run.pt", {"fingerprint": {"seed": 0}})
        >>> load_checkpoint("run.pt", {"seed": 1})
        Traceback (most recent call last):
        roarfast.train.checkpoint.CheckpointError: checkpoint run.pt is of another training: seed was 0, now 1. Use ...
    """
    path = Path(path)
    if not path.is_file():
        return None
    try:
        state = torch.load(io.BytesIO(read_sealed(path)), map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(f"cannot read checkpoint {path}: {error}. Delete it to start over.") from error
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise CheckpointError(f"{path} is not a checkpoint of this version of roarfast. Delete it to start over.")
    found = state.get("fingerprint", {})
    for key, value in (fingerprint or {}).items():
        if found.get(key) != value:
            raise CheckpointError(
                f"checkpoint {path} is of another training: {key} was {found.get(key)!r}, now {value!r}. "
                "Use another file, or delete it to start over."
            )
    return state
