"""What the templates are filled with: a view of each panel, and of the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roarfast.report import panel_tables, run_tables
from roarfast.report.audit import Audit, audit
from roarfast.report.examples import stored_examples
from roarfast.report.explorer import explorer
from roarfast.report.facts import base_text, coverage, data_text, doubts, model_text, study_name
from roarfast.report.figures import plotting
from roarfast.report.figures.blur import tv_arrows
from roarfast.report.figures.curves import accuracy_curves, overview
from roarfast.report.figures.differences import table_figure
from roarfast.report.figures.leakage import leakage_figure
from roarfast.report.figures.parts import equal_damage_figure, parts_figure
from roarfast.report.figures.regression import tv_scatter
from roarfast.report.figures.strips import strips
from roarfast.report.grid import BASELINES, Panel, mask_only, panels
from roarfast.report.leakage import Leakage, leakage_line, leakages
from roarfast.report.parts import StudyParts, parts_table, study_parts
from roarfast.report.regression import shown_rates
from roarfast.report.score_tables import score_tables
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
    """One protocol and order on one data set: its audit, its figures, and what only this page says about it."""

    audit: Audit
    notes: list[str]
    curves: plotting.Figure
    arrows: plotting.Figure | None
    scatter: plotting.Figure | None
    tests: Table

    @property
    def panel(self) -> Panel:
        """The cells."""
        return self.audit.panel

    @property
    def direction(self) -> str:
        """Which way is better, and why, as a sentence."""
        return direction(self.panel).capitalize() + "."

    @property
    def has_baselines(self) -> bool:
        """Whether something random was run beside the estimators."""
        return any(e in BASELINES for e in self.panel.estimators)

    @property
    def shown_rates(self) -> str:
        """Of the figures that have room for a few rates only: "4 of the 9 rates t"; empty if all are shown."""
        shown, every = len(shown_rates(self.panel)), len(self.panel.main_drops)
        return "" if shown == every else f"{shown} of the {every} rates t"

    @property
    def sentences(self) -> list[str]:
        """What the audit found."""
        return audit_sentences(self.audit)

    @property
    def accuracy(self) -> Table:
        """All accuracies."""
        return panel_tables.accuracy_table(self.panel)

    @property
    def differences(self) -> list[Table]:
        """Differences from plain."""
        return panel_tables.difference_tables(self.audit)

    @property
    def fits(self) -> Table:
        """Fits of accuracy on total variation."""
        return panel_tables.fits_table(self.panel)

    @property
    def counts(self) -> Table:
        """How often k moved the accuracy."""
        return panel_tables.counts_table(self.audit)

    @property
    def agreement(self) -> Table:
        """Rankings before and after k."""
        return panel_tables.agreement_table(self.audit)

    @property
    def ranks(self) -> list[Table]:
        """Ranks at each rate."""
        return panel_tables.rank_tables(self.audit)


@dataclass(frozen=True)
class LeakageView:
    """Networks that saw the masks alone."""

    leakage: Leakage
    figure: plotting.Figure

    @property
    def line(self) -> str:
        """The finding."""
        return leakage_line(self.leakage) + "."

    @property
    def table(self) -> Table:
        """Every accuracy."""
        return panel_tables.leakage_table(self.leakage)


@dataclass(frozen=True)
class PartsView:
    """The damage of one protocol taken apart."""

    parts: StudyParts
    figure: plotting.Figure
    equal: plotting.Figure

    @property
    def table(self) -> Table:
        """In points."""
        return parts_table(self.parts)


@dataclass(frozen=True)
class RunView:
    """The run as a whole."""

    results: StudyResults
    audits: list[Audit]
    leakages: list[Leakage]
    config_text: str = ""

    @property
    def meta(self) -> dict[str, Any]:
        """Facts about the run."""
        return self.results.meta

    @property
    def times(self) -> Times:
        """Where the time went."""
        return times(self.meta)

    @property
    def times_table(self) -> Table:
        """Seconds per stage."""
        return run_tables.times_table(self.meta)

    @property
    def removed(self) -> Table:
        """Cells that removed more or less than asked."""
        return run_tables.removed_table(self.audits)

    @property
    def cells(self) -> int:
        """How many cells have results."""
        return sum(len(a.panel.cells) for a in self.audits)

    @property
    def failures(self) -> Table:
        """What failed."""
        return run_tables.failures_table(self.results)

    @property
    def facts(self) -> list[tuple[str, Table]]:
        """Versions, hardware, seeds."""
        names = ("versions", "hardware", "seeds")
        return [(name, run_tables.facts_table(name, self.meta.get(name) or {})) for name in names]

    @property
    def config(self) -> str:
        """The config as it was written, or else as it was understood."""
        stored = self.meta.get("config") or {}
        return self.config_text or json.dumps(stored, indent=2, ensure_ascii=False, default=str)


def gather(everything: StudyResults, files: RunFolder, pictures: Path) -> dict[str, Any]:
    """Draws all figures into a folder; returns what the templates ask for, by name."""
    # Curves, tables and audits are about explanations; cells with null masks are no results of an estimator.
    results = StudyResults([record for record in everything if record.null == "own"], everything.meta)
    audits = [audit(panel) for panel in panels(results)]
    leaks = leakages(results)
    estimators = list(dict.fromkeys(e for a in audits for e in a.panel.estimators))
    for one in audits:
        table_figure(one, pictures)
    run = RunView(results, audits, leaks, files.config.read_text(encoding="utf-8") if files.config.exists() else "")
    kept = stored_examples(files, estimators)
    stills = strips(kept, pictures)
    scored = scored_panels([a.panel for a in audits])
    found = study_parts(everything)
    plain = audits[0].panel.postprocesses[0] if audits else None
    several = any(len(a.panel.postprocesses) > 1 for a in audits)
    with_probability = [a.panel for a in audits if any(c.values(PROBABILITY) for c in a.panel.cells.values())]
    return {
        "run": run,
        "name": study_name(results),
        "coverage": coverage(everything),
        "facts": [
            ("Data", data_text(results)),
            ("Model", model_text(results)),
            ("Accuracy, nothing removed", base_text(results)),
        ],
        "doubts": doubts(results),
        "verdicts": [f"{p.title}: {said}" for p, mine in scored if (said := random_sentence(mine))],
        "findings": key_lines(audits, [mine for _, mine in scored], found, leaks),
        "power": power_lines(audits, [mine for _, mine in scored]),
        "scored": scored,
        "score_tables": score_tables(scored, found, plain),
        "all_scores": score_tables(scored, found, None) if several else [],
        "overview": overview([a.panel for a in audits], pictures) if audits else None,
        "probability": overview(with_probability, pictures, PROBABILITY) if with_probability else None,
        "compared": run_tables.compared_table(results, audits, leaks),
        "panels": [_panel_view(results, audits, i, pictures) for i in range(len(audits))],
        "leakages": [LeakageView(one, leakage_figure(one, pictures)) for one in leaks],
        "parts": [PartsView(one, parts_figure(one, pictures), equal_damage_figure(one, pictures)) for one in found],
        "strips": [picture for picture in stills if sum(len(p.png) for p in stills) < MOST_STILLS],
        "stills": stills,
        "explorer": explorer(kept, any(a.panel.record.imputes for a in audits)),
    }


def _panel_view(results: StudyResults, audits: Sequence[Audit], i: int, pictures: Path) -> PanelView:
    panel = audits[i].panel
    # What holds for all panels is said once.
    said = {words for a in audits[:i] for words in notes(a.panel)}
    return PanelView(
        audits[i],
        [words for words in notes(panel) if words not in said],
        accuracy_curves(panel, pictures),
        tv_arrows(panel, pictures),
        tv_scatter(panel, pictures),
        panel_tables.tests_table(audits[i], mask_only(results, panel.dataset, panel.order)),
    )
