"""Bits of class information that models have left, at least: H(Y) less their cross entropy, also after temperature scaling.

Song et al. speak of I(X'; Y), the information that modified images have on the class. No accuracy measures it; the cross
entropy of any model bounds it from below, and mending the model's confidence by a temperature tightens the bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roarfast.report.audit import Audit, Count
from roarfast.report.figures.curves import overview
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import BITS, Cell, Panel, pretty
from roarfast.report.stats import Interval
from roarfast.report.table import Cells, Row, Table, Td, table
from roarfast.report.text import p_text
from roarfast.study.records import StudyResults

WORDS = {"bits": "as the model is", "scaled_bits": "temperature scaled"}


@dataclass(frozen=True)
class Bits:
    """What the report shows of bits.

    Attributes:
        entropy: Of the classes of the test images, in bits.
        measured: Whether it is that of their labels; else (older runs) it is as if all classes were equally frequent.
        figure: All plain maps.
        scaled: The same after temperature scaling; None in runs from before it was computed.
        tables: Every number, a table per panel.
        temperatures: The lowest and highest that was fitted, None without.
    """

    entropy: float
    measured: bool
    figure: Figure
    scaled: Figure | None
    tables: list[Table]
    temperatures: tuple[float, float] | None


def class_entropy(meta: Mapping[str, object]) -> tuple[float, bool] | None:
    """H(Y) in bits, and whether it was measured; None if not even the number of classes is known."""
    if isinstance(found := meta.get("label_entropy"), (int, float)):
        return float(found), True
    classes = meta.get("classes")
    return (math.log2(classes), False) if isinstance(classes, (int, float)) and classes else None


def bits(results: StudyResults, panels: Sequence[Panel], pictures: Path) -> Bits | None:
    """Figures and tables; None where no cell has a cross entropy."""
    known, entropy = _having(panels, "bits"), class_entropy(results.meta)
    if not known or entropy is None:
        return None
    scaled = _having(panels, "scaled_bits")
    fitted = [t for panel in scaled for cell in panel.cells.values() for t in cell.values("temperature")]
    return Bits(
        *entropy,
        overview(known, pictures, "bits", entropy[0]),
        overview(scaled, pictures, "scaled_bits", entropy[0]) if scaled else None,
        [bits_table(panel, entropy[0]) for panel in known],
        (min(fitted), max(fitted)) if fitted else None,
    )


def _having(panels: Sequence[Panel], name: str) -> list[Panel]:
    return [panel for panel in panels if any(cell.values(name) for cell in panel.cells.values())]


def bits_table(panel: Panel, entropy: float) -> Table:
    """Every number of a panel, rates as columns."""
    rows: list[Cells] = []
    for estimator in panel.estimators:
        for k in panel.postprocesses:
            for name, words in WORDS.items():
                cells = [panel.get(estimator, k, t) for t in panel.drops]
                if any(cell and cell.values(name) for cell in cells):
                    values = (_td(cell, name, entropy) for cell in cells)
                    rows.append([pretty(estimator), Td(k, css="text"), Td(words, css="text"), *values])
    caption = f"Bits left of {entropy:.3f}, mean ± half the 95 % interval; {panel.title}."
    columns = ["Estimator", "k", "Confidence", *(f"t = {t:g}" for t in panel.drops)]
    return table(f"{panel.slug}-bits", caption, columns, rows)


def _td(cell: Cell | None, name: str, entropy: float) -> Td:
    found = cell.interval(name) if cell else Interval(math.nan, math.nan, math.nan, math.nan, 0)
    if not found.n:
        return Td("–")
    half = "" if math.isnan(found.half_width) else f" ± {found.half_width:.3f}"
    return Td(f"{entropy + found.mean:.3f}{half}".replace("-", "−"), entropy + found.mean)


def bits_counts_table(a: Audit) -> Table | None:
    """How often each k moved the bits; None where they are not known."""
    rows: list[Cells] = []
    for name, counts in a.bits.items():
        for c in counts:
            d, untested = c.overall.difference, "" if c.tested else "–"
            rows.append(
                [
                    c.postprocess,
                    Td(WORDS[name], css="text"),
                    Td(str(c.cells), c.cells),
                    Td(str(c.lower), c.lower),
                    Td(untested or str(c.lower_significant), c.lower_significant),
                    Td(str(c.higher), c.higher),
                    Td(untested or str(c.higher_significant), c.higher_significant),
                    Td(_signed(d.mean), d.mean),
                    Td("–" if math.isnan(d.low) else f"{_signed(d.low)} to {_signed(d.high)}", d.low),
                    Td(p_text(c.overall.p), c.overall.p),
                ]
            )
    if not rows:
        return None
    caption = (
        "Conjecture 3.3 of Song et al. in bits: in how many (estimator, t) did k change what the tested model has left of the "
        "class? Tests and mean change (in bits) as in the table of accuracies; each line of confidence is a family of its own."
    )
    columns = [
        "k",
        "Confidence",
        "(estimator,\u00a0t)",
        "lower",
        "significantly lower",
        "higher",
        "significantly higher",
        "mean change",
        "95 % interval",
        "p of mean",
    ]
    return table(f"{a.panel.slug}-bits-counts", caption, columns, rows)


def bits_sentence(a: Audit) -> str:
    """The counts in bits beside those in accuracy; empty where bits are not known."""
    if not a.bits:
        return ""
    told = [
        _told(counts) + {"bits": "", "scaled_bits": " after temperature scaling"}[n] for n, counts in a.bits.items()
    ]
    accuracy = sum(c.lower for c in a.counts)
    return (
        f"In bits, as Conjecture 3.3 of Song et al. has it (I(X′; Y), here a lower bound): k left fewer in {'; '.join(told)}. "
        f"In accuracy: lower in {accuracy} of {sum(c.cells for c in a.counts)}."
    )


def _told(counts: Sequence[Count]) -> str:
    cells, lower = (sum(getattr(c, name) for c in counts) for name in ("cells", "lower"))
    significant = sum(c.lower_significant for c in counts)
    tested = lower and any(c.tested for c in counts)
    return f"{lower} of {cells}" + (f" ({significant} significantly)" if tested else "")


def _signed(value: float) -> str:
    if math.isnan(value):
        return "–"
    text = f"{value:+.3f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def bits_rows(audits: Sequence[Audit], meta: Mapping[str, object]) -> Iterable[Row]:
    """`bits.csv`: bits of every cell, mean over trials."""
    known = class_entropy(meta)
    entropy = math.nan if known is None else known[0]
    for a in audits:
        for key, cell in a.panel.cells.items():
            if not cell.values("bits"):
                continue
            row = a.panel.row | {
                "estimator": key.estimator,
                "postprocess": key.postprocess,
                "drop": key.drop,
                "class_entropy": entropy,
            }
            for name in BITS:
                found = cell.interval(name)
                row |= {name: entropy + found.mean, f"{name}_low": entropy + found.low}
                row |= {f"{name}_high": entropy + found.high}
            yield row | {"temperature": cell.mean("temperature"), "trials": len(cell.values("bits"))}


def bits_count_rows(audits: Sequence[Audit]) -> Iterable[Row]:
    """`bits_counts.csv`: how often each k moved the bits."""
    for a in audits:
        for name, counts in a.bits.items():
            for c in counts:
                yield a.panel.row | {"measure": name} | {k: v for k, v in c.row.items() if k != "improved"}
