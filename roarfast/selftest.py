"""`roarfast selftest`: every op on a device against the CPU, without the test suite. What a GPU owner runs after installing.

The outcome is one JSON document; `check_report` says whether a file that somebody sends is one.
"""

from __future__ import annotations

import contextlib
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict

import numpy as np

import roarfast as rf
from roarfast import _backend, info
from roarfast._types import Array

if TYPE_CHECKING:
    import torch

SCHEMA = 1
HOST_BACKENDS = ("cpu", "simt", "ptx")  # beside torch devices: what runs the CUDA kernels where there is no GPU
SHAPES = ((1, 1), (1, 9), (5, 3), (17, 33), (42, 44), (64, 65), (94, 94))
LARGE = (224, 224)
BORDERS = ("reflect", "mirror", "nearest", "wrap", "constant")
RATES = (0.1, 0.3, 0.5, 0.9)
Arguments: TypeAlias = "dict[str, torch.Tensor | str]"
"""Of a call by name: tensors on the CPU, and the name of a dtype."""
Call: TypeAlias = "Callable[..., Array]"
Maker: TypeAlias = "Callable[[np.random.Generator, int, int, str], tuple[Arguments, Call]]"
"""From (rng, h, w, dtype)."""


class Case(NamedTuple):
    """A call on arrays made from (rng, h, w, dtype); equal to the CPU within `tolerance`, 0 for every bit."""

    op: str
    dtypes: tuple[str, ...]
    make: Maker
    tolerance: float = 0.0


class OpRow(TypedDict):
    """How an op compared with the CPU."""

    op: str
    comparisons: int
    different: int
    worst: float
    first_difference: str


class CheckRow(TypedDict):
    """How one of the other checks went."""

    name: str
    ok: bool
    detail: str


class Report(TypedDict):
    """The outcome, as plain values for JSON."""

    schema: int
    ok: bool
    device: str
    device_name: str
    torch: str
    build: dict[str, Any]
    seed: int
    seconds: float
    ops: list[OpRow]
    checks: list[CheckRow]


class Different(AssertionError):
    """A result is not that of the CPU."""


FLOATS = ("float16", "bfloat16", "float32", "float64")
REALS = (*FLOATS, "uint8")


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    """Random numbers; half of the arrays have ties and zeros of both signs."""
    import torch

    if dtype == "uint8":
        return torch.from_numpy(rng.integers(0, 256, shape, dtype=np.uint8))
    x = rng.standard_normal(shape)
    if rng.random() < 0.5:
        x = np.round(x * 2) / 2 * np.where(rng.random(shape) < 0.2, -1, 1)
    return torch.from_numpy(x).to(getattr(torch, dtype))


def _maps(call: Call) -> Maker:
    return lambda rng, h, w, dtype: ({"a": _values(rng, (2, h, w), dtype)}, call)


def _images(call: Call, layout: str = "NCHW") -> Maker:
    def make(rng: np.random.Generator, h: int, w: int, dtype: str) -> tuple[Arguments, Call]:
        import torch

        shape = (2, 3, h, w) if layout == "NCHW" else (2, h, w, 3)
        mask = torch.from_numpy(rng.random((2, h, w)) < 0.4)
        index = torch.from_numpy(rng.integers(0, 2**40, 2))
        return {
            "x": _values(rng, shape, dtype),
            "mask": mask,
            "a": _values(rng, (2, h, w), "float32"),
            "i": index,
        }, call

    return make


def _batch(call: Call, layout: str) -> Maker:
    def make(rng: np.random.Generator, h: int, w: int, dtype: str) -> tuple[Arguments, Call]:
        import torch

        shape = (4, 3, h, w) if layout == "NCHW" else (4, h, w, 3)
        codes = torch.from_numpy(rng.integers(0, 10, (4, h, w), dtype=np.uint8))
        rows = torch.from_numpy(rng.integers(0, 4, 3))
        return {"x": _values(rng, shape, "uint8"), "codes": codes, "rows": rows, "dtype": dtype}, call

    return make


def _cases() -> list[Case]:
    cases = [
        Case("total_variation", FLOATS, _maps(lambda a: rf.total_variation(a))),
        Case("sobel", FLOATS, _maps(lambda a: rf.sobel(a))),
        Case("percentile", REALS, _maps(lambda a: rf.percentile(a, [0, 10, 50, 99.5]))),
        Case("rank_codes", REALS, _maps(lambda a: rf.rank_codes(a, RATES))),
        Case("rank_codes", REALS, _maps(lambda a: rf.rank_codes(a, RATES, rule="percentile", order="lerf"))),
        Case("removal_mask", REALS, _maps(lambda a: rf.removal_mask(a, 0.3, seed=3))),
        Case("removed_fraction", ("uint8",), _maps(lambda a: rf.removed_fraction(a, 100))),
        Case("code_sums", REALS, _maps(lambda a: rf.code_sums(a, rf.rank_codes(a, RATES), len(RATES) + 1))),
        Case("distance_transform", ("int64",), _images(lambda mask, **_: rf.distance_transform(mask, squared=True))),
        Case("mask_geometry", ("int64",), _images(lambda mask, **_: rf.mask_geometry(mask))),
        Case("philox_normal", ("int64",), _images(lambda i, **_: rf.philox_normal(i, (3, 7, 5)))),
        Case("impute_linear", ("float32", "uint8"), _images(lambda x, mask, **_: rf.impute_linear(x, mask)), 2e-5),
        Case("impute_linear", ("float64",), _images(lambda x, mask, **_: rf.impute_linear(x, mask, tol=1e-8)), 2e-8),
    ]
    for border in BORDERS:
        filters: dict[str, Call] = {
            "gaussian_filter": lambda a, b=border: rf.gaussian_filter(a, (1.0, 1.5), mode=b, cval=0.7),
            "maximum_filter": lambda a, b=border: rf.maximum_filter(a, (3, 5), mode=b, cval=0.7),
        }
        cases += [Case(name, FLOATS, _maps(call)) for name, call in filters.items()]
    cases.append(Case("gaussian_filter", ("float32", "float64"), _maps(lambda a: rf.gaussian_filter(a, 10))))
    cases.append(Case("maximum_filter", REALS, _maps(lambda a: rf.maximum_filter(a, 41))))
    for layout in ("NCHW", "NHWC"):
        for value in (0.5, (1, 2, 3), "kept_mean", "image_mean", "noise"):
            cases.append(Case("fill", REALS, _images(
                lambda x, mask, i, v=value, o=layout, **_: rf.fill(x, mask, v, layout=o, index=i), layout)))  # fmt: skip
        cases.append(Case("remove", REALS, _images(
            lambda x, a, i, o=layout, **_: rf.remove(x, a, 0.3, index=i, layout=o), layout)))  # fmt: skip
        cases.append(Case("gather_batch", ("float16", "bfloat16", "float32"), _batch(
            lambda x, codes, rows, dtype, o=layout: rf.gather_batch(
                x, rows, codes, 4, layout=o, out_layout=o, pad=2, random_crop=True, flip=True, mean=0.4, std=0.3,
                dtype=dtype), layout)))  # fmt: skip
        cases.append(Case("gather_batch_resized", ("float16", "bfloat16", "float32"), _batch(
            lambda x, codes, rows, dtype, o=layout: rf.gather_batch(
                x, rows, codes, 4, layout=o, out_layout=o, scale=(0.2, 1.0), crop=9, flip=True, mean=0.4, std=0.3,
                dtype=dtype), layout)))  # fmt: skip
    return cases


@contextlib.contextmanager
def _kernels_of(device: str) -> Iterator[str]:
    """Runs ops of the block on `device`; yields where torch puts its tensors."""
    if device in HOST_BACKENDS:
        with _backend.use_host_backend(device):
            yield "cpu"
    else:
        yield device


def _to(a: torch.Tensor, device: str, place: str) -> Array:
    """A tensor where `device` takes it; the interpreter of PTX wants NumPy arrays, which say where they end."""
    return a.numpy() if device == "ptx" else a.to(place)


def _difference(got: Array, wanted: Array) -> float:
    """The largest difference; 0 if every bit is the same, infinity if something is finite in only one of them.

    Zeros of either sign are equal, and so are NaNs.
    """
    import torch

    got = torch.from_numpy(np.asarray(got)) if isinstance(got, (np.ndarray, np.generic)) else got.cpu()
    expected = torch.as_tensor(wanted)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return float("inf")
    if torch.equal(got, expected):
        return 0.0
    a, b = got.double(), expected.double()
    same = (a == b) | (a.isnan() & b.isnan())
    return float(torch.where(same, 0.0, (a - b).abs()).nan_to_num(nan=float("inf")).max())


def compare_ops(device: str, quick: bool = False, seed: int = 0) -> list[OpRow]:
    """Every op on `device` against the CPU, over shapes, dtypes, borders and layouts: a row per op."""
    rows: dict[str, OpRow] = {}
    for number, case in enumerate(_cases()):
        row = rows.setdefault(
            case.op, {"op": case.op, "comparisons": 0, "different": 0, "worst": 0.0, "first_difference": ""}
        )
        for h, w in SHAPES[2:5:2] if quick else (*SHAPES, LARGE):
            for dtype in case.dtypes[-1:] if quick else case.dtypes:
                if device == "ptx" and dtype == "bfloat16":
                    continue  # which NumPy does not have
                rng = np.random.default_rng((seed, number, h, w))
                arrays, call = case.make(rng, h, w, dtype)
                what = f"{h} x {w} {dtype}, case {number}, seed {seed}"
                row["comparisons"] += 1
                try:
                    expected = call(**arrays)
                    with _kernels_of(device) as place:
                        got = call(**{k: a if isinstance(a, str) else _to(a, device, place) for k, a in arrays.items()})
                        difference = _difference(got, expected)
                except Exception as error:
                    difference, what = float("inf"), f"{what}: {type(error).__name__}: {error}"
                scale = 255.0 if dtype == "uint8" and case.tolerance else 8.0 if case.tolerance else 1.0
                row["worst"] = max(row["worst"], difference)
                if difference > case.tolerance * scale:
                    row["different"] += 1
                    row["first_difference"] = row["first_difference"] or what
    return list(rows.values())


def _graph_capture(device: str) -> str:
    """A CUDA graph of a training batch's ops, replayed on new data."""
    import torch

    x, a = torch.rand(4, 3, 32, 32, device=device), torch.rand(4, 32, 32, device=device)

    def work() -> torch.Tensor:
        removed = rf.remove(x, a, 0.3, fill=(0.1, 0.2, 0.3), nan="ignore")
        filled = rf.impute_linear(x, a > 0.5, check_result=False)
        return rf.gaussian_filter(removed, 2) + filled

    side = torch.cuda.Stream(device)
    side.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream(device).wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = work()
    x.copy_(torch.rand_like(x))
    graph.replay()
    if not torch.equal(captured, work()):
        raise Different("a replayed graph gives another result than the ops")
    return "remove, impute_linear and gaussian_filter captured and replayed"


def _streams(device: str) -> str:
    """The same work on eight streams at once."""
    import torch

    a = torch.rand(16, 224, 224, device=device)
    expected = rf.rank_codes(a, RATES)
    torch.cuda.synchronize(device)
    results = []
    for _ in range(8):
        stream = torch.cuda.Stream(device)
        with torch.cuda.stream(stream):
            results.append(rf.rank_codes(a, RATES, nan="ignore"))
    torch.cuda.synchronize(device)
    if not all(torch.equal(r, expected) for r in results):
        raise Different("rank_codes on eight streams differ")
    return "rank_codes on eight streams"


def _second_device(device: str) -> str:
    """The second GPU gives what the first gives, while the first is the current one."""
    import torch

    a = torch.rand(4, 64, 64)
    first, second = (rf.gaussian_filter(a.to(f"cuda:{i}"), 2).cpu() for i in (0, 1))
    if not torch.equal(first, second):
        raise Different("cuda:0 and cuda:1 differ")
    return "gaussian_filter on cuda:0 and cuda:1"


def _training_step(device: str) -> str:
    """Three steps of a small net on batches with removed pixels; the loss must fall."""
    import torch

    with _kernels_of(device) as place:
        rng = np.random.default_rng(0)
        host = torch.from_numpy(rng.integers(0, 256, (16, 3, 16, 16), dtype=np.uint8))
        images, maps, rows = (_to(a, device, place) for a in (host, host.float().mean(1), torch.arange(16)))
        codes = rf.rank_codes(maps, RATES)
        labels = torch.arange(16, device=place) % 2
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 2)).to(place)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        losses = []
        for epoch in range(3):
            x = torch.as_tensor(rf.gather_batch(images, rows, codes, 1, mean=0.5, std=0.25, epoch=epoch))
            loss = torch.nn.functional.cross_entropy(net(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    if not losses[-1] < losses[0]:
        raise Different(f"the loss does not fall: {losses}")
    return f"loss {losses[0]:.3f} to {losses[-1]:.3f}"


def _run_check(name: str, check: Callable[[str], str], device: str) -> CheckRow:
    try:
        return {"name": name, "ok": True, "detail": check(device)}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        detail = f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"
        return {"name": name, "ok": False, "detail": detail}


def run(device: str = "cuda", quick: bool = False, seed: int = 0) -> Report:
    """Tests the kernels of a device.

    Args:
        device: `"cuda"`, `"cuda:1"`, or `"cpu"`, `"simt"`, `"ptx"` for kernels on the host.
        quick: Few shapes and one dtype per op: seconds instead of a minute.
        seed: Other numbers.

    Returns:
        The report: plain values for JSON, valid for `check_report`; `report["ok"]` is the outcome.

    Raises:
        BackendError: If the device or its kernels are not there.
    """
    import torch

    checks: list[tuple[str, Callable[[str], str]]] = [("training step", _training_step)]
    if device.split(":")[0] == "cuda":
        if not torch.cuda.is_available():
            raise rf.BackendError(f"torch {torch.__version__} sees no CUDA device")
        _backend.cuda()
        name = torch.cuda.get_device_name(device)
        checks += [("graph capture", _graph_capture), ("streams", _streams)]
        if torch.cuda.device_count() > 1:
            checks.append(("second device", _second_device))
    elif device in HOST_BACKENDS:
        with _backend.use_host_backend(device):
            _backend.host()
        name = platform.processor() or platform.machine()
    else:
        raise ValueError(f"device must be 'cuda', 'cuda:N' or one of {', '.join(HOST_BACKENDS)}, got {device!r}")
    started = time.perf_counter()
    ops = compare_ops(device, quick, seed)
    done = [_run_check(title, check, device) for title, check in checks]
    return {
        "schema": SCHEMA,
        "ok": all(row["different"] == 0 for row in ops) and all(check["ok"] for check in done),
        "device": device,
        "device_name": name,
        "torch": torch.__version__,
        "build": info.gather(),
        "seed": seed,
        "seconds": round(time.perf_counter() - started, 3),
        "ops": ops,
        "checks": done,
    }


_TOP: dict[str, type | tuple[type, ...]] = {
    "schema": int,
    "ok": bool,
    "device": str,
    "device_name": str,
    "torch": str,
    "build": dict,
    "seed": int,
    "seconds": (int, float),
    "ops": list,
    "checks": list,
}
_OP: dict[str, type | tuple[type, ...]] = {
    "op": str,
    "comparisons": int,
    "different": int,
    "worst": (int, float),
    "first_difference": str,
}
_CHECK = {"name": str, "ok": bool, "detail": str}


def check_fields(what: str, got: object, expected: Mapping[str, type | tuple[type, ...]]) -> None:
    """ValueError that names the field if the dict `got` has not exactly the `expected` fields and types."""
    if not isinstance(got, dict) or set(got) != set(expected):
        raise ValueError(f"{what} must have the fields {', '.join(expected)}, got {got!r:.200}")
    for name, kind in expected.items():
        if not isinstance(got[name], kind) or (isinstance(got[name], bool) and kind is not bool):
            raise ValueError(f"{what}.{name} must be {kind}, got {got[name]!r:.100}")


def check_report(report: Any) -> None:
    """ValueError that names the field if `report` is not what `run` makes."""
    check_fields("report", report, _TOP)
    if report["schema"] != SCHEMA:
        raise ValueError(f"report.schema must be {SCHEMA}, got {report['schema']}")
    for i, row in enumerate(report["ops"]):
        check_fields(f"report.ops[{i}]", row, _OP)
    for i, row in enumerate(report["checks"]):
        check_fields(f"report.checks[{i}]", row, _CHECK)


def render(report: Report) -> str:
    """The same for people."""
    lines = [f"{report['device']}: {report['device_name']}, torch {report['torch']}, {report['seconds']:.0f} s"]
    for row in report["ops"]:
        outcome = f"{row['different']} DIFFERENT, first: {row['first_difference']}" if row["different"] else "equal"
        lines.append(f"  {row['op']:<18} {row['comparisons']:>5} comparisons, {outcome}")
    lines += [f"  {c['name']:<18} {'ok' if c['ok'] else 'FAILED'}: {c['detail']}" for c in report["checks"]]
    lines.append("passed" if report["ok"] else "FAILED: please send the output of `roarfast selftest --json`")
    return "\n".join(lines)


def show(device: str, as_json: bool = False, quick: bool = False, out: str | None = None) -> int:
    """Runs and prints, or writes to the file `out`; the exit code: 0 passed, 1 failed, 2 could not be run."""
    try:
        report = run(device, quick)
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"roarfast selftest: {error}", file=sys.stderr)
        return 2
    text = json.dumps(report, indent=2)
    if out is not None:
        Path(out).write_text(text + "\n")
    print(text if as_json else render(report))
    return 0 if report["ok"] else 1
