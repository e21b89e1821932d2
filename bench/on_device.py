"""`bench/run.py --device cuda`: the ops beside torch and CuPy on a GPU, one epoch of training, streaming from a pack.

Device times are from CUDA events, each call with a cold second-level cache; the median of the repeats. What is written is one
JSON file that `check_report` accepts and `render` turns into the tables of docs/performance.md. The host backends (`cpu`, `simt`,
`ptx`) run the same code for tests, with a clock of the host whose times say nothing about a GPU.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import roarfast as rf
from roarfast import _backend, info
from roarfast.data import DeviceDataset, Transform, open_pack, write_pack
from roarfast.data.dataset import Dataset
from roarfast.selftest import HOST_BACKENDS, check_fields
from roarfast.train.models import build_model

SCHEMA = 1
RATES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
PERCENTILES = [5.0, 25.0, 50.0, 75.0, 95.0]
Work = Callable[[], Any]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    maps: tuple[tuple[int, int], ...] = ((4096, 32), (256, 224))  # images, side
    images: int = 20_000  # of an epoch, 32 x 32
    packed: int = 2_000
    pack_side: int = 224
    batch: int = 128
    repeats: int = 30
    model: str = "resnet18"


QUICK = Sizes(((256, 32), (16, 224)), 2_000, 200, 64, 128, 10)
TINY = Sizes(((1, 8),), 8, 6, 16, 4, 1, "resnet8")


@dataclass
class DeviceCase:
    """One op, ours and others'. `moved`: bytes that have to be read and written."""

    op: str
    case: str
    moved: int
    ours: Work
    rivals: dict[str, Work] = field(default_factory=dict)
    rtol: float = 1e-4
    comparable: bool = True


class Clock:
    """Milliseconds of work on a device; on CUDA with nothing of it in the second-level cache."""

    def __init__(self, device: str, repeats: int) -> None:
        self.device, self.repeats, self.on_cuda = device, repeats, device.startswith("cuda")
        if self.on_cuda:
            cache = torch.cuda.get_device_properties(device).L2_cache_size
            self.flush = torch.empty(max(2 * cache, 1 << 26), dtype=torch.uint8, device=device)

    def __call__(self, work: Work) -> float:
        for _ in range(3 if self.on_cuda else 0):
            work()
        if not self.on_cuda:
            times = []
            for _ in range(self.repeats):
                start = time.perf_counter()
                work()
                times.append(1e3 * (time.perf_counter() - start))
            return statistics.median(times)
        events = []
        for _ in range(self.repeats):
            self.flush.zero_()  # also keeps the device busy while the host enqueues what is timed
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize(self.device)
        return statistics.median(start.elapsed_time(end) for start, end in events)

    def seconds(self, work: Work) -> float:
        """Of the host's clock, from and to an idle device."""
        if self.on_cuda:
            torch.cuda.synchronize(self.device)
        start = time.perf_counter()
        work()
        if self.on_cuda:
            torch.cuda.synchronize(self.device)
        return time.perf_counter() - start


def _gaussian_torch(x: torch.Tensor, sigma: float) -> torch.Tensor:
    radius = int(4 * sigma + 0.5)
    k = torch.exp(-0.5 * (torch.arange(-radius, radius + 1, device=x.device) / sigma) ** 2)
    k = (k / k.sum()).to(x.dtype)
    x = functional.pad(x[:, None], (radius,) * 4, mode="reflect")
    return functional.conv2d(functional.conv2d(x, k[None, None, :, None]), k[None, None, None, :])[:, 0]


def _mask_torch(a: torch.Tensor, rate: float) -> torch.Tensor:
    flat = a.flatten(1)
    top = flat.topk(round(rate * flat.shape[1]), dim=1).indices
    return torch.zeros_like(flat, dtype=torch.bool).scatter_(1, top, True).view_as(a)


def _codes_torch(a: torch.Tensor, rates: list[float]) -> torch.Tensor:
    flat = a.flatten(1)
    order = flat.argsort(dim=1, descending=True).argsort(dim=1)
    bounds = torch.tensor([round(r * flat.shape[1]) for r in rates], device=a.device)
    return torch.bucketize(order, bounds, right=True).to(torch.uint8).view_as(a)


def _sobel_torch(x: torch.Tensor) -> torch.Tensor:
    k = torch.tensor([[-1.0, -2, -1], [0, 0, 0], [1, 2, 1]], device=x.device)
    return functional.conv2d(functional.pad(x[:, None], (1,) * 4, mode="replicate"), k[None, None])[:, 0]


def _cupy() -> Any:
    """CuPy's filters, or None."""
    try:
        import cupy
        from cupyx.scipy import ndimage
    except Exception:
        return None
    return lambda name, x, *args: torch.from_dlpack(getattr(ndimage, name)(cupy.from_dlpack(x), *args))


def cases(place: str, n: int, side: int) -> Iterator[DeviceCase]:
    """Every op at one size, in float32; three channels where it takes images."""
    g = torch.Generator().manual_seed(0)
    a = torch.rand(n, side, side, generator=g).to(place)
    x = torch.rand(n, 3, side, side, generator=g).to(place)
    mask = (torch.rand(n, side, side, generator=g) < 0.5).to(place)
    bytes_ = (255 * torch.rand(n, side, side, 3, generator=g)).to(torch.uint8).to(place)
    rows = torch.randperm(n, generator=g).to(place)
    codes = rf.rank_codes(a, RATES)
    px, case = n * side * side, f"{n}x{side}x{side}"
    cupy = _cupy() if place.startswith("cuda") else None

    for sigma in (1.0, 10.0):
        rivals: dict[str, Work] = {}
        if int(4 * sigma + 0.5) < side:
            rivals["torch conv2d"] = lambda s=sigma: _gaussian_torch(a, s)
        if cupy:
            rivals["cupy"] = lambda s=sigma: cupy("gaussian_filter", a, (0, s, s))
        yield DeviceCase(
            "gaussian_filter",
            f"{case}, sigma {sigma:g}",
            8 * px,
            lambda s=sigma: rf.gaussian_filter(a, s),
            rivals,
            comparable=False,
        )
    for size in (3, 15, 41):
        rivals = {}
        if size // 2 < side:
            rivals["torch max_pool2d"] = lambda s=size: functional.max_pool2d(a[:, None], s, 1, s // 2)[:, 0]
        if cupy:
            rivals["cupy"] = lambda s=size: cupy("maximum_filter", a, (1, s, s))
        yield DeviceCase(
            "maximum_filter", f"{case}, size {size}", 8 * px, lambda s=size: rf.maximum_filter(a, s), rivals
        )
    yield DeviceCase("sobel", case, 8 * px, lambda: rf.sobel(a, -2), {"torch conv2d": lambda: _sobel_torch(a)})
    yield DeviceCase(
        "total_variation",
        case,
        4 * px,
        lambda: rf.total_variation(a),
        {
            "torch": lambda: (a[:, 1:] - a[:, :-1]).abs().sum((1, 2)) + (a[:, :, 1:] - a[:, :, :-1]).abs().sum((1, 2)),
        },
        comparable=False,
    )
    yield DeviceCase(
        "removal_mask",
        f"{case}, 30 %",
        5 * px,
        lambda: rf.removal_mask(a, 0.3, nan="ignore"),
        {"torch topk": lambda: _mask_torch(a, 0.3)},
        comparable=False,
    )
    yield DeviceCase(
        "rank_codes",
        f"{case}, 9 rates",
        5 * px,
        lambda: rf.rank_codes(a, RATES, nan="ignore"),
        {"torch argsort": lambda: _codes_torch(a, RATES)},
        comparable=False,
    )
    q = torch.tensor([p / 100 for p in PERCENTILES], device=a.device)
    yield DeviceCase(
        "percentile",
        f"{case}, 5",
        4 * px,
        lambda: rf.percentile(a, PERCENTILES, nan="ignore"),
        {"torch quantile": lambda: torch.quantile(a.flatten(1), q, dim=1)},
        comparable=False,
    )
    yield DeviceCase(
        "removed_fraction",
        case,
        px,
        lambda: rf.removed_fraction(codes, 4),
        {"torch": lambda: (codes <= 4).float().mean((1, 2))},
    )
    yield DeviceCase(
        "fill",
        f"{case}x3, constant",
        25 * px,
        lambda: rf.fill(x, mask, 0.5),
        {"torch where": lambda: torch.where(mask[:, None], 0.5, x)},
    )
    yield DeviceCase(
        "remove",
        f"{case}x3, 30 %",
        28 * px,
        lambda: rf.remove(x, a, 0.3, 0.5, nan="ignore"),
        {"torch topk": lambda: torch.where(_mask_torch(a, 0.3)[:, None], 0.5, x)},
        comparable=False,
    )
    for layout in ("NCHW", "NHWC"):
        order = (0, 3, 1, 2) if layout == "NCHW" else (0, 1, 2, 3)
        yield DeviceCase(
            "gather_batch",
            f"{case}x3, to {layout}",
            16 * px,
            lambda o=layout: rf.gather_batch(
                bytes_, rows, codes, 4, mean=0.5, std=0.25, fill=127.5, layout="NHWC", out_layout=o
            ),
            {
                "torch": lambda o=order: (
                    torch.where(codes[rows][..., None] <= 4, 0.0, (bytes_[rows].float() / 255 - 0.5) / 0.25)
                    .permute(o)
                    .contiguous()
                )
            },
            comparable=False,
        )
    half = max(side // 2, 1)
    yield DeviceCase(
        "gather_batch_resized",
        f"{case}x3, to {half}x{half}",
        4 * px + 3 * n * half * half * 4,
        lambda: rf.gather_batch(
            bytes_, rows, codes, 4, mean=0.5, std=0.25, fill=127.5, layout="NHWC", crop=half, scale=(0.9, 1.0)
        ),
        {
            "torch": lambda: (
                (
                    torch.nn.functional.interpolate(
                        torch.where(codes[rows][..., None] <= 4, 127.5, bytes_[rows].float()).permute(0, 3, 1, 2),
                        (half, half),
                        mode="bilinear",
                        antialias=True,
                    )
                    / 255
                    - 0.5
                )
                / 0.25
            )
        },
        comparable=False,
    )
    yield DeviceCase(
        "pixel_random",
        case,
        4 * px,
        lambda: rf.pixel_random((n, side, side), device=place),
        {"torch rand": lambda: torch.rand(n, side, side, device=place)},
        comparable=False,
    )
    yield DeviceCase(
        "philox_normal",
        case,
        4 * px,
        lambda: rf.philox_normal(rows, (side, side)),
        {"torch randn": lambda: torch.randn(n, side, side, device=place)},
        comparable=False,
    )
    yield DeviceCase("block_random", case, px, lambda: rf.block_random((n, side, side), 0.3, device=place))
    yield DeviceCase(
        "impute_linear", f"{case}x3, random 50 %", 25 * px, lambda: rf.impute_linear(x, mask, check_result=False)
    )


def _agrees(case: DeviceCase, rival: Work) -> bool:
    ours, theirs = (torch.as_tensor(np.asarray(v) if isinstance(v, np.ndarray) else v) for v in (case.ours(), rival()))
    return torch.allclose(ours.float().cpu(), theirs.float().cpu(), rtol=case.rtol, atol=case.rtol)


def measure_ops(place: str, clock: Clock, sizes: Sizes) -> list[dict[str, Any]]:
    """A row for every op, case and size; rivals whose result differs are left out and named."""
    rows = []
    for n, side in sizes.maps:
        for case in cases(place, n, side):
            row: dict[str, Any] = {
                "op": case.op,
                "case": case.case,
                "ours_ms": clock(case.ours),
                "rivals": {},
                "wrong": [],
            }
            row["gb_per_s"] = case.moved / row["ours_ms"] / 1e6
            for name, rival in case.rivals.items():
                if case.comparable and not _agrees(case, rival):
                    row["wrong"].append(name)
                else:
                    row["rivals"][name] = clock(rival)
            rows.append(row)
    return rows


def _epoch(data: DeviceDataset, place: str, clock: Clock, sizes: Sizes, side: int) -> dict[str, Any]:
    """One epoch with removal and augmentation: with the model, and the batches alone."""
    model = build_model(sizes.model, len(data.dataset.class_names), seed=0).to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    how = Transform(pad=side // 8, crop=side, random_crop=True, flip=True, rate_index=2)
    order = np.random.default_rng(0).permutation(len(data))
    index = [order[i : i + sizes.batch] for i in range(0, len(order), sizes.batch)]

    def batches() -> None:
        for x, _ in data.batches(index, how):
            x.sum()

    def train() -> None:
        for x, y in data.batches(index, how):
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    train()  # cuDNN picks its algorithms, caches fill
    alone, whole = clock.seconds(batches), clock.seconds(train)
    return {
        "model": sizes.model,
        "images": len(data),
        "side": side,
        "batch": sizes.batch,
        "resident": data.resident,
        "images_per_s": len(data) / whole,
        "batches_per_s": len(data) / alone,
        "share_outside_model": min(alone / whole, 1.0),
    }


def _codes(images: np.ndarray) -> np.ndarray:
    return rf.rank_codes(images.mean(-1, dtype=np.float32), RATES)


def measure_training(place: str, clock: Clock, sizes: Sizes) -> dict[str, Any]:
    """32 x 32 images that stay on the device."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (sizes.images, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, 10, sizes.images)
    data = Dataset(images, labels, tuple(map(str, range(10))))
    return _epoch(DeviceDataset(data, place, codes=_codes(images)), place, clock, sizes, 32)


def measure_streaming(place: str, clock: Clock, sizes: Sizes) -> dict[str, Any]:
    """Images of a pack, read from its file batch by batch."""
    from PIL import Image

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(sizes.packed):
            path = Path(folder, "train", str(i % 2), f"{i}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            small = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(small).resize((sizes.pack_side, sizes.pack_side)).save(path)
        pack = write_pack(Path(folder, "train"), Path(folder, "pack"), sizes.pack_side)
        data = open_pack(pack)
        streamed = DeviceDataset(data, place, codes=_codes(np.asarray(data.images)), budget=0)
        return _epoch(streamed, place, clock, sizes, sizes.pack_side)


def run(device: str = "cuda", sizes: Sizes | None = None) -> dict[str, Any]:
    """Measures everything and returns the report."""
    sizes = sizes or Sizes()
    host = device in HOST_BACKENDS
    if not host:
        if not torch.cuda.is_available():
            raise rf.BackendError(f"torch {torch.__version__} sees no CUDA device")
        _backend.cuda()
    place = "cpu" if host else device
    clock = Clock(place, sizes.repeats)
    with _backend.use_host_backend(device) if host else contextlib.nullcontext():
        report = {
            "schema": SCHEMA,
            "device": device,
            "device_name": "the host" if host else torch.cuda.get_device_name(device),
            "torch": torch.__version__,
            "build": info.gather(),
            "ops": measure_ops(place, clock, sizes),
            "training": measure_training(place, clock, sizes),
            "streaming": measure_streaming(place, clock, sizes),
        }
    check_report(report)
    return report


_NUMBER = (int, float)
_TOP = {
    "schema": int,
    "device": str,
    "device_name": str,
    "torch": str,
    "build": dict,
    "ops": list,
    "training": dict,
    "streaming": dict,
}
_ROW = {"op": str, "case": str, "ours_ms": _NUMBER, "rivals": dict, "wrong": list, "gb_per_s": _NUMBER}
_EPOCH = {
    "model": str,
    "images": int,
    "side": int,
    "batch": int,
    "resident": bool,
    "images_per_s": _NUMBER,
    "batches_per_s": _NUMBER,
    "share_outside_model": _NUMBER,
}


def check_report(report: Any) -> None:
    """ValueError that names the field if `report` is not what `run` makes."""
    check_fields("report", report, _TOP)
    if report["schema"] != SCHEMA:
        raise ValueError(f"report.schema must be {SCHEMA}, got {report['schema']}")
    for i, row in enumerate(report["ops"]):
        check_fields(f"report.ops[{i}]", row, _ROW)
        for name, ms in row["rivals"].items():
            if not isinstance(ms, _NUMBER) or not ms > 0:
                raise ValueError(f"report.ops[{i}].rivals[{name!r}] must be a time > 0, got {ms!r:.100}")
    for part in ("training", "streaming"):
        check_fields(f"report.{part}", report[part], _EPOCH)


def render(report: dict[str, Any]) -> str:
    """The tables, in Markdown."""
    lines = [
        f"{report['device_name']} (`{report['device']}`), torch {report['torch']}, roarfast {report['build']['version']}",
        "",
    ]
    lines += ["| op | case | ms | GB/s | how many times faster than |", "|---|---|---|---|---|"]
    for row in report["ops"]:
        others = ", ".join(f"{name} {ms / row['ours_ms']:.2g}" for name, ms in row["rivals"].items())
        wrong = "".join(f"; {name} gives another result" for name in row["wrong"])
        lines.append(
            f"| `{row['op']}` | {row['case']} | {row['ours_ms']:.3g} | {row['gb_per_s']:.0f} | {others}{wrong} |"
        )
    for part, what in (("training", "resident on the device"), ("streaming", "streamed from a pack")):
        e = report[part]
        lines += [
            "",
            (
                f"One epoch of `{e['model']}` on {e['images']} images of {e['side']}x{e['side']}, {what}, batches of {e['batch']}: "
                f"{e['images_per_s']:.0f} images/s; the batches alone {e['batches_per_s']:.0f} images/s, "
                f"{e['share_outside_model']:.1%} of the epoch."
            ),
        ]
    return "\n".join(lines)
