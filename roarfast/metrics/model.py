"""The model that is scored: any module or function to logits, in evaluation mode, left as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from roarfast.explain.model_state import frozen

Model = nn.Module | Callable[[Tensor], Tensor]
"""Takes a batch, returns logits `[B, classes]`."""


def home(model: Model) -> tuple[torch.device | None, torch.dtype]:
    """Device and dtype of a model's parameters; (None, float32) where it has none."""
    if isinstance(model, nn.Module):
        for value in (*model.parameters(), *model.buffers()):
            if value.is_floating_point():
                return value.device, value.dtype
    return None, torch.float32


def choose_device(model: Model, pixels: Tensor, from_numpy: bool, device: str | torch.device | None) -> torch.device:
    """Where batches go: the model's device. Tensors on another one are an error unless `device` names it."""
    own, _ = home(model)
    if device is not None:
        wanted = torch.device(device)
        if own is not None and own.type != wanted.type:
            raise ValueError(f"device is {wanted}, but the model is on {own}: move the model first")
        return own or wanted
    if own is not None and not from_numpy and own != pixels.device:
        raise ValueError(
            f"images are on {pixels.device}, the model is on {own}: move one of them, "
            f"or pass device={str(own)!r} to move batches there as they are needed"
        )
    return own or pixels.device


@contextlib.contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Evaluation mode inside; every flag is put back, after an exception too."""
    with torch.no_grad(), frozen(model) if isinstance(model, nn.Module) else contextlib.nullcontext():
        yield


class Logits:
    """Calls a model and checks what it returns.

    Args:
        model: Returns logits `[B, classes]`.
        labels: int64 `[N]`, to check against the number of classes.
    """

    def __init__(self, model: Model, labels: Tensor) -> None:
        if not callable(model):
            raise TypeError(f"model must be a torch.nn.Module or a function to logits, got {type(model).__name__}")
        self.model, self.labels = model, labels
        self.classes: int | None = None
        self._planes = False  # the model calls .view(), which channels-last feature maps do not allow

    def __call__(self, x: Tensor) -> Tensor:
        """Float32 logits `[B, classes]`."""
        try:
            out = self.model(x.contiguous() if self._planes else x)
        except RuntimeError as error:
            if "view size is not compatible" not in str(error) or self._planes:
                raise
            self._planes = True
            out = self.model(x.contiguous())
        if not isinstance(out, Tensor):
            raise TypeError(
                f"model must return a tensor of logits [B, classes], got {type(out).__name__}: "
                "wrap it in a function that picks the logits"
            )
        if out.ndim != 2 or out.shape[0] != x.shape[0]:
            raise ValueError(f"model must return logits [{x.shape[0]}, classes], got shape {tuple(out.shape)}")
        if self.classes is None:
            self.classes = int(out.shape[1])
            if self.classes < 2:
                raise ValueError(
                    f"model must return logits of at least 2 classes, got {self.classes}: "
                    "for one logit z return [-z / 2, z / 2] or [0, z]"
                )
            if len(self.labels) and not 0 <= int(self.labels.min()) <= int(self.labels.max()) < self.classes:
                raise ValueError(
                    f"labels must be in [0, {self.classes}), the model's classes, "
                    f"got {int(self.labels.min())} to {int(self.labels.max())}"
                )
        return out.float()
