"""Ours beside the packages that `roarfast.compat` replaces parts of; run by `make bench-peers` in their environment.

One thread each, turns taken, the minimum of CPU time over the repeats. Results are compared before anything is timed. Rows
are merged into bench/latest.json under ops that begin with "compat" (also peers_dropins.py) or, whole scores (peers_scores.py), "scores".
Never fails because of a time, unless `--check`: `make bench-peers-check` compares the ratios of the quick rows with those in
bench/baseline.json, as test_regression.py does for the ops; a row that has none is held to its floor.
"""

# ruff: noqa: E402 - threads are set before anything is loaded, and torchvision must be prepared
from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import peers_dropins
import peers_scores
from helpers import peer_cases as cases
from saved import ATTEMPTS, TOLERANCE, save_ratios, saved_ratios, write_json

import roarfast as rf
from roarfast import compat
from roarfast._torchvision import import_torchvision
from roarfast.compat import grad_cam, quantus, torch_ops

import_torchvision()
import quantus as theirs_quantus
from pytorch_grad_cam.metrics import road as theirs_grad_cam
from quantus.helpers import asserts
from torchvision.transforms.functional import gaussian_blur


class Row(NamedTuple):
    """Ours against one peer; `floor` is the target."""

    op: str
    case: str
    rival: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    floor: float
    tol: float | None = 5e-5  # None: nothing to compare


def seeded(call: Callable[[], Any]) -> Any:
    """With the generators where they were for the other side."""
    cases.seed_everything(0)
    return call()


def one_image(case: cases.Case, what: str, floors: tuple[float, float, float]) -> Iterator[Row]:
    """One image per call."""
    theirs = theirs_quantus.functions.perturb_func.noisy_linear_imputation
    image, indices = case.image.astype(np.float32), np.random.default_rng(0).permutation(np.flatnonzero(case.removed))
    x, mask = torch.from_numpy(image), torch.from_numpy((~case.removed).astype(np.float32))
    imputer, mine = theirs_grad_cam.NoisyLinearImputer(), grad_cam.NoisyLinearImputer()
    philox = grad_cam.NoisyLinearImputer(noise_source="philox")
    op = "compat imputation"

    def ours() -> Any:
        return quantus.noisy_linear_imputation(image, indices)

    yield Row(op, f"{what}, their noise", "Quantus", ours, lambda: theirs(image, indices), floors[0])
    yield Row(op, f"{what}, their noise", "grad-cam", lambda: mine(x, mask), lambda: imputer(x, mask), floors[1])
    yield Row(
        op, f"{what}, Philox noise", "grad-cam", lambda: philox(x, mask), lambda: imputer(x, mask), floors[2], 0.2
    )


def many_images(count: int, share: float, floors: tuple[float, float]) -> Iterator[Row]:
    """Images of 32 x 32: one by one, where the call itself counts, and as one batch."""
    batch = torch.from_numpy(np.random.default_rng(1).random((count, 3, 32, 32)).astype(np.float32))
    kept = torch.from_numpy(~cases.large_case(share, 32).removed).float()
    masks = torch.stack([kept.roll(i, 1) for i in range(count)])
    mine, imputer = grad_cam.NoisyLinearImputer(), theirs_grad_cam.NoisyLinearImputer()

    def singly(call: Any) -> Any:
        return torch.stack([call(image, mask) for image, mask in zip(batch, masks)])

    op, what = "compat imputation", f"{count}x3x32x32, {share:.0%} removed"
    yield Row(op, f"{what}, one by one", "grad-cam", lambda: singly(mine), lambda: singly(imputer), floors[0])
    yield Row(
        op,
        f"{what}, one batch",
        "grad-cam",
        lambda: mine.batched_call(batch, masks),
        lambda: singly(imputer),
        floors[1],
    )


def rows(quick: bool) -> Iterator[Row]:
    """The table."""
    side = 64 if quick else 224
    for share, floors in ((0.5, (60, 80, 100)), (0.9, (120, 200, 250))):
        yield from one_image(cases.large_case(share, side), f"3x{side}x{side}, smooth, {share:.0%} removed", floors)
    rng = np.random.default_rng(1)
    for share, floors in ((0.5, (25, 90)), (0.9, (40, 150))):
        yield from many_images(16 if quick else 64, share, floors)
    images = np.zeros((8, 3, 224, 224), np.float32)
    maps = rng.random((8, 1, 224, 224)).astype(np.float32)

    def check() -> None:
        assert quantus.attributions_are_fine(images, maps)

    yield Row(
        "compat assert_attributions",
        "8 maps 224x224",
        "Quantus",
        check,
        lambda: asserts.assert_attributions(images, maps),
        300,
        None,
    )
    photo = torch.rand(3, 224, 224)
    yield Row(
        "compat gaussian_blur",
        "3x224x224, kernel 81",
        "torchvision",
        lambda: torch_ops.gaussian_blur(photo, 81),
        lambda: gaussian_blur(photo, 81),
        50,
    )
    values = torch.rand(224, 224)
    yield Row(
        "compat quantile",
        "224x224, q 0.9",
        "torch",
        lambda: torch_ops.quantile(values, 0.9),
        lambda: torch.quantile(values, 0.9),
        60,
    )
    small, cams = torch.rand(2, 3, 64, 64), cases.maps(2, 64, 64)
    model, targets = cases.small_model(3), [lambda out: out[0]] * 2

    def combined(module: Any) -> Any:
        return module.ROADCombined()(small, cams, targets, model)

    yield Row(
        "compat ROADCombined",
        "2x3x64x64, 19 passes for 36",
        "grad-cam",
        lambda: combined(grad_cam),
        lambda: combined(theirs_grad_cam),
        10,
    )
    yield from flipping(rng)
    yield from (Row(*fields) for fields in peers_dropins.rows(quick))
    yield from (Row(*fields) for fields in peers_scores.rows(quick))


def flipping(rng: np.random.Generator) -> Iterator[Row]:
    """Quantus' PixelFlipping with a model that costs nothing: what is left is Quantus itself."""
    x, a = rng.random((4, 1, 224, 224)).astype(np.float32), rng.random((4, 1, 224, 224)).astype(np.float32)
    free = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(1, 2)).eval()

    def run() -> Any:
        metric = theirs_quantus.PixelFlipping(features_in_step=8 * 224, disable_warnings=True)
        return np.array(metric(model=free, x_batch=x, y_batch=np.zeros(4, int), a_batch=a))

    def patched() -> Any:
        with compat.patch("quantus"):
            return run()

    yield Row("compat PixelFlipping", "4x1x224x224, 28 steps, free model", "Quantus", patched, run, 3)


def measure(row: Row, seconds: float) -> dict[str, Any]:
    """Compares, then times both in turns."""
    ours, theirs = seeded(row.ours), seeded(row.theirs)
    if row.tol is not None:
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=0, atol=row.tol)
    best = [float("inf"), float("inf")]
    spent, turns = 0.0, 0
    while spent < seconds or turns < (3 if spent < 5 * seconds else 2):  # rivals of half a minute: twice
        for side, call in enumerate((row.ours, row.theirs)):
            for _ in range(5 if side == 0 and spent < seconds else 1):
                cases.seed_everything(0)
                begin = time.process_time()
                call()
                took = time.process_time() - begin
                best[side] = min(best[side], took)
                spent += took
        turns += 1
    ratio = best[1] / best[0]
    return {
        "op": row.op,
        "case": row.case,
        "rival": row.rival,
        "ours_ms": 1e3 * best[0],
        "rival_ms": 1e3 * best[1],
        "ratio": ratio,
        "floor": row.floor,
        "reached": ratio >= row.floor,
    }


def compare(row: Row, first: dict[str, Any], seconds: float) -> str | None:
    """What to complain of: a row that is slower than saved in each of some tries."""
    saved = saved_ratios("peers").get(f"{row.op}, {row.case}", {}).get(row.rival)
    if saved is None:
        how = "no saved ratio (make bench-peers PEERS_ARGS='--quick --save-baseline'): held to its floor"
        print(f"    {how} of {row.floor:g}")
        return None if first["reached"] else f"{row.op}, {row.case}, {row.rival}: {how}, which it does not reach"
    relative = first["ratio"] / saved
    for _ in range(ATTEMPTS - 1):
        if relative >= 1 - TOLERANCE:
            return None
        relative = max(relative, measure(row, seconds)["ratio"] / saved)
    if relative >= 1 - TOLERANCE:
        return None
    return f"{row.op}, {row.case}, {row.rival}: {relative:.2f} of the saved ratio (allowed: {1 - TOLERANCE:.2f})"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller images: no floors, nothing written")
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="rows whose op, case or rival contain this (may be repeated)"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU time per row")
    parser.add_argument("--save-baseline", action="store_true", help="with --quick: save the ratios that --check needs")
    parser.add_argument("--check", action="store_true", help="with --quick: fail where a ratio has dropped by 30 %%")
    args = parser.parse_args()
    if (args.save_baseline or args.check) and not args.quick:
        parser.error("--save-baseline and --check need --quick: the saved ratios are of the quick rows")
    torch.set_num_threads(1)
    rf.set_num_threads(1)
    warnings.simplefilter("ignore")
    measured, complaints = [], []
    print(
        f"Quantus {theirs_quantus.__version__}, one thread, CPU time, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    for row in rows(args.quick):
        if args.only and not any(text in f"{row.op} {row.case} {row.rival}" for text in args.only):
            continue
        result = measure(row, args.seconds)
        measured.append(result)
        verdict = f"   floor {row.floor:g}x {'reached' if result['reached'] else 'NOT REACHED'}"
        print(
            f"{row.op:<28}{row.case:<50}{row.rival:<12}{result['ours_ms']:>9.3f} ms{result['rival_ms']:>10.2f} ms"
            f"{result['ratio']:>9.1f}x{'' if args.quick else verdict}",
            flush=True,
        )
        if args.check and (complaint := compare(row, result, args.seconds)):
            complaints.append(complaint)
    if args.save_baseline:
        versions = {"quantus": theirs_quantus.__version__, "grad-cam": version("grad-cam"), "torch": torch.__version__}
        about = {"date": time.strftime("%Y-%m-%d %H:%M:%S"), "threads": 1, "clock": "cpu", "versions": versions}
        save_ratios(measured, about, "peers")
    if args.check:
        print("\n".join(complaints) or f"{len(measured)} rows, none slower than saved")
        raise SystemExit(bool(complaints))
    if args.quick:
        return
    path = HERE / "latest.json"
    table = json.loads(path.read_text()) if path.exists() else {"rows": []}
    new = {(r["op"], r["case"], r["rival"]) for r in measured}
    table["rows"] = [r for r in table["rows"] if (r["op"], r["case"], r["rival"]) not in new] + measured
    write_json(path, table)
    print(f"merged into {path}")


if __name__ == "__main__":
    main()
