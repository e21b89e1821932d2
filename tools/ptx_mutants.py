"""Breaks nvcc's PTX in small ways, one at a time, and says whether the tests' instrument notices.

Every barrier of every kernel is removed in turn; then bugs of the kinds that people make are put in by hand (BUGS). A mutant is
noticed if a probe faults or differs from the CPU. Nothing is compiled: the interpreter (tests/backends/ptx) runs the changed text.

    python tools/ptx_mutants.py                     # all; exit status 1 if one goes unnoticed that REDUNDANT does not explain
    python tools/ptx_mutants.py --only sobel cg.h   # barriers at places, and bugs, whose name has one of these
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
from helpers.ptx import counted, options, ptx_backend  # noqa: E402

import roarfast as rf  # noqa: E402
from roarfast import _backend  # noqa: E402

# Barriers that no probe misses, as `file: the line of code before`, and why they stay. None: a barrier that nobody needs goes.
REDUNDANT: dict[str, str] = {}


def before(place: str) -> str:
    """`file: text` of the nearest line with code before a place; a name for a barrier that outlives line numbers."""
    name, _, number = place.partition(":")
    for path in (ROOT / "csrc" / "cuda").rglob(name):
        for line in reversed(path.read_text().splitlines()[: int(number or 1) - 1]):
            if re.search(r"\w", line.partition("//")[0]):
                return f"{name}: {line.partition('//')[0].strip()}"
    return place


@dataclass(frozen=True, eq=False)
class Probe:
    """One call, compared with the CPU; exactly, or to a tolerance."""

    op: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tolerance: float = 0.0

    def __call__(self) -> Any:
        """Runs it on the host backend of the moment."""
        return self.op(*self.args, **self.kwargs)


def probes() -> dict[str, list[Probe]]:
    """Small calls that go through every kernel's paths, by op."""
    rng = np.random.default_rng(0)
    nine, many = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], list(np.linspace(0, 1, 40))
    x = rng.standard_normal((3, 33, 47)).astype(np.float32)
    ties = np.round(2 * x)
    nchw = rng.standard_normal((2, 3, 33, 47)).astype(np.float32)
    mask = rng.random((2, 33, 47)) < 0.5
    big, big_mask = rng.standard_normal((1, 1, 70, 75)).astype(np.float32), rng.random((1, 70, 75)) < 0.7
    dense = rng.random((2, 33, 47)) < 0.93  # so that coarse levels are used
    small, small_dense = nchw[:, :, :31, :29].copy(), dense[:, :31, :29].copy()
    codes = rng.integers(0, 10, (2, 33, 47), dtype=np.uint8)
    u8 = rng.integers(0, 256, (2, 3, 33, 47), dtype=np.uint8)

    # Thresholds at and just below the middle of two values, which rounding puts in the wrong order: bounds must be nested.
    disordered = np.float32(
        [[*np.linspace(-3, -2, 64), -0.13210485875606537, 0.1257302165031433, *np.linspace(2, 3, 64)]]
    )

    def call(op: Any, *args: Any, tolerance: float = 0.0, **kwargs: Any) -> Probe:
        return Probe(op, args, kwargs, tolerance)

    return {
        "sobel": [call(rf.sobel, x, axis) for axis in (-1, -2)],
        "gaussian_filter": [call(rf.gaussian_filter, x, sigma) for sigma in (1.0, 3.0, 10.0)],
        "maximum_filter": [call(rf.maximum_filter, x, size) for size in (3, 15, (15, 3), 41)]
        + [call(rf.maximum_filter, nchw, 200), call(rf.maximum_filter, codes, 3)],
        "total_variation": [call(rf.total_variation, x), call(rf.total_variation, x, "isotropic", "minmax")],
        "removal_mask": [
            call(rf.removal_mask, a, 0.3, rule) for a in (x, ties) for rule in ("exact", "percentile", "strict")
        ],
        "rank_codes": [
            call(rf.rank_codes, a, rates, rule)
            for a in (x, ties)
            for rates in (nine, many)
            for rule in ("exact", "percentile", "strict")
        ],
        "percentile": [call(rf.percentile, a, [10.0, 50.0]) for a in (x, ties)]
        + [call(rf.percentile, x, list(np.linspace(0, 100, 30)))],
        "nested bounds": [call(rf.rank_codes, np.tile(disordered, (3, 1, 1)), [0.5, 0.5000000001], "percentile")],
        "nan ignored": [
            call(op, ties, arg, nan="ignore")
            for op, arg in ((rf.removal_mask, 0.3), (rf.rank_codes, nine), (rf.percentile, [5.0, 60.0]))
        ],
        "removed_fraction": [call(rf.removed_fraction, codes, 4)],
        "fill": [call(rf.fill, nchw, mask, value) for value in ("kept_mean", 1.0, "noise")]
        + [call(rf.fill, np.ascontiguousarray(np.moveaxis(nchw, 1, -1)), mask, "kept_mean", layout="NHWC")],
        "remove": [call(rf.remove, nchw, x[:2], 0.3, value) for value in ("kept_mean", "image_mean", 1.0)],
        "gather_batch": [
            call(rf.gather_batch, u8, np.array([1, 0]), codes, 4),
            call(rf.gather_batch, u8, np.array([1, 0]), codes, 4, pad=3, random_crop=True, flip=True, seed=5),
            call(
                rf.gather_batch,
                np.ascontiguousarray(np.moveaxis(u8[..., :32, :32], 1, -1)),
                np.array([1, 0]),
                np.ascontiguousarray(codes[:, :32, :32]),
                4,
                layout="NHWC",
                out_layout="NHWC",
            ),
            call(rf.gather_batch, u8, np.array([1, 0]), codes, 4, imputed=u8.astype(np.float16), crop=(32, 45)),
            call(rf.gather_batch, u8, np.array([1, 0]), codes, 4, scale=(0.1, 1.0), crop=(40, 24), flip=True, seed=5),
        ],
        "block_random": [call(rf.block_random, (9, 33, 47), 0.4)],
        "pixel_random": [call(rf.pixel_random, (2, 33, 47), 12345)],
        "philox_normal": [call(rf.philox_normal, np.arange(2), (33, 47))],
        "code_sums": [call(rf.code_sums, x[:2], codes, 10)],
        "distance_transform": [call(rf.distance_transform, m) for m in (mask, dense)],
        "mask_geometry": [call(rf.mask_geometry, mask)],
        "value rule": [call(rf.removal_mask, np.abs(x), 0.3, "value"), call(rf.rank_codes, np.abs(x), nine, "value")],
        "impute_linear": [
            call(rf.impute_linear, nchw, mask, 0.0, tolerance=1e-4),
            call(rf.impute_linear, nchw, dense, 0.0, tolerance=1e-4),
            call(rf.impute_linear, small, small_dense, 0.0, tolerance=1e-4),
            call(rf.impute_linear, small, small_dense, 0.0, weights=np.ones((3, 3)), tolerance=1e-4),
            call(rf.impute_linear, big, big_mask, 0.0, tolerance=1e-4),
            call(rf.impute_linear, big.astype(np.float64), big_mask, 0.0, tol=1e-9, tolerance=1e-7),
            call(rf.impute_linear, nchw, np.ones_like(mask), 0.0, tolerance=1e-4),
            call(rf.impute_linear, np.ones_like(big), big_mask, 0.0, tolerance=1e-4),  # nothing to solve
            call(rf.impute_linear, nchw[:1], mask[:1], 0.0, weights=[[0, 1, 0], [0, 0, 0], [0, 1, 0]], tolerance=1e-3),
        ],
    }


@dataclass(frozen=True)
class Bug:
    """Replaces one instruction of one kernel: the first that matches `pattern` and that the probes execute."""

    name: str
    op: str  # whose probes must notice
    kernel: str  # in the readable name
    pattern: str
    replacement: str


BUGS = [
    Bug(
        "histogram counts without atomics",
        "rank_codes",
        "rank_codes_kernel<float",
        r"atom\.shared\.add\.u32\s+(%\w+), (\[\S+\]), (\S+);",
        r"{.reg .b32 %m; ld.shared.u32 %m, \2; add.u32 %m, %m, \3; st.shared.u32 \2, %m;}",
    ),
    Bug("no __syncwarp in the digit search", "rank_codes", "rank_codes_kernel<float", r"bar\.warp\.sync\s+\S+;", ""),
    Bug(
        "scan over the wrong distance",
        "rank_codes",
        "rank_codes_kernel<float",
        r"(shfl\.sync\.up\.b32\s+\S+, %\w+, )%\w+,",
        r"\g<1>3,",
    ),
    Bug(
        "reads one element further", "sobel", "sobel_kernel<float", r"(ld\.global[.\w]*f32\s+%\w+, \[%\w+)\]", r"\1+4]"
    ),
    Bug(
        "writes one element further", "sobel", "sobel_kernel<float", r"(st\.global\.f32\s+\[%\w+)(?:\+\d+)?\]", r"\1+4]"
    ),
    Bug("shared index off by one", "gaussian_filter", "gaussian", r"(st\.shared\.f32\s+\[%\w+)(?:\+\d+)?\]", r"\1+4]"),
    Bug(
        "shared index far outside",
        "maximum_filter",
        "max",
        r"(ld\.shared\.f32\s+%\w+, \[%\w+)(?:\+\d+)?\]",
        r"\1+262144]",
    ),
    Bug("maximum becomes minimum", "maximum_filter", "max", r"setp\.gt\.f32", "setp.lt.f32"),
    Bug("mask read at the wrong pixel", "fill", "fill", r"(ld\.global[.\w]*u8\s+%\w+, \[%\w+)\]", r"\1+1]"),
    Bug("sum instead of difference", "total_variation", "tv", r"sub\.rn\.f32", "add.rn.f32"),
    Bug("reduction misses a half", "total_variation", "tv", r"(shfl\.sync\.down\.b32\s+\S+, %\w+, )%\w+,", r"\g<1>1,"),
    Bug(
        "another Philox multiplier",
        "pixel_random",
        "pixel_random",
        r"(mul\.wide\.u32\s+%\w+, %\w+, )-?\d+;",
        r"\g<1>12345;",
    ),
    Bug("rounds down instead of to nearest", "gather_batch", "gather", r"mul\.rn\.f32", "add.rn.f32"),
    Bug(
        "a thread leaves before the barrier",
        "removed_fraction",
        "removed_fraction",
        r"(bar\.sync\s+0;)",
        r"{.reg .pred %q; .reg .u32 %t; mov.u32 %t, %tid.x; setp.eq.u32 %q, %t, 7; @%q ret; \1}",
    ),
]


def notices(mutant_probes: Sequence[Probe], expected: dict[int, np.ndarray]) -> str:
    """What the first probe that notices says, or an empty text."""
    for cap in (0, 1):
        for probe in mutant_probes:
            with options(races=True, seed=1, grid_cap=cap, most_instructions=300_000_000), ptx_backend():
                try:
                    got = probe()
                except (RuntimeError, ValueError) as error:
                    return str(error).replace("CUDA launch failed: ", "")[:110]
            want = expected[id(probe)]
            if probe.tolerance:
                worst = float(np.max(np.abs(np.asarray(got, float) - want)))
                if not worst <= probe.tolerance:
                    return f"differs by {worst:.3g}"
            elif not np.array_equal(got, want, equal_nan=True):
                return f"{int(np.sum(np.asarray(got) != want))} of {np.size(want)} elements differ"
    return ""


def barrier_places(module: Any) -> dict[str, set[str]]:
    """Source lines with a barrier; the symbols of the kernels they are in."""
    places: dict[str, set[str]] = {}
    for kernel in module.ptx_kernels():
        for place, text, *_ in kernel["instructions"]:
            # __syncthreads_or() and its like are not there for memory alone.
            if re.match(r"(@\S+\s+)?bar(rier)?\.sync", text) and not place.startswith("selftest"):
                places.setdefault(place, set()).add(kernel["symbol"])
    return places


def remove_barriers(
    module: Any, by_op: dict[str, list[Probe]], expected: dict[int, np.ndarray], only: Sequence[str]
) -> list[str]:
    """Prints a line per barrier; returns the source lines of those that went unnoticed."""
    reaches: dict[str, list[Probe]] = {}
    for group in by_op.values():
        for probe in group:
            for launch in counted(probe)[1]:
                for place in launch["lines"]:
                    reaches.setdefault(place, []).append(probe)
    unnoticed = []
    places = [p for p in sorted(barrier_places(module)) if not only or any(text in p for text in only)]
    for place in places:
        if place not in reaches:
            print(f"NOT REACHED by a probe: {place}")
            unnoticed.append(before(place))
            continue
        module.ptx_disable_barriers(place)
        try:
            said = notices(list(dict.fromkeys(reaches[place])), expected)
        finally:
            module.ptx_restore_barriers()
        print(f"{'noticed' if said else 'UNNOTICED':10} no barrier at {place:28} {said}", flush=True)
        if not said:
            unnoticed.append(before(place))
    print(f"{len(places) - len(unnoticed)} of {len(places)} removed barriers noticed")
    return unnoticed


def put_in_bugs(
    module: Any, by_op: dict[str, list[Probe]], expected: dict[int, np.ndarray], only: Sequence[str]
) -> list[str]:
    """Prints a line per bug; returns the names of those that went unnoticed."""
    unnoticed = []
    bugs = [bug for bug in BUGS if not only or any(text in f"{bug.op} {bug.name}" for text in only)]
    kernels = module.ptx_kernels()  # with what the probes executed, which another text forgets
    for bug in bugs:
        said, changed = "", False
        for kernel in kernels:
            if bug.kernel not in kernel["kernel"] or said:
                continue
            text = module.ptx_text(kernel["symbol"])
            mutant = mutate(text, kernel, bug)
            if mutant == text:
                continue
            changed = True
            module.ptx_replace_text(kernel["symbol"], mutant)
            try:
                said = notices(by_op[bug.op], expected)
            finally:
                module.ptx_replace_text(kernel["symbol"], text)
        print(
            f"{'noticed' if said else 'UNNOTICED' if changed else 'NO SUCH INSTRUCTION':10} {bug.op}: {bug.name:36} {said}",
            flush=True,
        )
        if not said:
            unnoticed.append(bug.name)
    print(f"{len(bugs) - len(unnoticed)} of {len(bugs)} bugs noticed")
    return unnoticed


def mutate(text: str, kernel: dict[str, Any], bug: Bug) -> str:
    """The text with one instruction of the kernel replaced, or as it was if none of those that match was executed."""
    matching = [executed > 0 for _, code, executed, _ in kernel["instructions"] if re.search(bug.pattern, code + ";")]
    if not any(matching):
        return text
    begin = text.index(f".entry {kernel['symbol']}(")
    end = text.find(".entry ", begin + 10)
    body = text[begin : end if end > 0 else len(text)]
    match = list(re.finditer(bug.pattern, body))[matching.index(True)]
    return (
        text[:begin]
        + body[: match.start()]
        + match.expand(bug.replacement)
        + body[match.end() :]
        + text[begin + len(body) :]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT")
    options_given = parser.parse_args(arguments)
    module = _backend.ptx()
    by_op = probes()
    expected = {id(probe): np.asarray(probe()) for group in by_op.values() for probe in group}
    whole = notices([probe for group in by_op.values() for probe in group], expected)
    if whole:
        print(f"the kernels are not right to begin with: {whole}", file=sys.stderr)
        return 1
    left = remove_barriers(module, by_op, expected, options_given.only)
    left += put_in_bugs(module, by_op, expected, options_given.only)
    surprises = [name for name in left if name not in REDUNDANT]
    for name in surprises:
        print(f"unnoticed, and not explained in REDUNDANT: {name}", file=sys.stderr)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
