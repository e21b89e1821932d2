"""004 on a net that is not retrained: random pixels against Grad-CAM, by fill; random pixels inside Grad-CAM's top.

python tools/reference_flipping.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --out docs/results/reference-flipping
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from small_net import base_model

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.explain import Normalized, as_input, explain
from roarfast.metrics.resampling import bootstrap, weighted_mean

RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
TOPS = (0.30, 0.36, 0.42, 0.48, 0.54, 0.60)


def difference(one, two, rate, of):
    """Mean over images of (one - two) of an indicator at a rate, with its interval."""
    values = one.values(of)[RATES.index(rate)] - two.values(of)[RATES.index(rate)]
    return bootstrap(weighted_mean(values), len(values)).estimate()


def verdict(e, claim):
    """Whether an interval says what is claimed: `"<"` or `">"` 0."""
    if np.isnan(e.low):
        return "undefined"
    holds, fails = (e.high < 0, e.low > 0) if claim == "<" else (e.low > 0, e.high < 0)
    return "holds" if holds else "**does not hold**" if fails else "not surely"


def unclear(found):
    """The rates at which an interval does not say what is claimed."""
    for fill, (own, other) in found.items():
        claim = "<" if fill == "dataset_mean" else ">"
        for of, name in (("accuracy", "accuracy"), ("log-ratio", "log ratio")):
            rates = [f"{r:g}" for r in RATES if verdict(difference(other, own, r, of), claim) != "holds"]
            if rates:
                yield f"{fill}, {name}: nothing can be told at {', '.join(rates)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1, help="beside other work one is best")
    parser.add_argument(
        "--model", type=Path, default=Path("runs/small-net/small.pt"), help="the trained net of three convolutions"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/results/reference-flipping"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    training, test = load(arguments.train, "all"), load(arguments.test, "all")
    model, accuracy = base_model(arguments.model, training, test, arguments.epochs)
    images, labels = test.images[: arguments.images], test.labels[: arguments.images]
    cam = explain(Normalized(model, training.mean, training.std), as_input(images), ["gc"], labels=labels)["gc"].numpy()
    rand = rf.pixel_random(cam.shape, seed=7)
    options = {"labels": labels, "layout": "NHWC", "mean": training.mean, "std": training.std, "progress": False}

    def ask(maps, rates, fill):
        return metrics.respond(model, images, maps, rates, perturbation=metrics.Perturbation(fill=fill), **options)

    found = {fill: (ask(cam, RATES, fill), ask(rand, RATES, fill)) for fill in ("dataset_mean", "linear")}
    lines = [
        "# Random pixels, Grad-CAM, and random pixels inside Grad-CAM's top",
        "",
        f"**Not shown:** {'; '.join(unclear(found))}. The order of the two fills is that of the paper from there on.",
        "",
        f"004, 6.2.3, on CIFAR-10: the net of three convolutions of the score audit ({accuracy:.1%} of the test images), not retrained; "
        f"{len(images)} test images. Made by `python tools/reference_flipping.py --images {len(images)}`. Random minus Grad-CAM: below 0, "
        "random pixels do more damage. 95 % intervals over images.",
        "",
        "| fill | rate | accuracy | claim (t = 0.3 only) | log ratio of the class's probability | claim |",
        "|---|---|---|---|---|---|",
    ]
    for fill, (own, other) in found.items():
        claim = "<" if fill == "dataset_mean" else ">"
        for rate in RATES:
            a, b = (difference(other, own, rate, of) for of in ("accuracy", "log-ratio"))
            said = [f"{verdict(e, claim)} ({claim} 0)" if rate == 0.3 else "" for e in (a, b)]
            lines.append(f"| {fill} | {rate:g} | {a} | {said[0]} | {b} | {said[1]} |")
    lines += [
        "",
        "## Inside the top N (mean fill, logit of the class)",
        "",
        "Logit with n random pixels of Grad-CAM's top N removed, minus that with Grad-CAM's own top n, and minus that with n random pixels of the "
        "image. 004: both below 0 for 0 < n < N; at n = N the masks are Grad-CAM's, so the first is 0 to the bit. Dice of the two masks: mean "
        "over images beside n/N.",
        "",
        "| N | n | minus Grad-CAM | | minus random | | Dice | n/N |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for top in TOPS:
        rates = (top / 3, top / 2, 2 * top / 3, top)
        inside = metrics.reference_map(cam, top)
        three = [ask(a, rates, "dataset_mean") for a in (inside, cam, rand)]
        codes = [rf.rank_codes(a, rates) for a in (inside, cam)]
        for j, rate in enumerate(rates):
            logit = [r.values("logit")[j] for r in three]
            one, two = (bootstrap(weighted_mean(logit[0] - other), len(labels)).estimate() for other in logit[1:])
            dice = metrics.dice(codes[0] <= j, codes[1] <= j).mean()
            said = (
                ("equal to the bit" if (logit[0] == logit[1]).all() else "**differs**")
                if rate == top
                else verdict(one, "<")
            )
            lines.append(
                f"| {top:g} | {rate / top:.2f} N | {one} | {said} | {two} | {verdict(two, '<')} | {dice:.4f} | {rate / top:.4f} |"
            )
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "README.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
