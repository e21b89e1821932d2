"""Table 3 of 004: a sparse linear model on MNIST whose explanation is made to point at a corner, while no answer changes.

python tools/mnist_linear.py --train mnist_train_10k.npz --test mnist_test_2k.npz
python tools/mnist_linear.py --train mnist --test mnist    (the official files, in ROARFAST_DATA)

The penalty is the one whose accuracy on the training images is nearest to the paper's 79.51 %. Writes table.csv and the page;
a minute on one core.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from pages import write_rows
from scipy.stats import binomtest

import roarfast as rf
from roarfast.data import Dataset, load
from roarfast.metrics import sparse_linear
from roarfast.metrics.localisation import pointing_game

PAPER = {"standard": ("79.51", "100.0"), "manipulated": ("79.51", "0.0")}
PENALTIES = (0.02, 0.03, 0.035, 0.04, 0.05)
COLUMNS = (
    "input",
    "map",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "changed",
    "pointing",
    "pointing_low",
    "pointing_high",
    "weights",
    "penalty",
    "images",
    "paper_accuracy",
    "paper_pointing",
)


def boxes(images: np.ndarray) -> np.ndarray:
    """The smallest rectangle around the ink of each digit, as bool `[N, H, W]` (004, appendix D)."""
    inside = np.zeros(images.shape, bool)
    for region, image in zip(inside, images):
        rows, columns = np.nonzero(image)
        if len(rows):
            region[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = True
    return inside


def share(flags: np.ndarray) -> list[float]:
    """The share of images in per cent, with its exact interval (a share of 0 or 1 has one too)."""
    exact = binomtest(int(flags.sum()), len(flags)).proportion_ci()
    return [100 * float(x) for x in (flags.mean(), exact.low, exact.high)]


def fit(train: Dataset, steps: int, shifted: bool) -> tuple[float, sparse_linear.SparseLinear]:
    """Penalty and model whose training accuracy is nearest to the paper's accuracy."""
    scale = {} if shifted else {"mean": 0.0, "std": 1.0}
    target = float(PAPER["standard"][0]) / 100
    found = []
    for penalty in PENALTIES:
        penalty = penalty if shifted else penalty * sparse_linear.MNIST_STD  # what scales with the input
        model = sparse_linear.fit(train.images, train.labels, train.num_classes, penalty=penalty, steps=steps, **scale)
        accuracy = float((model.logits(train.images).argmax(1) == train.labels).mean())
        print(f"{'shifted' if shifted else 'raw'} pixels, penalty {penalty:.4g}: {accuracy:.1%} of the training images")
        found.append((abs(accuracy - target), penalty, model))
    return min(found, key=lambda one: one[0])[1:]


def rows(train: Dataset, test: Dataset, steps: int) -> list[dict[str, object]]:
    """One row per model and input, and maps that ask no model."""
    images, labels = test.images[..., 0], test.labels
    inside, index = boxes(images), np.arange(len(images))
    found: list[dict[str, object]] = []

    def add(pixels: str, name: str, maps: np.ndarray, model=None, penalty=None, reference=None) -> None:
        game = share(pointing_game(maps, inside).hit)
        row: dict[str, object] = dict.fromkeys(COLUMNS, "")
        row |= {"input": pixels, "map": name, "images": len(images)}
        row |= dict(zip(("pointing", "pointing_low", "pointing_high"), game))
        if model is not None:
            predicted = model.logits(images).argmax(1)
            row |= dict(zip(("accuracy", "accuracy_low", "accuracy_high"), share(predicted == labels)))
            row |= {"weights": 100 * float((model.weights != 0).mean()), "penalty": penalty}
            if reference is not None:
                row["changed"] = int((predicted != reference.logits(images).argmax(1)).sum())
            if pixels == "shifted":
                row["paper_accuracy"], row["paper_pointing"] = PAPER[name]
        found.append(row)

    penalty, model = fit(train, steps, shifted=True)
    add("shifted", "standard", model.maps(images, labels), model, penalty)
    moved = sparse_linear.point_at(model, np.concatenate([train.images[..., 0], images]))
    add("shifted", "manipulated", moved.maps(images, labels), moved, penalty, model)
    penalty, raw = fit(train, steps, shifted=False)
    add("raw", "standard", raw.maps(images, labels), raw, penalty)
    add("", "sobel", rf.sobel(images.astype(np.float32)))
    add("", "random", rf.pixel_random(images.shape, seed=0, index=index))
    return found


def page(found: list[dict[str, object]], train: Dataset, test: Dataset, arguments: argparse.Namespace) -> str:
    """The page, what did not hold first."""
    first, second, _, sobel, rand = found
    holds = second["changed"] == 0 and float(second["pointing"]) == 0  # type: ignore[arg-type]
    full = float(first["pointing"]) == 100  # type: ignore[arg-type]

    def cell(row: dict[str, object], name: str) -> str:
        if row[name] == "":
            return "–"
        return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"

    lines = [
        "# A linear model that points at a corner",
        "",
        ("**Nothing of Table 3 of 004 failed here.** " if holds and full else "**Not as in Table 3 of 004:** ")
        + (
            ""
            if full
            else f"the standard model points inside the digit's box in {first['pointing']:.2f} %, not in all images. "
        )
        + (
            ""
            if holds
            else f"the manipulated one changed {second['changed']} predictions and points inside in {second['pointing']:.2f} %. "
        )
        + "Two things the paper does not say: on raw pixels, where the background is 0, no weight can move the attribution of a corner, so "
        "the manipulation needs shifted pixels; and the pointing game is no test of a model, since edges alone, which explain nothing, score "
        f"{cell(sobel, 'pointing')} % (random pixels {cell(rand, 'pointing')} %).",
        "",
        f"**Holds:** a weight per class on the top left pixel leaves all {first['images']} predictions as they were ({second['changed']} changed, accuracy "
        f"{first['accuracy']:.2f} % before, {second['accuracy']:.2f} % after) and moves the pointing game from {first['pointing']:.2f} to "
        f"{second['pointing']:.2f} %.",
        "",
        "In per cent; 95 % intervals (Clopper and Pearson) over test images. The explanation is w ⊙ x of the label; a hit is a highest pixel inside the smallest "
        "rectangle around the ink.",
        "",
        "| pixels | maps | accuracy | paper | predictions changed | pointing game | paper | weights that are not 0 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    names = {"sobel": "edges (Sobel): no model", "random": "random: no model"}
    for row in found:
        weights = "–" if row["weights"] == "" else f"{row['weights']:.2f}"
        lines.append(
            f"| {row['input'] or '–'} | {names.get(str(row['map']), row['map'])} | {cell(row, 'accuracy')} | {row['paper_accuracy'] or '–'} | "
            f"{'–' if row['changed'] == '' else row['changed']} | {cell(row, 'pointing')} | {row['paper_pointing'] or '–'} | {weights} |"
        )
    lines += [
        "",
        f"{len(train.labels):,} training and {len(test.labels):,} test images of MNIST; logistic regression with an L1 penalty of {first['penalty']:g} by "
        f"{arguments.steps} steps of FISTA; the penalty, of {', '.join(f'{p:g}' for p in PENALTIES)}, is the one nearest to the paper's accuracy on the training "
        f"images. Shifted: (x − {sparse_linear.MNIST_MEAN}) / {sparse_linear.MNIST_STD}. Numbers: [table.csv](table.csv). Made by "
        "`python tools/mnist_linear.py --train mnist_train_10k.npz --test mnist_test_2k.npz`, a minute on one core.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="an .npz file of all training images, or mnist")
    parser.add_argument("--test", required=True, help="an .npz file of all test images, or mnist")
    parser.add_argument("--data-root", type=Path, help="folder of the official files")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("docs/results/mnist-linear"))
    arguments = parser.parse_args()
    train, test = (
        load(name, "all" if name.endswith(".npz") else split, arguments.data_root)
        for name, split in ((arguments.train, "train"), (arguments.test, "test"))
    )
    found = rows(train, test, arguments.steps)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_rows(arguments.out / "table.csv", found, COLUMNS)
    text = page(found, train, test, arguments)
    (arguments.out / "README.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
