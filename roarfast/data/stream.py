"""Read-ahead for datasets that do not fit a device: threads fill host buffers, CUDA copies them on a side stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from roarfast._types import Array, Numpy

Read = Callable[[Numpy, list[Numpy]], None]  # (rows, one target per array): fills the targets


@dataclass
class StreamedBatch:
    """What `gather_batch` takes a batch from."""

    images: torch.Tensor  # the dataset, or only this batch's samples
    rows: torch.Tensor  # int64 [B]: where in `images` each sample is
    ids: torch.Tensor | None  # int64 [B]: which sample of the dataset it is; None: `rows`
    codes: torch.Tensor | None
    imputed: torch.Tensor | None


class _Buffer:
    """Host memory for the samples of one batch, and on CUDA the event after which it may be written again."""

    def __init__(self, arrays: Sequence[Array], pinned: bool) -> None:
        self.arrays = arrays
        self.pinned = pinned
        self.tensors: list[torch.Tensor] = []
        self.copied: torch.cuda.Event | None = None

    def views(self, count: int) -> list[torch.Tensor]:
        if self.copied is not None:
            self.copied.synchronize()
            self.copied = None
        if not self.tensors or len(self.tensors[0]) < count:
            self.tensors = [
                torch.empty(
                    (count, *a.shape[1:]),
                    dtype=torch.float16 if a.dtype == np.float16 else torch.uint8,
                    pin_memory=self.pinned,
                )
                for a in self.arrays
            ]
        return [t[:count] for t in self.tensors]


def stream_batches(
    index: Iterable[Numpy], arrays: Sequence[Array | None], read: Read, device: torch.device, prefetch: int
) -> Iterator[StreamedBatch]:
    """Batches in the order of `index`, `prefetch` of them under way at any time.

    Args:
        index: rows of each batch.
        arrays: images, codes or None, imputed or None.
        read: fills one target per array that is not None.
        device: where the samples go.
        prefetch: how many batches are read ahead.
    """
    given = [a for a in arrays if a is not None]
    on_cuda = device.type == "cuda"
    # One buffer per batch under way, plus the one being consumed.
    free = deque(_Buffer(given, on_cuda) for _ in range(prefetch + 1))
    side = torch.cuda.Stream(device) if on_cuda else None
    waiting: deque[tuple[Numpy, _Buffer, Future[list[torch.Tensor]]]] = deque()

    def fill(rows: Numpy, buffer: _Buffer) -> list[torch.Tensor]:
        views = buffer.views(len(rows))
        read(rows, [view.numpy() for view in views])
        return views

    iterator = iter(index)
    with ThreadPoolExecutor(min(prefetch, 4), thread_name_prefix="roarfast-read") as pool:
        try:
            while True:
                while len(waiting) < prefetch and (rows := next(iterator, None)) is not None:
                    buffer = free.popleft()
                    waiting.append((rows, buffer, pool.submit(fill, rows, buffer)))
                if not waiting:
                    return
                rows, buffer, future = waiting.popleft()
                tensors = future.result()
                if side is not None:
                    tensors = _copy_on(side, tensors, device, buffer)
                yield _as_batch(tensors, rows, arrays, device)
                free.append(buffer)  # gather_batch has read it: the consumer asks for the next batch
        finally:
            for *_, future in waiting:
                future.cancel()


def _copy_on(
    side: torch.cuda.Stream, tensors: list[torch.Tensor], device: torch.device, buffer: _Buffer
) -> list[torch.Tensor]:
    current = torch.cuda.current_stream(device)
    with torch.cuda.stream(side):
        copies = [t.to(device, non_blocking=True) for t in tensors]
        buffer.copied = torch.cuda.Event()
        buffer.copied.record(side)
    current.wait_stream(side)
    for copy in copies:
        copy.record_stream(current)  # the allocator must not hand it out before `current` is done with it
    return copies


def _as_batch(
    tensors: list[torch.Tensor], rows: Numpy, arrays: Sequence[Array | None], device: torch.device
) -> StreamedBatch:
    given = iter(tensors)
    images, codes, imputed = (None if a is None else next(given) for a in arrays)
    assert images is not None
    position = torch.arange(len(rows), device=device)
    return StreamedBatch(images, position, upload(rows, device), codes, imputed)


def upload(rows: Numpy, device: torch.device) -> torch.Tensor:
    """A batch's rows on the device. A plain copy to a GPU waits until it has done all it was told before: pinned, it does not."""
    host = torch.from_numpy(rows)
    if device.type != "cuda":
        return host.to(device)
    return host.pin_memory().to(device, non_blocking=True)  # torch keeps the pinned copy until the stream has read it
