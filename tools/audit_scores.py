"""The audit of every score on a small trained net: score × fill × post-processing, as a page with its table.

python tools/audit_scores.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --out docs/results/score-audit

Trains a net of three convolutions (kept beside the table, so that a stopped run goes on), explains `--images` test images and
asks of every score whether filters, powers, one outlier and a shift of the maps "improve" it.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch
from torch import nn

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.explain import Normalized, as_input, explain
from roarfast.metrics.auditing import FILLS, SCORES
from roarfast.train import build_model, get_recipe, train

RATES = (0.05, 0.1, 0.2, 0.4, 0.7)
OPTIONS = {
    "road": {"rates": RATES}, "deletion": {"rates": RATES}, "insertion": {"rates": RATES}, "pixel_flipping": {"rates": RATES},
    "completeness": {"rates": (0.2, 0.5, 0.8), "matched": False}, "soundness": {"step": 0.1},
    "sensitivity_n": {"sizes": (0.05, 0.2, 0.5), "draws": 8}, "faithfulness_correlation": {"size": 0.2, "draws": 8},
    "infidelity": {"sizes": (0.05, 0.2, 0.5), "draws": 8},
}  # fmt: skip


def small_net(num_classes, in_channels=3):
    """Three convolutions and a linear layer: about 3 million multiplications."""

    def stage(a, b):
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))

    return nn.Sequential(
        stage(in_channels, 16), stage(16, 32), stage(32, 64), nn.Flatten(), nn.Linear(64 * 16, num_classes)
    )  # fmt: skip


def base_model(path, training, test, epochs):
    """The net, trained or read, and its test accuracy."""
    if not path.exists():
        recipe = get_recipe("quick", model="convnet", epochs=epochs, optimizer="adam", lr=2e-3, batch_size=128)
        result = train(small_net, training, test, recipe, seed=0, progress="none")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": result.model.state_dict(), "accuracy": result.accuracy}, path)
    state = torch.load(path, weights_only=True)
    model = build_model(small_net, training.num_classes, 3, seed=0)
    model.load_state_dict(state["model"])
    return model.eval(), float(state["accuracy"])


def page(found, arguments, accuracy, estimators):
    """The page: first what surprises, then the table, then agreement."""
    surely = [c for c in found.cells if not c.why and c.change.low > 0]
    told = {k: sorted({c.score for c in surely if c.k == k}) for k in dict.fromkeys(c.k for c in found.cells)}
    lines = ["# Which scores can be bought: the audit of every score", "", "## What it says", ""]
    for k, names in told.items():
        lines.append(
            f'- `{k}` "improves", in the mean over maps and beyond its interval: {", ".join(names) or "no score"} (for at least one fill).'
        )
    blank = sorted({f"{c.score} with {c.fill}: {c.why}" for c in found.cells if c.why})
    lines.append(f"- Cells without a value: {'; '.join(blank) or 'none'}.")
    lines.append(
        f"- {len(found.cells)} cells at 95 %, not corrected for their number: a dozen or two would be beyond their interval by chance, half "
        "of them upwards. Soundness is undefined where the accuracy never reaches its level halfway between empty and whole images."
    )
    own = {key: e for *key, e in ((tuple(a), tuple(b), e) for a, b, e in found.agreement()) for key in [tuple(key)]}
    fills = [(a, b, e) for (a, b), e in own.items() if a[0] == b[0] == "deletion"]
    if fills:
        worst = min(fills, key=lambda row: row[2].value)
        lines.append(
            f"- Between the {len(FILLS)} fills, deletion orders the same maps with Kendall's τ from {worst[2].value:.2f} "
            f"({worst[0][1]} against {worst[1][1]}) to {max(e.value for *_, e in fills):.2f}."
        )
    lines += [
        "", "## How", "",
        f"CIFAR-10 subset, a net of three convolutions ({accuracy:.1%} of the test images), {found.count} test images, maps "
        f"{', '.join(f'`{e}`' for e in estimators)}, each plain and with six post-processings that ask neither model nor image. A cell says how many of the "
        f"{len(estimators)} sets of maps score better with it, and the mean change (positive: looks better) with its 95 % interval over "
        "images. `unchanged`: not by a bit. `roll` moves maps off their images: a score should fall. Small numbers of images, "
        "one net: read signs that are beyond their interval, not sizes. Made by `python tools/audit_scores.py`.", "",
        "## Every score", "", found.to_markdown(), "",
        "## Agreement of scores (Kendall's τ over all maps, plain and changed; dataset mean or linear fill)", "",
        "| score | score | τ | 95 % over images |", "|---|---|---|---|",
    ]  # fmt: skip
    usual = {name: "linear" if "linear" in SCORES[name] and name in ("road", "completeness", "soundness") else "dataset_mean" for name in SCORES}  # fmt: skip
    for (a, b), e in own.items():
        if usual[a[0]] == a[1] and usual[b[0]] == b[1]:
            lines.append(f"| {a[0]} | {b[0]} | {e.value:.2f} | [{e.low:.2f}, {e.high:.2f}] |")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "README.md").write_text("\n".join(lines) + "\n")
    (arguments.out / "audit.csv").write_text(found.to_csv())
    with (arguments.out / "agreement.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["score", "fill", "score 2", "fill 2", "tau", "low", "high"])
        for (a, b), e in own.items():
            writer.writerow([*a, *b, *(f"{v:.4f}" for v in (e.value, e.low, e.high))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--estimators", nargs="+", default=["grad^2", "ig^2", "gc^2", "rand"])
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1, help="beside other work one is best")
    parser.add_argument("--model", type=Path, default=Path("runs/score-audit/small.pt"), help="where the net is kept")
    parser.add_argument("--out", type=Path, default=Path("docs/results/score-audit"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    training, test = load(arguments.train, "all"), load(arguments.test, "all")
    model, accuracy = base_model(arguments.model, training, test, arguments.epochs)
    print(f"accuracy {accuracy:.3f}", flush=True)
    images, labels = test.images[: arguments.images], test.labels[: arguments.images]
    normal = Normalized(model, training.mean, training.std)
    maps = explain(normal, as_input(images), arguments.estimators, labels=labels, aggregation="mean(abs)")
    # 16 bits of each map: powers then merge no two values, and what is left of a change is the power's own.
    maps = {
        k: (np.round(65535 * (a := v.double().numpy()) / a.max((1, 2), keepdims=True)) + 1) / 65536
        for k, v in maps.items()
    }
    found = metrics.audit(
        model, images, maps, labels=labels, options=OPTIONS, layout="NHWC", mean=training.mean, std=training.std,
        resamples=arguments.resamples, progress=True,
    )  # fmt: skip
    page(found, arguments, accuracy, arguments.estimators)
    print(found.to_markdown())


if __name__ == "__main__":
    main()
