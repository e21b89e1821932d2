"""The numbers behind the report as CSV files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from roarfast._files import write_atomic
from roarfast.report.audit import Audit
from roarfast.report.bits import bits_count_rows, bits_rows
from roarfast.report.discrimination import random_rows, spread_rows
from roarfast.report.leakage import leakages
from roarfast.report.oracles import oracle_cells, oracle_rows
from roarfast.report.parts import StudyParts, parts_rows
from roarfast.report.regression import FEWEST_POINTS, POINT_SETS, TV_KINDS, fit_at
from roarfast.report.table import Row, csv_text
from roarfast.report.times import times
from roarfast.study.records import StudyResults


def write_tables(
    everything: StudyResults, audits: Sequence[Audit], parts: Sequence[StudyParts], folder: Path
) -> list[Path]:
    """Writes all tables; returns their paths.

    Args:
        everything: All records, also those of nulls.
        audits: Of every panel.
        parts: The damage taken apart.
        folder: Where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    everything.to_csv(folder / "records.csv")
    written = [folder / "records.csv"]
    for name, rows in (
        ("cells", _cells(audits)),
        ("differences", _differences(audits)),
        ("counts", _counts(audits)),
        ("ranks", _ranks(audits)),
        ("agreement", _agreement(audits)),
        ("fits", _fits(audits)),
        ("leakage", _leakage(everything)),
        ("times", _times(everything)),
    ):
        written.append(write_csv(folder / f"{name}.csv", rows))
    panels = [a.panel for a in audits]
    if random := list(random_rows(panels)):
        written.append(write_csv(folder / "random.csv", random))
    if spread := list(spread_rows(panels)):
        written.append(write_csv(folder / "spread.csv", spread))
    if masks := oracle_cells(everything):
        written.append(write_csv(folder / "oracles.csv", oracle_rows(masks)))
    if any(a.bits for a in audits):
        written.append(write_csv(folder / "bits_counts.csv", bits_count_rows(audits)))
    if bits := list(bits_rows(audits, everything.meta)):
        written.append(write_csv(folder / "bits.csv", bits))
    if parts:
        written.append(write_csv(folder / "parts.csv", parts_rows(parts)))
    return written


def write_csv(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """Writes rows of equal keys."""
    write_atomic(path, csv_text(rows))
    return path


def _cells(audits: Iterable[Audit]) -> Iterable[Row]:
    for a in audits:
        for key, cell in a.panel.cells.items():
            accuracy = cell.accuracy()
            yield a.panel.row | {
                "estimator": key.estimator,
                "postprocess": key.postprocess,
                "drop": key.drop,
                "trials": accuracy.n,
                "accuracy": accuracy.mean,
                "accuracy_low": accuracy.low,
                "accuracy_high": accuracy.high,
                "accuracy_sd": accuracy.sd,
                "true_class_probability": cell.mean("true_class_probability"),
                "tv_mask": cell.mean("tv_mask"),
                "tv_map": cell.mean("tv_map"),
                "tv_map_train": cell.mean("tv_map_train"),
                "removed_fraction_nominal": a.panel.nominal_removed(key.drop),
                "removed_fraction": cell.mean("removed_fraction"),
                "removed_fraction_train": cell.mean("removed_fraction_train"),
            }


def _differences(audits: Iterable[Audit]) -> Iterable[Row]:
    for a in audits:
        for c in a.changes:
            yield a.panel.row | {
                "estimator": c.estimator,
                "postprocess": c.postprocess,
                "drop": c.drop,
                "pairs": c.test.n,
                "difference": c.difference,
                "difference_low": c.test.difference.low,
                "difference_high": c.test.difference.high,
                "t": c.test.t,
                "p": c.test.p,
                "p_holm": c.p_holm,
            }


def _counts(audits: Iterable[Audit]) -> Iterable[Row]:
    for a in audits:
        for group, counts in (("estimators", a.counts), ("baselines", a.baseline_counts)):
            for c in counts:
                yield a.panel.row | {"group": group} | c.row


def _ranks(audits: Iterable[Audit]) -> Iterable[Row]:
    for a in audits:
        for r in a.rank_rows:
            yield a.panel.row | {
                "drop": r.drop,
                "postprocess": r.postprocess,
                "estimator": r.estimator,
                "rank_plain": r.plain,
                "rank_after": r.after,
                "rank_if_only_this_one": r.alone,
            }


def _agreement(audits: Iterable[Audit]) -> Iterable[Row]:
    for a in audits:
        for g in a.agreements:
            yield a.panel.row | {
                "drop": g.drop,
                "postprocess": g.postprocess,
                "estimators": g.estimators,
                "kendall_tau": g.tau,
                "kendall_tau_between_trials": g.tau_between_trials,
                "best_plain": " ".join(g.best_plain),
                "best_after": " ".join(g.best_after),
            }


def _fits(audits: Iterable[Audit]) -> Iterable[Row]:
    for a in audits:
        for drop in a.panel.main_drops:
            for kind in TV_KINDS:
                for points in POINT_SETS:
                    fit = fit_at(a.panel, kind, drop, points)
                    if fit.n >= FEWEST_POINTS:
                        yield a.panel.row | {
                            "drop": drop,
                            "x": kind,
                            "points": points,
                            "n": fit.n,
                            "slope": fit.slope,
                            "intercept": fit.intercept,
                            "r2": fit.r2,
                            "p": fit.p,
                            "spearman": fit.spearman,
                            "spearman_p": fit.spearman_p,
                        }


def _leakage(results: StudyResults) -> Iterable[Row]:
    for one in leakages(results):
        for key, cell in one.cells.items():
            accuracy = cell.accuracy()
            yield {
                "dataset": one.dataset,
                "order": one.order,
                "estimator": key.estimator,
                "postprocess": key.postprocess,
                "drop": key.drop,
                "trials": accuracy.n,
                "accuracy": accuracy.mean,
                "accuracy_low": accuracy.low,
                "accuracy_high": accuracy.high,
                "chance": math.nan if one.chance is None else one.chance,
            }


def _times(results: StudyResults) -> Iterable[Row]:
    t = times(results.meta)
    groups = {"passes": t.passes, "overhead": t.rest, "passes and overhead": {"maps": t.unknown} if t.unknown else {}}
    for group, stages in groups.items():
        for stage, seconds in stages.items():
            yield {
                "stage": stage,
                "counts_as": group,
                "seconds": seconds,
                "share": seconds / t.total if t.total else math.nan,
            }
