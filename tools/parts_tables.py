"""What a removal score is made of, from finished runs of docs/results/parts/*.toml: the CSV files behind the page.

    python tools/parts_tables.py RUN [RUN …] [--roar RUN] --out docs/results/parts
    python tools/parts_page.py                 # the page and its figures, from these files

| file | a row is |
|---|---|
| parts.csv | the parts of one map, its equal damage, its masks' total variation |
| changes.csv | what a post-processing changes of them, per estimator and in the mean over estimators |
| by_rate.csv | own and null accuracies of one map at one rate |
| pairs.csv | the model part where two base models agree, and where they do not |
| gates.csv | something the page must show, and whether it does |
| roar.csv | the accuracy of a retrained net with own and with moved masks |
| roar-parts.csv | what the damage of a retrained net is made of, and what a post-processing changes of it |

Rows of data sets that no RUN is of stay as they are. Intervals are 95 %, BCa, over test images that are resampled together for
everything that is compared, or t-intervals over trials where the column says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pages import renew_rows, write_rows
from scipy import stats

from roarfast.metrics import Responses, bootstrap, common_low, equal_damage_draws
from roarfast.metrics.damage_parts import PARTS, Split, split
from roarfast.metrics.resampling import Estimate, Resampled, trial_interval, weighted_mean
from roarfast.report.parts import arm_of
from roarfast.study import load
from roarfast.study.grid import explained_trial
from roarfast.study.null_names import is_model_null
from roarfast.study.records import StudyResults
from roarfast.study.runfolder import RunFolder

GRADIENTS = ("grad", "grad^2", "gi^2", "ig^2", "sg^2", "sg-sq", "vg")
ASK_THE_MODEL = (*GRADIENTS, "gc^2")
ASK_NO_MODEL = ("sobel^2", "rand", "block")
GROUPS = {"gradient estimators": GRADIENTS, "estimators that ask the model": ASK_THE_MODEL}
SMOOTHING, KEEP_ORDER = ("gaussian(1)", "max(3)"), ("power(0.5)", "power(2)")
INDICATORS = ("accuracy", "probability")
Floats = npt.NDArray[np.float64]
Map = tuple[str, str]  # estimator, post-processing
Row = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """All answers of one map: `[T, R, N]` with its own masks, those of other images and of other models, `[T, N]` with none."""

    own: Floats
    swap: Floats
    model: Floats
    base: Floats

    @property
    def split(self) -> Split:
        """Means over the rates."""
        return split(self.base, self.own, self.swap, self.model)

    def draws(self, low: float) -> Resampled:
        """Equal damage over the trials' mean, with its resamples."""
        return equal_damage_draws(self.own.mean(0), self.swap.mean(0), self.base.mean(0), low=low)


class Run:
    """A finished run: what the base models answered."""

    def __init__(self, folder: Path) -> None:
        self.files, self.results = RunFolder(folder), load(folder)
        self.dataset = self.results.records[0].dataset
        self.answers: dict[tuple[str, Map, str, int], list[Responses]] = {}
        for c in self.results.curves:
            if arm := arm_of(c.null):
                key = (c.protocol, (c.estimator, c.postprocess), arm, c.trial)
                self.answers.setdefault(key, []).append(Responses.load(self.files.responses(c.key)))
        self.protocols = list(dict.fromkeys(key[0] for key in self.answers))
        self.rates = next(iter(self.answers.values()))[0].rates

    def maps(self, protocol: str) -> list[Map]:
        """In the order of the grid."""
        return list(dict.fromkeys(key[1] for key in self.answers if key[0] == protocol))

    def trials(self, protocol: str, key: Map) -> list[int]:
        """Which trials have all three arms."""
        found = [{k[3] for k in self.answers if k[:3] == (protocol, key, arm)} for arm in ("own", "swap", "model")]
        return sorted(set.intersection(*found))

    def measured(self, protocol: str, key: Map, of: str) -> Measured:
        """The answers of one map; those to other models' masks are means over these models."""
        trials = self.trials(protocol, key)
        own, swap, model = (
            np.stack([np.mean([r.values(of) for r in self.answers[protocol, key, arm, t]], 0) for t in trials])
            for arm in ("own", "swap", "model")
        )
        base = np.stack([self.answers[protocol, key, "own", t][0].whole.of(of) for t in trials])
        return Measured(own, swap, model, base)


def numbers(prefix: str, estimate: Estimate) -> Row:
    """Three columns."""
    return {prefix: estimate.value, f"{prefix}_low": estimate.low, f"{prefix}_high": estimate.high}


class Tables:
    """The rows of all files but roar.csv, of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.parts: list[Row] = []
        self.changes: list[Row] = []
        self.rates: list[Row] = []
        self.gates: list[Row] = []
        for protocol in run.protocols:
            for of in INDICATORS:
                self._protocol(protocol, of)
        self.pairs = list(self._pairs())

    def _protocol(self, protocol: str, of: str) -> None:
        run = self.run
        every = {key: run.measured(protocol, key, of) for key in run.maps(protocol)}
        whole = max(m.base.shape[0] for m in every.values())
        measured = {key: m for key, m in every.items() if m.base.shape[0] == whole}
        low = max(common_low([m.swap.mean(0)], m.base.mean(0)) for m in measured.values())
        splits = {key: m.split for key, m in measured.items()}
        names = ("own", "damage", *PARTS)
        values = np.array([[_part(s, n).mean(0) for n in names] for s in splits.values()])  # [K, 5, N]
        drawn = bootstrap(weighted_mean(values.reshape(-1, values.shape[2])), values.shape[2])
        part = {(key, n): drawn[len(names) * i + j] for i, key in enumerate(splits) for j, n in enumerate(names)}
        equal = {key: m.draws(low) for key, m in measured.items()}
        said: Row = {"dataset": run.dataset, "protocol": protocol, "of": of}
        for key, s in splits.items():
            row: Row = said | {"estimator": key[0], "postprocess": key[1]}
            row |= {
                "images": s.base.shape[1],
                "trials": s.base.shape[0],
                "rates": len(run.rates),
                "base": float(s.base.mean()),
            }
            for n in names:
                row |= numbers(n, part[key, n].estimate())
                over = trial_interval(_part(s, n).mean(1))
                row |= {f"{n}_trials_low": over.low, f"{n}_trials_high": over.high}
            row |= numbers("equal_damage", equal[key].estimate()) | {"equal_damage_error": equal[key].estimate().error}
            row |= {"range_low": low, "range_high": float(s.base.mean()), "tv_mask": _tv(run.results, protocol, key)}
            self.parts.append(row)
            for j, t in enumerate(run.rates):
                m = measured[key]
                self.rates.append(
                    said
                    | {
                        "estimator": key[0],
                        "postprocess": key[1],
                        "rate": float(t),
                        "own": float(m.own[:, j].mean()),
                        "swap": float(m.swap[:, j].mean()),
                        "model": float(m.model[:, j].mean()),
                    }
                )
        self._changes(said, part, equal, names)
        if of == "accuracy":
            self._gates(said, every, splits, part, equal)

    def _changes(self, said: Row, part: Any, equal: dict[Map, Resampled], names: Sequence[str]) -> None:
        for k in SMOOTHING:
            estimators = [e for e, post in equal if post == k]
            groups = {label: tuple(e for e in members if e in estimators) for label, members in GROUPS.items()}
            for label, members in [*((e, (e,)) for e in estimators), *groups.items()]:
                if not members:
                    continue
                row: Row = said | {"estimators": label, "postprocess": k}
                for n in names:
                    row |= numbers(n, _mean_change({key: part[key, n] for key in equal}, members, k).estimate())
                self.changes.append(row | numbers("equal_damage", _mean_change(equal, members, k).estimate()))

    def _gates(
        self, said: Row, every: dict[Map, Measured], splits: dict[Map, Split], part: Any, equal: dict[Map, Resampled]
    ) -> None:
        def gate(text: str, value: str, holds: bool) -> None:
            self.gates.append(said | {"gate": text, "value": value, "holds": "yes" if holds else "no"})

        silent = [key for key in splits if key[0] in ASK_NO_MODEL]
        worst = max(float(np.abs(splits[key].part("model")).max()) for key in silent)
        gate(
            "the model part of maps that ask no model is 0 to the bit",
            f"largest difference of an image {worst:g}",
            worst == 0,
        )
        filters = [k for k in SMOOTHING if any((e, k) in splits for e in GRADIENTS)]
        for k in filters:
            change = _mean_change({key: part[key, "model"] for key in splits}, GRADIENTS, k).estimate()
            gate(
                f"{k} does not raise the model part, mean over the gradient estimators",
                f"{100 * change.value:+.2f} points [{100 * change.low:+.2f}, {100 * change.high:+.2f}]",
                not change.low > 0,
            )
        for k in filters:
            raw = _mean_change({key: part[key, "own"] for key in splits}, ASK_THE_MODEL, k).estimate()
            even = _mean_change(equal, ASK_THE_MODEL, k).estimate()
            share = -even.value / raw.value if raw.value else float("nan")
            gate(
                f"at equal damage {k} changes at most a quarter of what it changes of the raw score",
                f"equal damage {100 * even.value:+.2f} points [{100 * even.low:+.2f}, {100 * even.high:+.2f}] of "
                f"{-100 * raw.value:+.2f} [{-100 * raw.high:+.2f}, {-100 * raw.low:+.2f}]: {100 * share:.0f} %",
                abs(share) <= 0.25,
            )
        rand = equal["rand", "plain"].estimate()
        gate(
            "random pixels are on the diagonal within two standard errors",
            f"{100 * rand.value:+.2f} points, standard error {100 * rand.error:.2f}",
            abs(rand.value) <= 2 * rand.error,
        )
        for k in KEEP_ORDER:
            changed, asked = 0, [key for key in every if key[1] == k]
            for e, _ in asked:
                trials = self.run.trials(said["protocol"], (e, k))
                for arm in ("own", "swap", "model"):
                    for t in trials:
                        a, b = (self.run.answers[said["protocol"], (e, post), arm, t][0] for post in ("plain", k))
                        changed += int((a.correct != b.correct).sum() + (a.probability != b.probability).sum())
            if asked:
                shown = ", ".join(e for e, _ in asked)
                gate(f"{k} changes no answer by a bit ({shown})", f"{changed} answers differ", changed == 0)

    def _pairs(self) -> Iterable[Row]:
        """The model part of plain maps where the two base models predict the same class, and where they do not."""
        run = self.run
        for protocol in run.protocols:
            for e in (name for name in ASK_THE_MODEL if (name, "plain") in run.maps(protocol)):
                trials = run.trials(protocol, (e, "plain"))
                agree: list[Floats] = []
                differ: list[Floats] = []
                share = []
                for t in trials:
                    others = _other_models(run, protocol, (e, "plain"), t)
                    own = run.answers[protocol, (e, "plain"), "own", t][0]
                    for other_trial, answers in others:
                        theirs = run.answers[protocol, (e, "plain"), "own", other_trial][0].whole.prediction
                        same = own.whole.prediction == theirs
                        part = (answers.values() - own.values()).mean(0)
                        share.append(1 - same.mean())
                        agree.append(part[same])
                        differ.append(part[~same])
                yield {
                    "dataset": run.dataset,
                    "protocol": protocol,
                    "estimator": e,
                    "pairs": len(share),
                    "differ": float(np.mean(share)),
                    "model_agree": float(np.concatenate(agree).mean()),
                    "model_differ": float(np.concatenate(differ).mean()),
                    **numbers(
                        "over_pairs", trial_interval(np.array([np.r_[a, d].mean() for a, d in zip(agree, differ)]))
                    ),
                }


def _other_models(run: Run, protocol: str, key: Map, trial: int) -> list[tuple[int, Responses]]:
    """(explained trial, answers) of the nulls with other models' masks."""
    return [
        (explained_trial(trial, c.null), Responses.load(run.files.responses(c.key)))
        for c in run.results.curves
        if (c.protocol, (c.estimator, c.postprocess), c.trial) == (protocol, key, trial) and is_model_null(c.null)
    ]


def _part(s: Split, name: str) -> Floats:
    return s.own if name == "own" else s.part(name)


def _mean_change(found: dict[Map, Resampled], members: Sequence[str], k: str) -> Resampled:
    """Post-processed minus plain, mean over some estimators, with its resamples."""
    changes = [found[e, k] - found[e, "plain"] for e in members if (e, k) in found]
    value, draws, influence = (np.mean([getattr(c, f) for c in changes], 0) for f in ("value", "draws", "influence"))
    return Resampled(value, draws, influence, changes[0].n)


def _tv(results: StudyResults, protocol: str, key: Map) -> float:
    found = [
        r.tv_mask
        for r in results.select(protocol=protocol, estimator=key[0], postprocess=key[1], null="own")
        if r.tv_mask is not None
    ]
    return float(np.mean(found)) if found else float("nan")


def smoothness(parts: Sequence[Row]) -> list[Row]:
    """Spearman's rank correlation over maps of each score with the total variation of masks (accuracy only)."""
    found = []
    for dataset, protocol in dict.fromkeys((r["dataset"], r["protocol"]) for r in parts):
        rows = [r for r in parts if (r["dataset"], r["protocol"], r["of"]) == (dataset, protocol, "accuracy")]
        tv = [r["tv_mask"] for r in rows]
        scores = {
            "raw damage": [r["damage"] for r in rows],
            "excess over swap": [r["image"] + r["model"] for r in rows],
            "equal damage": [r["equal_damage"] for r in rows],
            "model part": [r["model"] for r in rows],
        }
        for name, values in scores.items():
            rho, p = stats.spearmanr(values, tv)
            found.append(
                {"dataset": dataset, "protocol": protocol, "score": name, "spearman": rho, "p": p, "maps": len(rows)}
            )
    return found


Arms = dict[tuple[str, str, str, str], dict[int, float]]
"""Accuracy by trial, for (protocol, estimator, post-processing, null)."""


def roar_arms(results: StudyResults) -> tuple[Arms, dict[int, float]]:
    """What retrained nets reach, and by trial what one reaches with nothing removed."""
    arms: Arms = {}
    for r in results:
        if r.status == "done" and r.protocol in ("roar", "mask-only") and r.accuracy is not None:
            arms.setdefault((r.protocol, r.estimator, r.postprocess, r.null), {})[r.trial] = r.accuracy
    return arms, {r.trial: float(r.accuracy or 0) for r in results if r.protocol == "base" and r.status == "done"}


def roar_rows(arms: Arms, base: dict[int, float], dataset: str) -> list[Row]:
    """Accuracies of retrained nets by masks, and differences from own masks, with t-intervals over trials."""
    rows = []
    for (protocol, e, k, null), accuracy in arms.items():
        own = arms.get((protocol, e, k, "own"), {})
        both = sorted(set(own) & set(accuracy))
        row: Row = {"dataset": dataset, "protocol": protocol, "estimator": e, "postprocess": k, "null": null}
        row |= {"trials": len(accuracy), "base": float(np.mean(list(base.values())))}
        row |= numbers("accuracy", trial_interval(np.array(list(accuracy.values()))))
        rows.append(row | numbers("minus_own", trial_interval(np.array([accuracy[t] - own[t] for t in both]))))
    return rows


ROAR_PARTS = {
    "damage": ("base", "own"),
    "shape": ("base", "swap"),
    "class": ("swap", "swap-class"),
    "image": ("swap-class", "own"),
}
"""Of what a retrained net lost: accuracy with one kind of masks minus accuracy with another. The last three add up to the first."""


def roar_parts(arms: Arms, base: dict[int, float]) -> list[Row]:
    """The parts of each map, then what a post-processing changes of them, also in the mean over the estimators that ask the model."""
    found: dict[Map, Floats] = {}  # [parts, trials]
    for e, k in dict.fromkeys((key[1], key[2]) for key in arms if key[0] == "roar"):
        by_null = {null: arms.get(("roar", e, k, null), {}) for null in ("own", "swap", "swap-class")} | {"base": base}
        trials = sorted(set.intersection(*(set(one) for one in by_null.values())))
        if trials:
            found[e, k] = np.array([[by_null[a][t] - by_null[b][t] for t in trials] for a, b in ROAR_PARTS.values()])

    def row(what: str, estimators: str, k: str, values: Floats) -> Row:
        row: Row = {"what": what, "estimators": estimators, "postprocess": k, "trials": values.shape[1]}
        for name, of_trials in zip(ROAR_PARTS, values):
            row |= numbers(name, trial_interval(of_trials))
        return row

    rows = [row("parts", e, k, values) for (e, k), values in found.items()]
    changes = {
        (e, k): values - found[e, "plain"]
        for (e, k), values in found.items()
        if k != "plain" and found.get((e, "plain"), values[:, :0]).shape == values.shape
    }
    rows += [row("change", e, k, values) for (e, k), values in changes.items()]
    for k in dict.fromkeys(k for _, k in changes):
        asking = [values for (e, one), values in changes.items() if one == k and e in ASK_THE_MODEL]
        if len(asking) > 1 and len({values.shape for values in asking}) == 1:
            rows.append(row("change", "estimators that ask the model", k, np.mean(asking, 0)))
    return rows


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", help="finished run folders of the studies of ROAD and deletion")
    parser.add_argument("--roar", type=Path, help="finished run folder of the study with retraining")
    parser.add_argument("--out", type=Path, default=Path("docs/results/parts"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tables = [Tables(Run(folder)) for folder in args.runs]
    if tables:
        parts = [row for t in tables for row in t.parts]
        renew_rows(args.out / "parts.csv", parts, "dataset")
        renew_rows(args.out / "changes.csv", [row for t in tables for row in t.changes], "dataset")
        renew_rows(args.out / "by_rate.csv", [row for t in tables for row in t.rates], "dataset")
        renew_rows(args.out / "pairs.csv", [row for t in tables for row in t.pairs], "dataset")
        renew_rows(args.out / "gates.csv", [row for t in tables for row in t.gates], "dataset")
        renew_rows(args.out / "smoothness.csv", smoothness(parts), "dataset")
    if args.roar:
        results = load(args.roar)
        arms, base = roar_arms(results)
        write_rows(args.out / "roar.csv", roar_rows(arms, base, results.records[0].dataset))
        write_rows(args.out / "roar-parts.csv", roar_parts(arms, base))
    print(args.out)


if __name__ == "__main__":
    main()
