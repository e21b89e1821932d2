"""PGD enhancement of untrained nets (004, section 5): accuracy before and after, and whose maps the enhanced images have.

python tools/enhancement.py --photos imagenet1k_224_jpeg.npz                             Table 2: untrained ImageNet nets, 224x224
python tools/enhancement.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz     small nets on CIFAR-10

Writes nets.csv and maps.csv (CIFAR-10), photos.csv and photo-maps.csv, a row as soon as it is known, and makes the page of what
is there. A net of photos.csv that is done with these images and settings is not run again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from pages import read, renew_rows, rows_of
from scipy.stats import binomtest

import roarfast as rf
from roarfast import metrics
from roarfast._torchvision import import_torchvision
from roarfast.data import load
from roarfast.explain import explain
from roarfast.metrics.resampling import bootstrap, weighted_mean
from roarfast.train import build_model
from roarfast.train.lite import MEAN, STD, efficientnet_lite

ESTIMATORS = ("grad", "gi", "gb", "gc")
PIXELS = (1, 2, 4, 8, 16)
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PAPER = {"alexnet": (0.086, 64.7), "mnasnet1_0": (0.110, 64.6), "vgg16": (0.102, 99.96)}
PHOTOS = {"alexnet": 256, "mnasnet1_0": 256, "efficientnet-lite0": 32, "vgg16": 32}
BATCHES = {"vgg16": 4}  # its activations take 250 MB per image
NAMES = {"alexnet": "AlexNet", "mnasnet1_0": "MnasNet", "vgg16": "VGG-16", "efficientnet-lite0": "EfficientNet-Lite0"}
ROW = (
    "net",
    "images",
    "steps",
    "seed",
    "before",
    "after",
    "after_low",
    "after_high",
    "largest",
    "classes_before",
    "minutes",
)
COMPARED = ("untrained", "trained", "difference")
MAPS = (
    "net",
    "estimator",
    "trained_accuracy",
    "images",
    *(f"{name}{end}" for name in COMPARED for end in ("", "_low", "_high")),
)


def compare(
    net: str, accuracy: float, fresh, trained, raw, moved, labels, estimators=ESTIMATORS
) -> list[dict[str, object]]:
    """Whether maps of enhanced images are more like those of the untrained net than those of the trained one."""
    y = torch.as_tensor(labels).long()
    maps = {
        name: explain(model, x, estimators, labels=y, aggregate="mean(raw)", batch_size=16)
        for name, model, x in (("raw", fresh, raw), ("moved", fresh, moved), ("trained", trained, raw))
    }
    rows: list[dict[str, object]] = []
    for e in estimators:
        own, other = (metrics.spearman(maps[k][e].numpy(), maps["moved"][e].numpy()) for k in ("raw", "trained"))
        told = np.isfinite(own) & np.isfinite(other)  # a map that is 0 everywhere has no order
        if not told.any():
            continue
        one, two = (bootstrap(weighted_mean(v[told]), int(told.sum())) for v in (own, other))
        row: dict[str, object] = {"net": net, "estimator": e, "trained_accuracy": accuracy, "images": int(told.sum())}
        for name, found in zip(COMPARED, (one, two, one - two)):
            value = found.estimate()
            row |= {name: float(value.value), f"{name}_low": float(value.low), f"{name}_high": float(value.high)}
        rows.append(row)
    return rows


def small_nets(arguments: argparse.Namespace) -> None:
    """CIFAR-10: a net of three convolutions and convnet."""
    from small_net import base_model, small_net

    training, test = load(arguments.train, "all"), load(arguments.test, "all")
    trained, accuracy = base_model(arguments.model, training, test, arguments.epochs)
    fresh = build_model(small_net, test.num_classes, 3, seed=1).eval()
    images, labels = test.images[: arguments.images], test.labels[: arguments.images]
    options = {"layout": "NHWC", "mean": training.mean, "std": training.std}
    found = metrics.enhance(fresh, images, labels, **options)
    rows = [("small net", "normalised units", 0.3, len(images), found)]
    for level in PIXELS:
        e = level / 255
        small = metrics.enhance(fresh, images[:200], labels[:200], epsilon=e, alpha=e / 10, space="pixel", **options)
        rows.append(("small net", "grey levels", level, 200, small))
    if n := arguments.convnet_images:
        net = build_model("convnet", test.num_classes, 3, seed=1).eval()
        rows.append(("convnet", "normalised units", 0.3, n, metrics.enhance(net, images[:n], labels[:n], **options)))
    columns = ("net", "units", "epsilon", "images", "before", "after", "largest")
    scale = {"grey levels": 255, "normalised units": 1}
    renew_rows(
        arguments.out / "nets.csv",
        [
            dict(
                zip(
                    columns,
                    (
                        net,
                        units,
                        float(epsilon),
                        count,
                        e.accuracy_before,
                        e.accuracy_after,
                        float(e.distance.max() * scale[units]),
                    ),
                )
            )
            for net, units, epsilon, count, e in rows
        ],
        "net",
    )
    renew_rows(
        arguments.out / "maps.csv",
        compare("small net", accuracy, fresh, trained, found.original, found.images, labels),
        "net",
        MAPS,
    )


def photos(arguments: argparse.Namespace) -> None:
    """Table 2: nets for 1,000 classes, untrained, on the first photos."""
    data = load(arguments.photos, "all")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data.images))  # photos stand in the order of their classes
    path = arguments.out / "photos.csv"
    for name in arguments.nets:
        n = min(PHOTOS[name], arguments.most or len(order))
        same = {"net": name, "images": str(n), "steps": str(arguments.steps), "seed": str(arguments.seed)}
        if any(all(row[k] == v for k, v in same.items()) for row in read(path, missing_ok=True)):
            print(f"{name}: done before")
            continue
        torch.manual_seed(arguments.seed)
        lite = name == "efficientnet-lite0"
        net = (
            efficientnet_lite(weights=False)
            if lite
            else getattr(import_torchvision("models"), name)(num_classes=data.num_classes)
        )
        mean, std = (MEAN, STD) if lite else IMAGENET
        images, labels = data.images[order[:n]], data.labels[order[:n]]
        began, size, found = time.process_time(), BATCHES.get(name, 8), []
        for start in range(0, n, size):
            part = slice(start, start + size)
            found.append(
                metrics.enhance(
                    net.eval(),
                    images[part],
                    labels[part],
                    steps=arguments.steps,
                    layout="NHWC",
                    mean=mean,
                    std=std,
                    batch_size=size,
                )
            )
            done = sum(len(e.after) for e in found)
            minutes = (time.process_time() - began) / 60
            print(
                f"{name}: {done} of {n}, {sum(e.after.sum() for e in found)} right, {minutes:.1f} minutes of processor time, "
                f"{minutes * (n - done) / done:.1f} left",
                flush=True,
            )
        before, after = (np.concatenate([getattr(e, k) for e in found]) for k in ("before", "after"))
        exact = binomtest(int(after.sum()), n).proportion_ci()
        raw, moved = (torch.cat([getattr(e, k) for e in found]) for k in ("original", "images"))
        with torch.no_grad():
            classes = torch.cat([net(x).argmax(1) for x in raw.split(size)]).unique().numel()
        renew_rows(
            path,
            [
                {
                    "net": name,
                    "images": n,
                    "steps": arguments.steps,
                    "seed": arguments.seed,
                    "before": float(before.mean()),
                    "after": float(after.mean()),
                    "after_low": float(exact.low),
                    "after_high": float(exact.high),
                    "largest": float(max(e.distance.max() for e in found)),
                    "classes_before": classes,
                    "minutes": (time.process_time() - began) / 60,
                }
            ],
            "net",
            ROW,
        )
        if lite:
            trained = efficientnet_lite().eval()
            with torch.no_grad():
                right = torch.cat([trained(x).argmax(1) for x in raw.split(size)]).numpy() == labels
            rows = compare(
                "EfficientNet-Lite0", float(right.mean()), net, trained, raw, moved, labels, ("grad", "gi", "gc")
            )
            renew_rows(arguments.out / "photo-maps.csv", rows, "net", MAPS)


def page(out: Path) -> str:
    """The page of the tables that are there, what did not hold first."""
    nets, found = rows_of(out, "nets"), {row["net"]: row for row in rows_of(out, "photos")}
    maps = rows_of(out, "maps") + rows_of(out, "photo-maps")
    off, fits = [], []
    for name, (_, theirs) in PAPER.items():
        if name in found:
            low, high = (100 * float(found[name][field]) for field in ("after_low", "after_high"))
            said = (
                f"{NAMES[name]} {100 * float(found[name]['after']):.1f} [{low:.1f}, {high:.1f}] % against {theirs:g} %"
            )
            (fits if low <= theirs <= high else off).append(said)
    against = [f"{row['net']}, {row['estimator']}" for row in maps if not float(row["difference_low"]) > 0]
    still = [
        f"{NAMES[name]} {100 * float(row['before']):.1f} → {100 * float(row['after']):.1f} "
        f"[{100 * float(row['after_low']):.1f}, {100 * float(row['after_high']):.1f}] % of {row['images']} photos"
        for name, row in found.items()
        if float(row["after_low"]) <= float(row["before"])
    ]
    lines = ["# Untrained nets, enhanced", ""]
    if still:
        lines += [
            f"**Not enhanced:** {'; '.join(still)}. What is said below of whose maps such a net has is of images that it still gets wrong.",
            "",
        ]
    if off:
        lines += [
            "**Not as printed in Table 2 of 004:** "
            + "; ".join(off)
            + ". The paper does not say how its nets were initialised, nor whether moved "
            "pixels stay valid; here torchvision's initialisation, and pixels stay in [0, 1].",
            "",
        ]
    if fits:
        lines += [f"**As printed, within the interval:** {'; '.join(fits)}.", ""]
    if against:
        lines += [
            f"**Maps of which it cannot be said that they stay those of the untrained net:** {'; '.join(against)}.",
            "",
        ]
    lines += [
        "004 (section 5, Table 2) moves images by 30 signed gradient steps within 0.3 of normalised units until an *untrained* net finds "
        "their class (AlexNet 0.086 → 64.7 %, VGG-16 0.102 → 99.96 %, MnasNet 0.110 → 64.6 % on ImageNet), and says that the explanations then are "
        "still those of an untrained net.",
        "",
    ]
    if found:
        missing = [NAMES[name] for name in PAPER if name not in found]
        lines += [
            "## ImageNet photos at 224×224 (Table 2)",
            "",
            "Untrained, 1,000 classes, evaluation mode (batch norm with mean 0 and variance 1), ε = 0.3 in normalised units, steps of 0.03, one photo "
            "per class; exact 95 % intervals over photos. [photos.csv](photos.csv), made by `python tools/enhancement.py --photos "
            f"imagenet1k_224_jpeg.npz`{'; not run: ' + ', '.join(missing) if missing else ''}.",
            "",
            "| untrained net | photos | steps | before | after | paper | largest change | classes it names before | processor minutes |",
            "|---" * 9 + "|",
        ]
        for name, row in found.items():
            theirs = "{:.3f} → {:g} %".format(*PAPER[name]) if name in PAPER else "–"
            lines.append(
                f"| {NAMES[name]} | {row['images']} | {row['steps']} | {100 * float(row['before']):.2f} % | {100 * float(row['after']):.1f} "
                f"[{100 * float(row['after_low']):.1f}, {100 * float(row['after_high']):.1f}] % | {theirs} | {float(row['largest']):.4f} | "
                f"{row['classes_before']} | {float(row['minutes']):.1f} |"
            )
        lines.append("")
    else:
        lines += ["ImageNet's nets: not run yet (`python tools/enhancement.py --photos imagenet1k_224_jpeg.npz`).", ""]
    lines += [
        "## Small nets on CIFAR-10",
        "",
        "[nets.csv](nets.csv), made by `python tools/enhancement.py --images 300 --convnet-images 60` with `--train` and `--test` of the CIFAR-10 subset.",
        "",
        "| net and units | epsilon | images | before | after | largest change |",
        "|---|---|---|---|---|---|",
    ]
    for row in nets:
        lines.append(
            f"| {row['net']}, {row['units']} | {float(row['epsilon']):g} | {row['images']} | {float(row['before']):.1%} | {float(row['after']):.1%} "
            f"| {float(row['largest']):.4f} |"
        )
    lines += [
        "",
        "## Whose maps they have",
        "",
        "Spearman's correlation over the pixels of two maps of an image, mean over images, 95 % intervals over images. The trained net is the same "
        "architecture, accuracy "
        + ", ".join(
            f"{net} {float(accuracy):.1%}"
            for net, accuracy in dict.fromkeys((r["net"], r["trained_accuracy"]) for r in maps)
        )
        + ". Maps that are constant have no order and are left out. Nearer is not near: a correlation of a few hundredths, as of `grad` and `gi`, "
        "is hardly a resemblance.",
        "",
        "| net | maps | images | untrained raw, untrained enhanced | trained raw, untrained enhanced | the first is larger |",
        "|---|---|---|---|---|---|",
    ]
    for row in maps:
        one, two, three = (
            " ".join([f"{float(row[k]):.4f}", f"[{float(row[k + '_low']):.4f}, {float(row[k + '_high']):.4f}]"])
            for k in COMPARED
        )
        verdict = (
            "yes" if float(row["difference_low"]) > 0 else "no" if float(row["difference_high"]) < 0 else "not surely"
        )
        lines.append(f"| {row['net']} | {row['estimator']} | {row['images']} | {one} | {two} | {verdict}: {three} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, help="ImageNet photos, 224x224: an .npz file, a pack or a folder")
    parser.add_argument("--nets", nargs="+", choices=list(PHOTOS), default=list(PHOTOS), help="of the photos")
    parser.add_argument("--most", type=int, metavar="N", help="at most so many photos of each net")
    parser.add_argument("--steps", type=int, default=30, help="of the photos")
    parser.add_argument("--seed", type=int, default=0, help="of the untrained weights")
    parser.add_argument("--train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--images", type=int, default=500, help="of CIFAR-10")
    parser.add_argument("--convnet-images", type=int, default=100, help="for the larger net; 0: none")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1, help="beside other work one is best")
    parser.add_argument(
        "--model", type=Path, default=Path("runs/small-net/small.pt"), help="the trained net of three convolutions"
    )
    parser.add_argument("--out", type=Path, default=Path("docs/results/enhancement"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if (arguments.train is None) != (arguments.test is None):
        parser.error("--train and --test come together")
    if arguments.train is not None:
        small_nets(arguments)
    if arguments.photos is not None:
        photos(arguments)
    text = page(arguments.out)
    (arguments.out / "README.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
