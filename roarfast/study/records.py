"""What a study asks and finds: one `Cell` and one `Record` per point of its grid."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roarfast._files import write_atomic
from roarfast.study.rows import WorkRow

if TYPE_CHECKING:
    from pandas import DataFrame

STAGES = ("training", "evaluation", "map_passes", "map_other", "codes", "impute", "data", "start", "other")
"""Where the time of tasks goes: the first three are passes of a model (`roarfast.report.times` says what each is)."""
NO_ESTIMATOR = "none"
"""The estimator of `base` records, which remove nothing."""


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; see `Record` for the meaning of the fields."""

    protocol: str
    estimator: str
    postprocess: str
    order: str
    drop: float
    trial: int
    null: str = "own"

    @property
    def label(self) -> str:
        """What the progress display shows."""
        return self._words(f" t={self.drop:g}") if self.protocol != "base" else f"base model, trial {self.trial}"

    @property
    def curve_label(self) -> str:
        """The same for all rates."""
        return self._words("")

    def _words(self, rate: str) -> str:
        order = " lerf" if self.order == "lerf" else ""
        null = f", null {self.null}" if self.null != "own" else ""
        return f"{self.protocol}{order} {self.estimator} {self.postprocess}{rate} trial {self.trial}{null}"


@dataclass(frozen=True)
class Record:
    """One cell: what was asked, and what came out (None where the cell is not done).

    Attributes:
        key: Hash of everything that defines the result, hexadecimal.
        protocol: Name of a protocol (`roarfast.study.protocol`); `base` is the model trained on whole images.
        dataset: Name of the data.
        estimator: Name in the grammar of `roarfast.explain`; `"none"` for `base`.
        postprocess: `"plain"`, `"max(3)"`, `"gaussian(1)"`, …
        order: `"morf"` or `"lerf"`.
        drop: Fraction of the pixels asked to be removed (`kar`: to be kept); 0 for `base`.
        trial: 0, 1, …: each trial has its own base model.
        status: `"done"`, `"failed"`, `"pending"` or `"running"`.
        accuracy: Of the last epoch, on the test set modified as the protocol says.
        true_class_probability: Mean softmax probability of the label.
        removed_fraction: Really removed, mean over the test images.
        removed_fraction_train: The same over the train images; None where the protocol does not train.
        tv_map: Mean total variation of the post-processed test maps, each scaled to [0, 1].
        tv_mask: Mean total variation of the test masks per pair of neighbouring pixels.
        seconds: Stage → seconds spent on this cell alone (shared work is in `meta`).
        error: Traceback of a failed cell.
        null: Whose masks were removed: `"own"`, or those of a null model of the study.
        extra: Scores by name that only some protocols have.
        cross_entropy: Mean over the test images, in nats; None in run folders from before it was stored.
        torch: Version of torch that computed it; None in run folders from before it was stored.
    """

    key: str
    protocol: str
    dataset: str
    estimator: str
    postprocess: str
    order: str
    drop: float
    trial: int
    status: str
    accuracy: float | None = None
    true_class_probability: float | None = None
    removed_fraction: float | None = None
    removed_fraction_train: float | None = None
    tv_map: float | None = None
    tv_mask: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    null: str = "own"
    extra: dict[str, float] = field(default_factory=dict)
    cross_entropy: float | None = None
    torch: str | None = None


@dataclass(frozen=True)
class Curve:
    """The records of a protocol that differ in nothing but their drop rate, summed up.

    Attributes:
        key: Of its file of responses, `RunFolder.responses(key)`.
        protocol: And the other fields of its cells.
        rates: Ascending.
        cells: Keys of its records, in the order of the rates.
        score: What `Protocol.score` says; None where it is undefined.
        details: Other numbers by name: accuracy and probability of whole and empty images, …
    """

    key: str
    protocol: str
    estimator: str
    postprocess: str
    order: str
    trial: int
    null: str
    rates: tuple[float, ...]
    cells: tuple[str, ...]
    score: float | None
    details: dict[str, float | None] = field(default_factory=dict)


def curves_of(records: list[Record], work: Mapping[str, WorkRow]) -> list[Curve]:
    """The curves that finished tasks left in the store; one whose cells another one has, too, is left out."""
    by_key = {record.key: record for record in records}
    found = []
    for key, row in work.items():
        info = row["info"]
        if row["kind"] != "curve" or not all(cell in by_key for cell in info.get("cells", ())):
            continue
        cells = [by_key[cell] for cell in info["cells"]]
        first = cells[0]
        details = {name: value for name, value in info.items() if name not in ("cells", "score")}
        found.append(
            Curve(
                key,
                first.protocol,
                first.estimator,
                first.postprocess,
                first.order,
                first.trial,
                first.null,
                tuple(cell.drop for cell in cells),
                tuple(info["cells"]),
                info.get("score"),
                details,
            )
        )
    sets = {curve.key: set(curve.cells) for curve in found}
    return [c for c in found if not any(sets[c.key] < other for other in sets.values())]


@dataclass(frozen=True)
class StudyResults:
    """All records of a study, in the order of its grid, and what is known about the run.

    `meta` has `config`, `versions`, `hardware`, `seeds`, `stage_seconds` (stage → seconds, shared work included),
    `started` and `finished` (ISO 8601, UTC; `finished` is None while cells are open). `curves` sum up protocols without
    retraining; run folders from before they were stored have none.
    """

    records: list[Record]
    meta: dict[str, Any]
    curves: list[Curve] = field(default_factory=list)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def select(self, **conditions: object) -> list[Record]:
        """The records whose fields equal the given values: `results.select(protocol="roar", drop=0.3)`."""
        unknown = set(conditions) - {f.name for f in fields(Record)}
        if unknown:
            raise ValueError(f"a record has no field {', '.join(sorted(unknown))}")
        return [r for r in self.records if all(getattr(r, name) == value for name, value in conditions.items())]

    def to_rows(self) -> list[dict[str, str | float | None]]:
        """One flat dict per record; extra scores and stages become columns `<score>` and `seconds_<stage>`."""
        rows = []
        scores = list(dict.fromkeys(name for record in self.records for name in record.extra))
        for record in self.records:
            row = asdict(record)
            seconds, extra = row.pop("seconds"), row.pop("extra")
            row |= {name: extra.get(name) for name in scores}
            rows.append(row | {f"seconds_{stage}": round(seconds.get(stage, 0.0), 4) for stage in STAGES})
        return rows

    def to_csv(self, path: str | Path | None = None) -> str:
        """The records as CSV text; also written to `path` if one is given."""
        text = io.StringIO()
        rows = self.to_rows()
        names = [f.name for f in fields(Record) if f.name not in ("seconds", "extra")]
        names = list(rows[0]) if rows else [*names, *(f"seconds_{stage}" for stage in STAGES)]
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        if path is not None:
            write_atomic(path, text.getvalue())
        return text.getvalue()

    def to_dataframe(self) -> DataFrame:
        """The records as a pandas DataFrame (pandas is optional)."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas: pip install pandas; to_csv and to_rows need nothing"
            ) from None
        return pd.DataFrame(self.to_rows())


def record_from_row(row: Mapping[str, Any]) -> Record:
    """A record from a row of the store, whose `seconds` and `extra` are JSON."""
    names = {f.name for f in fields(Record)}
    values = {name: value for name, value in row.items() if name in names}
    values["seconds"] = json.loads(values["seconds"]) if values.get("seconds") else {}
    values["extra"] = json.loads(values["extra"])
    return Record(**values)
