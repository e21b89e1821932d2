"""Small pieces of the loop: precision, determinism, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import torch

from roarfast.train.recipe import Recipe


def resolve_precision(recipe: Recipe, device: torch.device) -> str:
    """`"float32"`, or the dtype of autocast."""
    if device.type != "cuda":
        if recipe.precision not in ("auto", "float32"):
            raise ValueError(
                f"recipe: precision {recipe.precision} needs CUDA; on {device.type} use 'auto' or 'float32'"
            )
        return "float32"
    if recipe.precision != "auto":
        return recipe.precision
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Same seed, same weights: deterministic cuDNN and torch kernels inside the block, settings restored after."""
    cudnn = torch.backends.cudnn
    before = (cudnn.deterministic, cudnn.benchmark, torch.are_deterministic_algorithms_enabled())
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn.deterministic, cudnn.benchmark = True, False
    torch.use_deterministic_algorithms(True, warn_only=True)
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a second write per batch
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before[:2]
        torch.use_deterministic_algorithms(before[2], warn_only=warn_only)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


class StopRequest:
    """Turns the first Ctrl-C into a flag, so that a step is never cut in half; the second acts as usual."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
            self._installed = True
        return self

    def _on_interrupt(self, *_: Any) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, self._previous or signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous or signal.default_int_handler)
