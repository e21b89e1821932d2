"""Small pieces of the loop: precision, determinism, Ctrl-C."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

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
def deterministic(compiled: bool = False) -> Iterator[None]:
    """Same seed, same weights: deterministic cuDNN and torch kernels inside the block, settings restored after.

    `compiled` also sets torch.compile's own switch, which means importing it: seconds that other trainings are spared.
    """
    cudnn = torch.backends.cudnn
    before = (cudnn.deterministic, cudnn.benchmark, torch.get_deterministic_debug_mode())
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    cudnn.deterministic, cudnn.benchmark = True, False
    inductor = importlib.import_module("torch._inductor.config") if compiled else None
    if not hasattr(inductor, "deterministic"):  # torch 2.6 has none
        inductor = None
    inductor_before = getattr(inductor, "deterministic", False)
    if inductor is not None:
        inductor.deterministic = True  # type: ignore[attr-defined]
    torch.set_deterministic_debug_mode("warn")
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # a second write per batch
    try:
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark = before[:2]
        torch.set_deterministic_debug_mode(before[2])
        if inductor is not None:
            inductor.deterministic = inductor_before  # type: ignore[attr-defined]
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


class StopRequest:
    """Turns the first Ctrl-C into a flag, so that a step is never cut in half; the second acts as usual."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: Callable[[int, FrameType | None], object] | int | None = None
        self._installed = False

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
            self._installed = True
        return self

    def _on_interrupt(self, *_: object) -> None:
        self.requested = True
        signal.signal(signal.SIGINT, self._previous or signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous or signal.default_int_handler)
