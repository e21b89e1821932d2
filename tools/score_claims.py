"""Which claims of the soundness paper (002) and of 004 hold in a finished run of the preset `soco-cifar10`.

python tools/score_claims.py RUN --out docs/results/scores-cifar10

Writes scores.csv (every score of every map), claims.csv (every comparison), agreement.csv and the page. Without RUN the verdicts
are given again, from claims.csv. Intervals are 95 %,
BCa, over test images that are resampled together for everything that is compared; scores are means over the trials.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from compared import (
    ENSEMBLES,
    Claim,
    Comparison,
    Difference,
    Get,
    Key,
    of_002,
    of_004,
    read_claims,
    write,
    write_claims,
)

import roarfast as rf
from roarfast import metrics
from roarfast.metrics import Responses, bootstrap
from roarfast.metrics.agreement import agreement
from roarfast.metrics.resampling import Resampled, Statistic, weighted_mean
from roarfast.metrics.scores.soundness import CONVENTIONS, at_level
from roarfast.study import Study, load
from roarfast.study.curves import CurveWork
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import CellsTask
from roarfast.study.work import Clock, Work

LEVELS = (0.3, 0.4, 0.5)  # accuracies at which soundness is taken
RATE = 0.2  # 004 masks 18 % of the pixels
NAMES = {
    "ig": "IG",
    "sg(ig)": "IG-SG",
    "sg-sq(ig)": "IG-SQ",
    "vg(ig)": "IG-Var",
    "gc": "Grad-CAM",
    "grad": "Grad",
    "rand": "random",
}
BETTER = {
    "soundness": "higher",
    "soundness, as printed": "higher",
    "completeness": "higher",
    "completeness, excess": "higher",
    "ROAD most relevant first": "lower",
    "ROAD least relevant first": "higher",
    "deletion": "lower",
    "insertion": "higher",
    "flipping": "lower",
}


class Run:
    """The curves of a run folder, and the statistics of their images."""

    def __init__(self, folder: Path, data_root: Path | None) -> None:
        study = Study.from_toml(RunFolder(folder).config, folder, data_root=data_root)
        self.files, self.results = RunFolder(folder), load(folder)
        self.tasks = {t.key: t for t in study.setup("cpu", 1).plan.tasks.values() if isinstance(t, CellsTask)}
        self.work = Work(study.config, self.files, "cpu", 1)
        self.trials = sorted({c.trial for c in self.results.curves})

    def answers(
        self, protocol: str, estimator: str, k: str, order: str = "morf", suffix: str = "", null: str = "own"
    ) -> list[Responses]:
        """By trial."""
        curves = [
            c
            for c in self.results.curves
            if (c.protocol, c.estimator, c.postprocess, c.order, c.null) == (protocol, estimator, k, order, null)
        ]
        return [Responses.load(self.files.responses(c.key + suffix)) for c in sorted(curves, key=lambda c: c.trial)]

    def soundness(self, estimator: str, k: str, convention: str) -> list[Statistic]:
        """Soundness by trial, mean over the levels."""
        found = []
        for trial in self.trials:
            (curve,) = (
                c
                for c in self.results.curves
                if (c.protocol, c.estimator, c.postprocess, c.trial) == ("soundness", estimator, k, trial)
            )
            answers, task = Responses.load(self.files.responses(curve.key)), self.tasks[curve.key]
            a = CurveWork(self.work, task, Clock(), lambda text: None).attribution()
            selection = replace(self.work.selection(task.codes, "test", "lerf"), drops=tuple(answers.rates.tolist()))
            maps = None if task.codes.base is None else self.work.stored_maps(estimator, task.codes.base, "test")
            codes, _ = selection.codes(maps, np.arange(len(a), dtype=np.int64), a.shape[1:])
            mass = np.asarray(rf.code_sums(a, codes, len(answers.rates) + 1), np.float64)
            levels = [at_level(answers, mass, CONVENTIONS[convention], level, 1) for level in LEVELS]
            if convention == "exact":  # what the study stored
                stored = [np.nan if (v := curve.details[f"at {level:g}"]) is None else v for level in LEVELS]
                np.testing.assert_allclose([f(np.ones((1, len(a))))[0] for f in levels], stored, atol=1e-9)
            found.append(lambda w, levels=levels: np.mean([f(w) for f in levels], 0))
        return found


def scores_of(run: Run, estimator: str, k: str) -> Iterator[tuple[str, list[Statistic]]]:
    """(score, its statistic by trial)."""
    yield "soundness", run.soundness(estimator, k, "exact")
    yield "soundness, as printed", run.soundness(estimator, k, "paper")
    complete, matched = (run.answers("completeness", estimator, k, suffix=s) for s in ("", "-matched"))
    lost = [a.whole.of("accuracy") - a.values("accuracy").mean(0) for a in complete]
    random = [a.whole.of("accuracy") - a.values("accuracy").mean(0) for a in matched]
    yield "completeness", [weighted_mean(x) for x in lost]
    yield "completeness, excess", [weighted_mean(x - y) for x, y in zip(lost, random)]
    for order, name in (("morf", "ROAD most relevant first"), ("lerf", "ROAD least relevant first")):
        yield name, [weighted_mean(a.areas("accuracy", rule="mean")) for a in run.answers("road", estimator, k, order)]
    for protocol, name, of in (
        ("deletion", "deletion", "probability"),
        ("insertion", "insertion", "probability"),
        ("flip", "flipping", "logit"),
    ):
        yield name, [weighted_mean(a.areas(of)) for a in run.answers(protocol, estimator, k)]
    for protocol, name in (("flip", "zeros"), ("deletion", "mean colour"), ("road", "imputed")):
        for of in ("accuracy", "log-ratio"):
            answers = run.answers(protocol, estimator, k)
            at = [a.values(of)[int(np.argmin(abs(a.rates - RATE)))] for a in answers]
            yield f"{of} at {RATE:g}, {name}", [weighted_mean(x) for x in at]


def mean_of(statistics: list[Statistic]) -> Statistic:
    """The mean over trials."""
    return lambda weights: np.asarray(np.mean([f(weights) for f in statistics], 0))


def claims(get: Get) -> list[Claim]:
    """The claims, for plain maps unless they say otherwise."""
    ig = ("ig", *ENSEMBLES)
    found = of_002(get, NAMES, ig, "IG and its ensembles", "image")
    found += of_004(get, NAMES, [(fill, RATE) for fill in ("zeros", "mean colour", "imputed")])
    for score, sign in (
        ("ROAD most relevant first", "<"),
        ("deletion", ">"),
        ("soundness", ">"),
        ("completeness", ">"),
    ):
        way = {"<": "lowers", ">": "raises"}[sign]
        found.append(
            Claim(
                "000" if score.startswith("ROAD") else "ours",
                f"a Gaussian of σ = 1 {way} {score}"
                + (" (worse: constant fills punish smooth masks)" if score == "deletion" else ""),
                [
                    Comparison(
                        f"{NAMES[e]}: gaussian(1) − plain, {score}",
                        get(score, e, "gaussian(1)") - get(score, e, "plain"),
                        sign,
                    )
                    for e in (*ig, "gc", "grad")
                ],
            )
        )
    return found


SEPARATED = {  # score → Table 1 of 002
    "completeness": "0.503 ± 0.112",
    "soundness(step=0.02)": "0.183 ± 0.046",
    "deletion(indicator=accuracy)": "0.019 ± 0.011",
    "road(order=morf)": "0.014 ± 0.009",
}


def separations(run: Run, count: int) -> Iterator[tuple[str, str, str, float]]:
    """(score, scheme, estimator, distance): the two nearest of the curves of a map, and of it after Introduce and Remove."""
    work, images, labels = run.work, run.work.test.images[:count], run.work.test.labels[:count]
    tasks = [t for t in run.tasks.values() if t.cell.protocol == "soundness" and t.cell.trial == 0]
    for estimator in ("ig", "gc"):
        (task,) = (t for t in tasks if (t.cell.estimator, t.cell.postprocess) == (estimator, "plain"))
        a = CurveWork(work, task, Clock(), lambda text: None).attribution()[:count].astype(np.float64)
        a = a / np.maximum(a.max((1, 2), keepdims=True), 1e-30)
        for scheme in ("constant", "random", "partial"):
            three = {"original": a, "introduce": metrics.introduce(a, scheme), "remove": metrics.remove(a, scheme)}
            found = metrics.evaluate(
                work.base_model(task.base),
                images,
                three,
                labels=labels,
                metrics=list(SEPARATED),
                layout="NHWC",
                mean=work.train.mean,
                std=work.train.std,
                resamples=0,
                progress=False,
            )
            for score in found:
                curves = {k: np.stack([r.curve.x, r.curve.value], 1) for k, r in found[score].items()}
                yield score, scheme, estimator, metrics.separation(curves)[0]


def number(x: float) -> str:
    return "–" if np.isnan(x) else f"{x:.3f}"


def shown(found: Difference) -> str:
    low, high = found.interval()
    return f"{number(float(found.value))} [{number(low)}, {number(high)}]"


def verdicts_first(made: Sequence[Claim]) -> list[str]:
    """The head of the page: what did not hold, then the rest."""
    groups: dict[str, list[str]] = {}
    for claim in made:
        head = claim.verdict.partition(":")[0]
        groups.setdefault(head, []).append(
            f"{claim.text} ({claim.paper}{claim.verdict.partition(':')[1]}{claim.verdict.partition(':')[2]})"
        )
    titles = {
        "does not hold": "Do not hold here",
        "partly": "Hold in part",
        "cannot be told here": "Cannot be told here",
        "holds": "Hold here",
    }
    lines = ["# Soundness, completeness and flipping on a subset of CIFAR-10", ""]
    for head, title in titles.items():
        if head in groups:
            lines += [f"**{title}:** " + "; ".join(groups[head]) + ".", ""]
    return lines


def claim_table(made: Sequence[Claim]) -> list[str]:
    """Every comparison with its verdict."""
    lines = ["| claim | paper | comparison | difference [95 % interval] | claimed | |", "|---|---|---|---|---|---|"]
    for claim in made:
        for j, c in enumerate(claim.comparisons):
            first = (f"{claim.text}: **{claim.verdict}**", claim.paper) if j == 0 else ("", "")
            lines.append(f"| {first[0]} | {first[1]} | {c.what} | {shown(c.difference)} | {c.claimed} | {c.verdict} |")
    return lines


def judge_again(out: Path) -> None:
    """claims.csv and the verdicts of the page by today's rules, from the numbers of claims.csv."""
    made = read_claims(out / "claims.csv")
    write_claims(out / "claims.csv", made)
    text = (out / "README.md").read_text()
    rest = text[text.index("What was run:") :]
    before, after = rest.split("## Claims\n\n")
    table = "\n".join(claim_table(made))
    (out / "README.md").write_text(
        "\n".join(verdicts_first(made))
        + "\n"
        + before
        + f"## Claims\n\n{table}\n\n"
        + after[after.index("## Scores") :]
    )


def page(
    run: Run, table: dict[Key, Resampled], trials: dict[Key, list[float]], made: list[Claim], command: str, facts: str
) -> str:
    """The page, its verdicts first."""
    lines = [*verdicts_first(made), facts, ""]
    lines += [f"Made by `{command}` from a run of [study.toml](study.toml).", "", "## Claims", "", *claim_table(made)]
    lines += [
        "",
        "## Scores",
        "",
        "Mean over the trials; 95 % interval over images. ↑ higher is better, ↓ lower is.",
        "",
    ]
    for k in ("plain", "gaussian(1)"):
        names = [e for e in NAMES if ("soundness", e, k) in table]
        lines += [
            f"### {k}",
            "",
            "| score | " + " | ".join(NAMES[e] for e in names) + " |",
            "|---" * (len(names) + 1) + "|",
        ]
        for score, way in BETTER.items():
            lines.append(
                f"| {score} {'↑' if way == 'higher' else '↓'} | "
                + " | ".join(shown(table[score, e, k]) for e in names)
                + " |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="without it: the verdicts of the page again, from claims.csv")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/scores-cifar10"))
    parser.add_argument("--facts", default="", help="a sentence on what was run and how long it took")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--separation", type=int, default=0, metavar="N", help="also Table 1 of 002, on N images")
    arguments = parser.parse_args()
    if arguments.run is None:
        judge_again(arguments.out)
        return
    run = Run(arguments.run, arguments.data_root)
    table: dict[Key, Resampled] = {}
    trials: dict[Key, list[float]] = {}
    n = len(run.work.test)
    have = {(c.estimator, c.postprocess) for c in run.results.curves if c.protocol == "soundness"}
    for e, k in product(NAMES, ("plain", "gaussian(1)")):
        if (e, k) in have:
            for score, statistics in scores_of(run, e, k):
                table[score, e, k] = bootstrap(mean_of(statistics), n, arguments.resamples)
                trials[score, e, k] = [float(f(np.ones((1, n)))[0]) for f in statistics]
    made = claims(lambda *key: table[key])
    arguments.out.mkdir(parents=True, exist_ok=True)
    write(
        arguments.out / "scores.csv",
        ["score", "estimator", "postprocess", "value", "low", "high", *(f"trial {t}" for t in run.trials)],
        [[*key, float(r.value), *r.interval(), *trials[key]] for key, r in table.items()],
    )
    write_claims(arguments.out / "claims.csv", made)
    sign = {"higher": 1, "lower": -1}
    same = agreement(
        {
            score: {f"{e} {k}": [sign[way] * v for v in trials[score, e, k]] for s, e, k in table if s == score}
            for score, way in BETTER.items()
        }
    )
    write(
        arguments.out / "agreement.csv",
        ["score", "other", "tau", "low", "high", "p", "maps"],
        [
            [a, b, same.tau[i, j], same.low[i, j], same.high[i, j], same.p[i, j], int(same.maps[i, j])]
            for i, a in enumerate(same.names)
            for j, b in enumerate(same.names)
            if i < j
        ]
        + [
            [a, "itself, between trials", same.between_trials[i], "", "", "", int(same.maps[i, i])]
            for i, a in enumerate(same.names)
        ],
    )
    text = page(run, table, trials, made, "python tools/score_claims.py RUN", arguments.facts)
    rows = [
        "## Agreement between scores",
        "",
        "Kendall's τ between the rankings of all maps (plain and smoothed); on the diagonal, between the two trials of a score.",
        "",
    ]
    rows += ["| | " + " | ".join(same.names) + " |", "|---" * (len(same.names) + 1) + "|"]
    for i, a in enumerate(same.names):
        cells = [
            f"*{same.between_trials[i]:.2f}*" if i == j else f"{same.tau[i, j]:.2f}{'' if same.flagged[i, j] else ' ·'}"
            for j in range(len(same.names))
        ]
        rows.append(f"| {a} | " + " | ".join(cells) + " |")
    rows += ["", "· : no more than chance would give (p ≥ 0.05, each pair by itself)."]
    if arguments.separation:
        apart = list(separations(run, arguments.separation))
        write(
            arguments.out / "separation.csv", ["score", "scheme", "estimator", "distance"], [list(row) for row in apart]
        )
        rows += [
            "",
            "## Separation of curves (Table 1 of 002)",
            "",
            f"Hausdorff distance between the two nearest curves of a map, and of it after *Introduce* and *Remove* (clipped to [0, 1]); first trial, "
            f"{arguments.separation} images, IG / Grad-CAM.",
            "",
            "| score | constant | random | partial | mean | paper |",
            "|---|---|---|---|---|---|",
        ]
        for score, theirs in SEPARATED.items():
            by = {
                scheme: [d for s, m, _, d in apart if (s, m) == (score, scheme)]
                for scheme in ("constant", "random", "partial")
            }
            cells = [" / ".join(number(d) for d in found) for found in by.values()]
            rows.append(
                f"| {score} | " + " | ".join(cells) + f" | {number(float(np.mean(list(by.values()))))} | {theirs} |"
            )
    (arguments.out / "README.md").write_text(text + "\n" + "\n".join(rows) + "\n")
    print(text)


if __name__ == "__main__":
    main()
