"""`roarfast compare`: the maps of several studies in one table, without running anything again."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from roarfast._files import write_atomic
from roarfast._types import Json
from roarfast.report.facts import base_text, data_text, model_text
from roarfast.report.folder import ReportFolder
from roarfast.report.grid import BASELINES, Panel, base_cell, order_words, panels, pretty
from roarfast.report.page import render
from roarfast.report.panel_tables import accuracy_td
from roarfast.report.score_tables import points_td, verdict_td
from roarfast.report.scores import Score, scores
from roarfast.report.stats import ranks
from roarfast.report.table import Table, Td, table, write_table
from roarfast.report.text import percent, rates
from roarfast.study.errors import StudyError, nearest
from roarfast.study.records import Record, StudyResults
from roarfast.study.results import load
from roarfast.study.runfolder import RunFolder

_NUMBERS = {"drop": float, "trial": int}
_SAME = ("data", "model", "train", "explain", "removal")
"""Sections of the config in which studies that are compared should agree."""
CLOSE = 0.03
"""Base accuracies further apart than this are of models that are not comparable."""


@dataclass(frozen=True)
class Source:
    """One of the studies that are compared."""

    name: str
    results: StudyResults


@dataclass(frozen=True)
class Comparison:
    """Tables, one per protocol, order and data set that several studies have; and what to doubt."""

    sources: list[Source]
    tables: list[Table]
    doubts: list[str]

    def __str__(self) -> str:
        parts = [
            f"{s.name}: {data_text(s.results)}; {model_text(s.results)}; base {base_text(s.results)}"
            for s in self.sources
        ]
        parts += [f"doubtful: {doubt}" for doubt in self.doubts]
        return "\n".join([*parts, *(f"\n{text_table(t)}" for t in self.tables)])


def published() -> list[str]:
    """Names of the results that come with the package."""
    found = (entry.name for entry in resources.files("roarfast.report").joinpath("published").iterdir())
    return sorted(name[:-4] for name in found if name.endswith(".csv"))


def read_source(given: str) -> Source:
    """A run folder, a CSV of records (or a folder with `tables/records.csv`), or the name of published results.

    Raises:
        StudyError: If it is none of these.
    """
    path = Path(given)
    if RunFolder(path).store.is_file():
        return Source(path.name or given, load(path))
    for file in (path, ReportFolder(path).records, RunFolder(path).results_csv):
        if file.is_file():
            config = next(
                (c for c in (RunFolder(path).config, RunFolder(file.parent.parent).config) if c.is_file()), None
            )
            name = path.stem if path.is_file() else path.resolve().name
            return Source(name, read_records(file.read_text(encoding="utf-8"), _toml(config), str(file)))
    if given in published():
        folder = resources.files("roarfast.report").joinpath("published")
        config_text = folder.joinpath(f"{given}.toml").read_text(encoding="utf-8")
        records = folder.joinpath(f"{given}.csv").read_text(encoding="utf-8")
        return Source(given, read_records(records, tomllib.loads(config_text), given))
    raise StudyError(
        f"{given} is no run folder, no CSV of records and no published result{nearest(given, published())}; published are: "
        f"{', '.join(published())}"
    )


def _toml(path: Path | None) -> dict[str, Json]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        return {}


def read_records(text: str, config: dict[str, Json], name: str) -> StudyResults:
    """Records from `StudyResults.to_csv`; columns that are not there are unknown."""
    rows = list(csv.DictReader(text.splitlines()))
    known = {f.name: f.type for f in fields(Record) if f.name not in ("seconds", "extra")}
    needed = {"protocol", "dataset", "estimator", "postprocess", "order", "drop", "trial", "status", "accuracy"}
    missing = needed - set(rows[0] if rows else ())
    if missing:
        raise StudyError(f"{name} is no table of records: it has no column {', '.join(sorted(missing))}")
    records = []
    for number, row in enumerate(rows, 2):
        values: dict[str, Any] = {"key": row.get("key") or str(number)}
        try:
            for column, value in row.items():
                if column in _NUMBERS:
                    values[column] = _NUMBERS[column](value)
                elif column in known and value:
                    values[column] = float(value) if "float" in str(known[column]) else value
        except (TypeError, ValueError):
            raise StudyError(f"{name}, line {number}: {column} must be a number, got {value!r}") from None
        records.append(Record(**values))
    return StudyResults(records, {"config": config})


def compare(sources: Sequence[str]) -> Comparison:
    """Puts the maps of several studies into one table per protocol, order and data set.

    Areas are over the rates that all of them have. Studies differ in their base models, so what can be compared is how far a
    map is from the random pixels of its own study.

    Raises:
        StudyError: If a source cannot be read, or they have no protocol and rate in common.
    """
    read = [read_source(given) for given in sources]
    names = [s.name for s in read]
    read = [Source(s.name if names.count(s.name) == 1 else given, s.results) for s, given in zip(read, sources)]
    by_kind: dict[tuple[str, str], list[tuple[Source, Panel]]] = {}
    for source in read:
        for panel in panels(source.results):
            by_kind.setdefault((panel.protocol, panel.order), []).append((source, panel))
    tables = []
    for members in by_kind.values():
        common = sorted(set.intersection(*(set(p.main_drops) for _, p in members)))
        if len({s.name for s, _ in members}) > 1 and common:
            tables.append(_table(members, common))
    if not tables:
        have = "; ".join(f"{s.name}: {_has(s)}" for s in read)
        raise StudyError(f"these studies have no protocol with a drop rate in common ({have})")
    return Comparison(read, tables, _doubts(read))


def _has(source: Source) -> str:
    return (
        ", ".join(f"{p.protocol} {p.order} at {rates(p.main_drops)}" for p in panels(source.results))
        or "no finished cell"
    )


def _table(members: Sequence[tuple[Source, Panel]], common: list[float]) -> Table:
    first = members[0][1]
    found: list[tuple[str, Panel, Score]] = []
    for source, panel in members:
        found += [(source.name, panel, s) for s in scores(panel, rates=common) if s.area.n]
    real = [(name, s) for name, _, s in found if s.estimator not in BASELINES]
    places = dict(zip(((n, s.estimator, s.postprocess) for n, s in real), ranks([-s.advantage for _, s in real])))
    rows = []
    for name, panel, s in found:
        place = places.get((name, s.estimator, s.postprocess))
        known = place is not None and s.random is not None
        rows.append(
            [
                Td(pretty(s.estimator)),
                Td(s.postprocess, css="text"),
                Td(name, css="text"),
                accuracy_td(s.area, panel.n_trials),
                points_td(s.random.difference if s.random else None),
                verdict_td(s),
                Td(f"{place:g}" if known else "–", place),
            ]
        )
    rows.sort(key=lambda row: (row[-1].sort is None, row[-1].sort or 0))
    caption = (
        f"{first.record.title}{order_words(first.order)}, {first.better} accuracy is better: area (%) over "
        f"the fraction of pixels removed, t, from nothing through {rates(common)}, and its difference in points to the random pixels of the same study, by which maps are ranked."
    )
    columns = ["Estimator", "Post-processing", "Study", "area %", "− random", "beats it?", "rank"]
    return table(f"compare-{first.protocol}-{first.order}", caption, columns, rows)


def _doubts(read: Sequence[Source]) -> list[str]:
    first, found = read[0], []
    for other in read[1:]:
        mine, theirs = (s.results.meta.get("config") or {} for s in (first, other))
        for section in _SAME:
            a, b = mine.get(section) or {}, theirs.get(section) or {}
            changed = [
                key
                for key in {**a, **b}
                if key in a and key in b and a[key] != b[key] and key not in ("root", "train", "test", "path")
            ]
            found += [
                f"{section}.{key}: {json.dumps(a[key])} in {first.name}, {json.dumps(b[key])} in {other.name}"
                for key in changed
            ]
        bases = [_base(s) for s in (first, other)]
        if all(bases) and abs(bases[0] - bases[1]) > CLOSE:  # type: ignore[operator]
            texts = " and ".join(percent(b) for b in bases if b)
            found.append(f"the base models of {first.name} and {other.name} differ: {texts} %")
    return found


def _base(source: Source) -> float | None:
    accuracies = [
        base_cell(source.results, d).accuracy() for d in dict.fromkeys(r.dataset for r in source.results.records)
    ]
    known = [a.mean for a in accuracies if a.n]
    return sum(known) / len(known) if known else None


def write_comparison(found: Comparison, out: str | Path) -> Path:
    """Writes `index.html` and the tables as CSV and LaTeX; returns the path of the page."""
    page, book = render("compare.html", comparison=found, name=" and ".join(s.name for s in found.sources))
    target = ReportFolder(out)
    for one in book.tables.values():
        write_table(one, target.page_tables)
    write_atomic(target.page, page)
    return target.page


def text_table(found: Table) -> str:
    """A table for the terminal."""
    rows = [list(found.columns), *([cell.text for cell in row] for row in found.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(found.columns))]
    left = {0, *found.left}

    def line(row: list[str]) -> str:
        return "  ".join(t.ljust(w) if i in left else t.rjust(w) for i, (t, w) in enumerate(zip(row, widths))).rstrip()

    return "\n".join([found.caption, *map(line, rows)])
