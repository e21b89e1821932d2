"""`DeviceDataset`: a dataset from which a device takes batches, resident in its memory or streamed to it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import torch

from roarfast._types import Array, Numpy
from roarfast.data.dataset import DataError, Dataset
from roarfast.data.pack import verify_images
from roarfast.data.rows import RowSource
from roarfast.data.stream import StreamedBatch, stream_batches, upload
from roarfast.ops.gather_batch import PerChannel, gather_batch

_TOGETHER = 600_000  # values of small batches made in one call: 2.4 MB, which stay in a cache until they are used
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True)
class Transform:
    """What happens to the images of a batch; the arguments of `roarfast.gather_batch` of the same names.

    Attributes:
        mean: channel means in units of 0..1; None: of the dataset.
        std: channel standard deviations; None: of the dataset.
        pad: pixels added on each side.
        pad_value: their value, in units of 0..255.
        crop: output size; None: the images'.
        random_crop: crop at a random place rather than in the middle.
        scale: share of the area of crops that are resampled, (low, high); None: crops are not.
        ratio: width / height of those crops, (low, high); None: (3/4, 4/3).
        flip: mirror half of the samples.
        rate_index: position of the drop rate in the list of the rank codes; None: remove nothing.
        keep: KAR: keep what would be removed, remove the rest.
        fill: value of removed pixels in units of 0..255; None: the mean.
        seed: of the augmentation.
        dtype: `"float32"`, `"float16"` or `"bfloat16"`.
        out_layout: `"NCHW"` or `"NHWC"` (channels-last).
    """

    mean: PerChannel | None = None
    std: PerChannel | None = None
    pad: int = 0
    pad_value: PerChannel = 0.0
    crop: int | tuple[int, int] | None = None
    random_crop: bool = False
    scale: tuple[float, float] | None = None
    ratio: tuple[float, float] | None = None
    flip: bool = False
    rate_index: int | None = None
    keep: bool = False
    fill: PerChannel | None = None
    seed: int = 0
    dtype: str = "float32"
    out_layout: str = "NCHW"


class GatherOptions(TypedDict):
    """What a `Transform` says to `roarfast.gather_batch`."""

    layout: str
    mean: PerChannel
    std: PerChannel
    pad: int
    pad_value: PerChannel
    crop: int | tuple[int, int] | None
    random_crop: bool
    scale: tuple[float, float] | None
    ratio: tuple[float, float] | None
    flip: bool
    rate_index: int | None
    keep: bool
    fill: PerChannel | None
    seed: int
    dtype: str
    out_layout: str


class DeviceDataset:
    """Batches of a dataset on a device, made by one fused kernel each.

    Where images, codes and imputed images fit the memory budget they are copied to the device once. Otherwise each
    batch's samples are read ahead by threads and, on CUDA, copied through pinned buffers on a side stream. The batches
    are the same, bit for bit.

    Args:
        dataset: what to serve.
        device: where the batches go.
        codes: rank codes, uint8 `[N, H, W]` or `[N, C, H, W]`.
        imputed: uint8 or float16 `[N, H, W, C]`: replaces removed pixels in place of the constant fill.
        budget: bytes (or `"8GB"`) the resident arrays may take. Default: 60 % of the free memory of a GPU, half of the
            available memory of the host. 0 always streams. Arrays that are in host memory anyway cost a CPU nothing.
        prefetch: batches read ahead when streaming.

    Example:
        >>> from roarfast.data import load
        >>> data = DeviceDataset(load("shapes", "test", n=20))
        >>> x, y = next(data.batches([np.arange(4)], Transform(flip=True)))
        >>> x.shape, y.shape
        (torch.Size([4, 3, 32, 32]), torch.Size([4]))
    """

    def __init__(
        self,
        dataset: Dataset,
        device: str | torch.device = "cpu",
        *,
        codes: Array | None = None,
        imputed: Array | None = None,
        budget: int | str | None = None,
        prefetch: int = 3,
    ) -> None:
        if prefetch < 1:
            raise ValueError(f"prefetch must be at least 1, got {prefetch}")
        self.dataset = dataset
        self.device = torch.device(device)
        self.prefetch = prefetch
        self.labels = torch.from_numpy(dataset.labels).to(self.device)
        self._budget = parse_bytes(budget) if budget is not None else None
        self._image_values = int(np.prod(dataset.image_shape))
        self._verified = np.zeros(len(dataset), bool)  # images of a pack whose checksum was compared
        self.images: Array = dataset.images
        self.codes: Array | None = None
        self.imputed: Array | None = None
        self.resident = self._fits(dataset.images)
        if self.resident:
            host = np.ascontiguousarray(dataset.images)
            verify_images(dataset, np.arange(len(dataset)), host)
            self.images = _to_tensor(host, self.device)
        self._attach(codes, imputed)

    def __len__(self) -> int:
        return len(self.dataset)

    def with_codes(self, codes: Array | None, imputed: Array | None = None) -> DeviceDataset:
        """The same images, shared, with other rank codes (and imputed images)."""
        other = copy.copy(self)
        other._attach(codes, imputed)
        return other

    def batches(
        self, index: Iterable[Numpy], transform: Transform | None = None, *, epoch: int = 0, reuse: bool = False
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Make batches.

        Args:
            index: for each batch, the samples: int64 `[B]`.
            transform: what happens to the images.
            epoch: which augmentation they get.
            reuse: write every batch to the same memory. Faster on CPUs for large batches; a batch is then valid until
                the next is asked for.

        Yields:
            Images `[B, C, H, W]` of the transform's dtype and memory order, and labels int64 `[B]`, on the device.
        """
        transform = transform or Transform()
        if transform.rate_index is not None and self.codes is None:
            raise ValueError(f"transform.rate_index is {transform.rate_index}, but this DeviceDataset has no codes")
        keep: dict[int, torch.Tensor] = {}
        options = self._options(transform)
        for batch, sizes in self._resident_batches(index, reuse) if self.resident else self._streamed_batches(index):
            out = keep.get(len(batch.rows)) if reuse else None
            x = gather_batch(
                batch.images,
                batch.rows,
                batch.codes if transform.rate_index is not None else None,
                ids=batch.ids,
                imputed=batch.imputed if transform.rate_index is not None else None,
                epoch=epoch,
                out=out,
                **options,
            )
            if reuse and out is None:
                keep[len(batch.rows)] = x
            y = self.labels[batch.rows if batch.ids is None else batch.ids]
            yield from zip(x.split(sizes), y.split(sizes))

    def _options(self, t: Transform) -> GatherOptions:
        return {
            "layout": "NHWC",
            "mean": self.dataset.mean if t.mean is None else t.mean,
            "std": self.dataset.std if t.std is None else t.std,
            "pad": t.pad,
            "pad_value": t.pad_value,
            "crop": t.crop,
            "random_crop": t.random_crop,
            "scale": t.scale,
            "ratio": t.ratio,
            "flip": t.flip,
            "rate_index": t.rate_index,
            "keep": t.keep,
            "fill": t.fill,
            "seed": t.seed,
            "dtype": t.dtype,
            "out_layout": t.out_layout,
        }

    def _resident_batches(self, index: Iterable[Numpy], together: bool) -> Iterator[tuple[StreamedBatch, list[int]]]:
        """Batches and their sizes; small ones `together`, as a call costs about as much as it takes to make one of them."""
        assert isinstance(self.images, torch.Tensor)
        some: list[Numpy] = []
        for rows in index:
            some.append(self._check_rows(rows))
            if not together or sum(map(len, some)) * self._image_values >= _TOGETHER:
                yield self._resident_batch(some)
                some = []
        if some:
            yield self._resident_batch(some)

    def _resident_batch(self, some: list[Numpy]) -> tuple[StreamedBatch, list[int]]:
        rows = upload(some[0] if len(some) == 1 else np.concatenate(some), self.device)
        return StreamedBatch(self.images, rows, None, self.codes, self.imputed), [len(r) for r in some]  # type: ignore[arg-type]

    def _streamed_batches(self, index: Iterable[Numpy]) -> Iterator[tuple[StreamedBatch, list[int]]]:
        arrays = [self.images, self.codes, self.imputed]
        sources = [RowSource(array) for array in arrays if array is not None]

        def read(rows: Numpy, targets: list[Numpy]) -> None:
            for source, target in zip(sources, targets):
                source.read(rows, target)
            fresh = np.flatnonzero(~self._verified[rows])
            if self.dataset.checksums is not None and len(fresh):
                verify_images(self.dataset, rows[fresh], targets[0][fresh])
                self._verified[rows[fresh]] = True

        checked = (self._check_rows(rows) for rows in index)
        for batch in stream_batches(checked, arrays, read, self.device, self.prefetch):
            yield batch, [len(batch.rows)]

    def _check_rows(self, rows: npt.ArrayLike) -> Numpy:
        rows = np.ascontiguousarray(rows, np.int64)
        if rows.ndim != 1:
            raise ValueError(f"a batch's index must be [B], got shape {rows.shape}")
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self)):
            raise ValueError(f"index must be in [0, {len(self)}), got values from {rows.min()} to {rows.max()}")
        return rows

    def _attach(self, codes: Array | None, imputed: Array | None) -> None:
        n, h, w, c = self.dataset.images.shape
        if codes is not None and (
            tuple(codes.shape) not in ((n, h, w), (n, c, h, w)) or str(codes.dtype)[-5:] != "uint8"
        ):
            raise DataError(
                f"codes must be uint8 {(n, h, w)} or {(n, c, h, w)} like the dataset, got {codes.dtype} {tuple(codes.shape)}"
            )
        if imputed is not None and tuple(imputed.shape) != (n, h, w, c):
            raise DataError(f"imputed must be {(n, h, w, c)} like the dataset, got {tuple(imputed.shape)}")
        if self.resident:
            self.codes, self.imputed = (None if a is None else _to_tensor(a, self.device) for a in (codes, imputed))
        else:
            self.codes, self.imputed = (a.cpu().numpy() if isinstance(a, torch.Tensor) else a for a in (codes, imputed))

    def _fits(self, images: Numpy) -> bool:
        n, h, w, c = images.shape
        needed = n * h * w * (c + 1)  # images and one plane of codes
        in_memory = not isinstance(images, np.memmap) and not isinstance(images.base, np.memmap)
        if self._budget is not None:
            return needed <= self._budget
        if self.device.type == "cuda":
            return needed <= 0.6 * torch.cuda.mem_get_info(self.device)[0]
        return in_memory or needed <= 0.5 * _available_memory()


def parse_bytes(budget: int | str) -> int:
    """`8_000_000_000`, `"8GB"`, `"512 MiB"` → bytes."""
    if isinstance(budget, int):
        value = float(budget)
    else:
        text = budget.strip().upper()
        number = text.rstrip("KMGIB ")
        unit = text[len(number) :].strip()
        try:
            value = float(number) * _UNITS[unit]
        except (ValueError, KeyError):
            raise ValueError(f"budget must be bytes or a size like '8GB' or '512MiB', got {budget!r}") from None
    if value < 0:
        raise ValueError(f"budget must be at least 0, got {budget!r}")
    return int(value)


def _available_memory() -> int:
    try:
        with open("/proc/meminfo") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return 4 * 2**30


def _to_tensor(a: Array, device: torch.device) -> torch.Tensor:
    if isinstance(a, torch.Tensor):
        return a.to(device).contiguous()
    a = np.ascontiguousarray(a)
    if not a.flags.writeable:  # torch warns about read-only arrays; nothing here writes to it
        a = a.view()
        try:
            a.flags.writeable = True
        except ValueError:
            a = a.copy()
    return torch.from_numpy(a).to(device)
