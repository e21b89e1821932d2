"""PGD enhancement of an untrained net (004, section 5): accuracy before and after, and whose maps the enhanced images have.

python tools/enhancement.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --out docs/results/enhancement
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from audit_scores import base_model, small_net

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.explain import explain
from roarfast.metrics.resampling import bootstrap, weighted_mean
from roarfast.train import build_model

ESTIMATORS = ("grad", "gi", "gb", "gc")
PIXELS = (1, 2, 4, 8, 16)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--convnet-images", type=int, default=100, help="for the larger net; 0: none")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1, help="beside other work one is best")
    parser.add_argument(
        "--model", type=Path, default=Path("runs/score-audit/small.pt"), help="the trained net of audit_scores.py"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/results/enhancement"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    training, test = load(arguments.train, "all"), load(arguments.test, "all")
    trained, accuracy = base_model(arguments.model, training, test, arguments.epochs)
    fresh = build_model(small_net, test.num_classes, 3, seed=1).eval()
    images, labels = test.images[: arguments.images], test.labels[: arguments.images]
    options = {"layout": "NHWC", "mean": training.mean, "std": training.std}
    found = metrics.enhance(fresh, images, labels, **options)
    rows = [("small net, normalised units", 0.3, len(images), found)]
    for level in PIXELS:
        e = level / 255
        small = metrics.enhance(fresh, images[:200], labels[:200], epsilon=e, alpha=e / 10, space="pixel", **options)
        rows.append(("small net, grey levels", level, 200, small))
    if n := arguments.convnet_images:
        net = build_model("convnet", test.num_classes, 3, seed=1).eval()
        rows.append(("convnet, normalised units", 0.3, n, metrics.enhance(net, images[:n], labels[:n], **options)))
    lines = [
        "# Untrained nets, enhanced", "",
        "004 (section 5, Table 2) moves images by 30 signed gradient steps within 0.3 of normalised units until an *untrained* net finds "
        "their class (AlexNet 0.086 → 64.7 %, VGG-16 0.102 → 99.96 %, MnasNet 0.110 → 64.6 % on ImageNet), and says that the explanations then are "
        "still those of an untrained net. Here CIFAR-10 and small nets; ImageNet's nets were not run. Made by `python tools/enhancement.py`.", "",
        "| net and units | epsilon | images | before | after | largest change |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, epsilon, count, e in rows:
        largest = e.distance.max() * (255 if "grey" in name else 1)
        lines.append(
            f"| {name} | {epsilon:g} | {count} | {e.accuracy_before:.1%} | {e.accuracy_after:.1%} | {largest:.4f} |"
        )
    lines += [
        "", "Spearman's correlation over the pixels of two maps of an image, mean over images, 95 % intervals over images. "
        f"The trained net is the same architecture ({accuracy:.1%} of the test images).", "",
        "| maps | untrained raw, untrained enhanced | trained raw, untrained enhanced | the first is larger |", "|---|---|---|---|",
    ]  # fmt: skip
    y = torch.from_numpy(labels).long()
    maps = {
        name: explain(model, x, ESTIMATORS, labels=y, aggregation="mean(raw)")
        for name, model, x in (("raw", fresh, found.original), ("moved", fresh, found.images), ("trained", trained, found.original))
    }  # fmt: skip
    for e in ESTIMATORS:
        own, other = (metrics.spearman(maps[k][e].numpy(), maps["moved"][e].numpy()) for k in ("raw", "trained"))
        one, two = (bootstrap(weighted_mean(v), len(v)) for v in (own, other))
        difference = (one - two).estimate()
        verdict = "yes" if difference.low > 0 else "no" if difference.high < 0 else "not surely"
        lines.append(f"| {e} | {one.estimate()} | {two.estimate()} | {verdict}: {difference} |")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "README.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
