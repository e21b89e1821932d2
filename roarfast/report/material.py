"""What the templates are filled with: a view of each panel, and of the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from roarfast._types import Json
from roarfast.report import panel_tables, run_tables
from roarfast.report.answers import class_table, random_over_images, stored_answers
from roarfast.report.audit import Audit, audit
from roarfast.report.bits import Bits, bits, bits_counts_table
from roarfast.report.discrimination import random_table, spread_table
from roarfast.report.examples import stored_examples
from roarfast.report.explorer import Explorer, explorer
from roarfast.report.facts import base_text, coverage, data_text, doubts, model_text, study_name
from roarfast.report.figures import plotting
from roarfast.report.figures.bands import bands_figure
from roarfast.report.figures.blur import tv_arrows
from roarfast.report.figures.curves import accuracy_curves, overview
from roarfast.report.figures.differences import table_figure
from roarfast.report.figures.families import family_figures
from roarfast.report.figures.leakage import leakage_figure
from roarfast.report.figures.oracles import oracle_figure
from roarfast.report.figures.parts import equal_damage_figure, parts_figure
from roarfast.report.figures.rates import rate_strips
from roarfast.report.figures.regression import tv_scatter
from roarfast.report.figures.strips import strips
from roarfast.report.grid import BASELINES, Panel, mask_only, panels, without_oracles
from roarfast.report.leakage import Leakage, leakage_line, leakages
from roarfast.report.oracles import OracleCells, oracle_cells, oracle_lines, oracle_table
from roarfast.report.parts import StudyParts, parts_table, study_parts
from roarfast.report.regression import shown_rates
from roarfast.report.score_curves import agreement_matrix, curve_score_table, curve_scores
from roarfast.report.score_tables import Scored, score_tables
from roarfast.report.scores import random_sentence
from roarfast.report.summary import key_lines, power_lines, scored_panels
from roarfast.report.table import Table
from roarfast.report.times import Times, times
from roarfast.report.words import audit_sentences, direction, notes
from roarfast.study.records import StudyResults
from roarfast.study.runfolder import RunFolder

MOST_STILLS = 2_500_000
"""Bytes of still pictures in the page; more are left to their files."""
PROBABILITY = "true_class_probability"


@dataclass(frozen=True)
class PanelView:
    """One protocol and order on one data set: its audit, its figures and tables, and what only this page says about it.

    `shown_rates` is of the figures that have room for a few rates only: "4 of the 9 rates t"; empty if all are shown.
    """

    audit: Audit
    panel: Panel
    notes: list[str]
    sentences: list[str]
    direction: str
    has_baselines: bool
    shown_rates: str
    curves: plotting.Figure
    arrows: plotting.Figure | None
    scatter: plotting.Figure | None
    accuracy: Table
    random: Table | None
    classes: Table | None
    differences: list[Table]
    fits: Table
    counts: Table
    bits: Table | None
    agreement: Table
    ranks: list[Table]
    tests: Table


@dataclass(frozen=True)
class LeakageView:
    """Networks that saw the masks alone."""

    leakage: Leakage
    line: str
    figure: plotting.Figure
    table: Table


@dataclass(frozen=True)
class PartsView:
    """The damage of one protocol taken apart."""

    parts: StudyParts
    figure: plotting.Figure
    equal: plotting.Figure
    table: Table


@dataclass(frozen=True)
class OracleView:
    """Masks that see the label."""

    cells: OracleCells
    lines: list[str]
    figure: plotting.Figure
    table: Table


@dataclass(frozen=True)
class RunView:
    """The run as a whole: where the time went, what was really removed, what failed, what it was made with."""

    meta: dict[str, Json]
    times: Times
    times_table: Table | None
    removed: Table
    cells: int
    failures: Table
    facts: list[tuple[str, Table]]
    config: str


class Material(TypedDict):
    """What `page.html` and the templates that it includes ask for."""

    run: RunView
    audits: list[Audit]
    name: str
    coverage: str
    facts: list[tuple[str, str]]
    doubts: list[str]
    verdicts: list[str]
    findings: list[str]
    power: list[str]
    scored: Scored
    score_tables: list[Table]
    all_scores: list[Table]
    overview: plotting.Figure | None
    probability: plotting.Figure | None
    families: list[plotting.Figure]
    spread: Table | None
    compared: Table
    curve_scores: Table | None
    agreement: Table | None
    bands: plotting.Figure | None
    bits: Bits | None
    panels: list[PanelView]
    leakages: list[LeakageView]
    parts: list[PartsView]
    oracles: list[OracleView]
    strips: list[plotting.Figure]
    stills: list[plotting.Figure]
    explorer: Explorer | None


def run_view(results: StudyResults, audits: Sequence[Audit] = (), config_text: str = "") -> RunView:
    """The view of a run; its config as it was written, or else as it was understood."""
    meta, spent = results.meta, times(results.meta)
    understood = json.dumps(meta.get("config") or {}, indent=2, ensure_ascii=False, default=str)
    return RunView(
        meta,
        spent,
        run_tables.times_table(meta) if spent.total else None,
        run_tables.removed_table(audits),
        sum(len(a.panel.cells) for a in audits),
        run_tables.failures_table(results),
        [(name, run_tables.facts_table(name, meta.get(name) or {})) for name in ("versions", "hardware", "seeds")],
        config_text or understood,
    )


def gather(everything: StudyResults, files: RunFolder, pictures: Path) -> Material:
    """Draws all figures into a folder; returns what the templates ask for, by name."""
    # Curves, tables and audits are about explanations; cells with null masks are no results of an estimator.
    masks = oracle_cells(everything)
    of_maps = without_oracles(everything)
    results = StudyResults([r for r in of_maps if r.null == "own"], of_maps.meta, of_maps.curves)
    audits = [audit(panel) for panel in panels(results)]
    leaks = leakages(results)
    estimators = list(dict.fromkeys(e for a in audits for e in a.panel.estimators))
    for one in audits:
        table_figure(one, pictures)
    kept = stored_examples(files, [*estimators, *dict.fromkeys(name for one in masks for name in one.names)])
    stills = [*rate_strips([a.panel for a in audits], kept, pictures), *strips(kept, pictures)]
    answers = stored_answers(of_maps, files, lambda c: True)
    scored = scored_panels([a.panel for a in audits], lambda panel: random_over_images(answers, panel))
    found = study_parts(of_maps, answers)
    curves = curve_scores(results)
    names = next((one.class_names for one in kept if one.class_names), [])
    plain = audits[0].panel.postprocesses[0] if audits else None
    several = any(len(a.panel.postprocesses) > 1 for a in audits)
    with_probability = [a.panel for a in audits if any(c.values(PROBABILITY) for c in a.panel.cells.values())]
    return {
        "run": run_view(results, audits, files.config.read_text(encoding="utf-8") if files.config.exists() else ""),
        "audits": audits,
        "name": study_name(results),
        "coverage": coverage(everything),
        "facts": [
            ("Data", data_text(results)),
            ("Model", model_text(results)),
            ("Accuracy, nothing removed", base_text(results)),
        ],
        "doubts": doubts(results),
        "verdicts": [f"{p.title}: {said}" for p, mine in scored if (said := random_sentence(mine))],
        "findings": key_lines(audits, [], found, leaks, masks),
        "power": power_lines(audits, [mine for _, mine in scored]),
        "scored": scored,
        "score_tables": score_tables(scored, found, plain),
        "all_scores": score_tables(scored, found, None) if several else [],
        "overview": overview([a.panel for a in audits], pictures) if audits else None,
        "probability": overview(with_probability, pictures, PROBABILITY) if with_probability else None,
        "families": family_figures([a.panel for a in audits], pictures),
        "spread": spread_table([a.panel for a in audits]),
        "compared": run_tables.compared_table(results, audits, leaks),
        "curve_scores": curve_score_table(curves) if curves else None,
        "agreement": agreement_matrix(curves, scored),
        "bands": bands_figure([c for c in curves if c.protocol.shown == "scores"], answers, pictures),
        "bits": bits(results, [a.panel for a in audits], pictures),
        "panels": [
            _panel_view(results, audits, i, pictures, class_table(answers, audits[i].panel, names))
            for i in range(len(audits))
        ],
        "leakages": [
            LeakageView(one, leakage_line(one) + ".", leakage_figure(one, pictures), panel_tables.leakage_table(one))
            for one in leaks
        ],
        "parts": [
            PartsView(one, parts_figure(one, pictures), equal_damage_figure(one, pictures), parts_table(one))
            for one in found
        ],
        "oracles": [
            OracleView(one, oracle_lines(one), oracle_figure(one, pictures), oracle_table(one)) for one in masks
        ],
        "strips": [picture for picture in stills if sum(len(p.png) for p in stills) < MOST_STILLS],
        "stills": stills,
        "explorer": explorer(kept, any(a.panel.record.imputes for a in audits)),
    }


def _panel_view(
    results: StudyResults, audits: Sequence[Audit], i: int, pictures: Path, classes: Table | None
) -> PanelView:
    one, panel = audits[i], audits[i].panel
    # What holds for all panels is said once.
    said = {words for a in audits[:i] for words in notes(a.panel)}
    shown, every = len(shown_rates(panel)), len(panel.main_drops)
    return PanelView(
        audit=one,
        panel=panel,
        notes=[words for words in notes(panel) if words not in said],
        sentences=audit_sentences(one),
        direction=direction(panel).capitalize() + ".",
        has_baselines=any(e in BASELINES for e in panel.estimators),
        shown_rates="" if shown == every else f"{shown} of the {every} rates t",
        curves=accuracy_curves(panel, pictures),
        arrows=tv_arrows(panel, pictures),
        scatter=tv_scatter(panel, pictures),
        accuracy=panel_tables.accuracy_table(panel),
        random=random_table(panel),
        classes=classes,
        differences=panel_tables.difference_tables(one),
        fits=panel_tables.fits_table(panel),
        counts=panel_tables.counts_table(one),
        bits=bits_counts_table(one),
        agreement=panel_tables.agreement_table(one),
        ranks=panel_tables.rank_tables(one),
        tests=panel_tables.tests_table(one, mask_only(results, panel.dataset, panel.order)),
    )
