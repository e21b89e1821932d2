"""The presets of the papers, end to end for a few steps: at their real image size, model and batch recipe in the slow
tests, with small images and nets through the same code in the others. A GPU user must not meet errors after an hour.
"""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from roarfast.data.pack import write_pack
from roarfast.report.build import build
from roarfast.study import Study
from roarfast.study.images import load_data
from roarfast.study.presets import PRESETS

Changes = tuple[tuple[str, str], ...]
FEW: Changes = (('device = "auto"', 'device = "cpu"'), ("examples = 6", "examples = 1"))
CUB_FILES = ("images", "image_class_labels", "train_test_split", "bounding_boxes", "classes")


def photo(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """Smooth noise, so that JPEG files stay small; width and height."""
    return Image.fromarray(rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize(size, Image.Resampling.BICUBIC)


def arrays(folder: Path, train: int, test: int, size: int) -> None:
    """`train.npz` and `test.npz` of ten classes."""
    rng = np.random.default_rng(0)
    for split, n in (("train", train), ("test", test)):
        images = np.stack([np.asarray(photo(rng, (size, size))) for _ in range(n)])
        np.savez(
            folder / f"{split}.npz", images=images, labels=np.arange(n) % 10, class_names=np.arange(10).astype(str)
        )


def birds(folder: Path, train: int, test: int, size: int) -> None:
    """The official layout of CUB-200-2011, with photos wider than high."""
    rng = np.random.default_rng(0)
    root = folder / "CUB_200_2011"
    lines: dict[str, list[str]] = {name: [] for name in CUB_FILES}
    for i in range(train + test):
        label = i % 2
        path = root / "images" / f"00{label + 1}.Bird" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(rng, (size + size // 8, size)).save(path, quality=90)
        lines["images"].append(f"{i + 1} 00{label + 1}.Bird/{i}.jpg")
        lines["image_class_labels"].append(f"{i + 1} {label + 1}")
        lines["train_test_split"].append(f"{i + 1} {int(i < train)}")
        lines["bounding_boxes"].append(f"{i + 1} 2.0 2.0 10.0 10.0")
    lines["classes"] = ["1 001.Bird", "2 002.Bird"]
    for name, content in lines.items():
        (root / f"{name}.txt").write_text("\n".join(content) + "\n")


def packs(folder: Path, train: int, test: int, size: int) -> None:
    """`imagenet/train.pack` and `val.pack` as `roarfast data pack` makes them, of four classes."""
    rng = np.random.default_rng(0)
    for split, n in (("train", train), ("val", test)):
        for i in range(n):
            path = folder / "files" / split / f"n{i % 4}" / f"{i}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            photo(rng, (size + 20, size + 9)).save(path, quality=90)
        write_pack(folder / "files" / split, folder / "imagenet" / f"{split}.pack", size)


@dataclass(frozen=True)
class Case:
    """A preset, the images to run it on, and what is changed in it."""

    preset: str
    make: Any
    train: int
    test: int
    size: int
    changes: Changes
    only: str

    def run(self, folder: Path) -> Study:
        """Runs the chosen cells to the end; every one has a result."""
        text = PRESETS[self.preset]
        for old, new in (*FEW, *self.changes):
            assert old in text, old
            text = text.replace(old, new)
        self.make(folder, self.train, self.test, self.size)
        (folder / "study.toml").write_text(text)
        study = Study.from_toml(folder / "study.toml", folder / "run")
        assert study.run(workers=1, only=self.only).failed == []
        done = [record for record in study.results if record.status == "done"]
        assert done
        for record in done:
            assert record.accuracy is not None and 0 <= record.accuracy <= 1
            assert record.cross_entropy is not None and np.isfinite(record.cross_entropy)
        return study


ARRAYS = ('root = "data"', 'root = "."\ntrain = "train.npz"\ntest = "test.npz"')  # not the files of torchvision
STEPS = "\nepochs = 2"
SMALL_MAPS = ("[explain]", "[explain]\noptions = { ig_steps = 2, noise_samples = 2 }")


def cifar(name: str, size: int, train: int, more: Changes, only: str) -> Case:
    """Of `paper-cifar10` or `paper-svhn`."""
    recipe = f'recipe = "{name}"'
    return Case(
        f"paper-{name}",
        arrays,
        train,
        20,
        size,
        (("trials = 5", "trials = 1"), ARRAYS, (recipe, recipe + STEPS), *more),
        only,
    )


def cub(size: int, images: int, more: Changes, only: str) -> Case:
    """Of `paper-cub200`."""
    return Case(
        "paper-cub200",
        birds,
        images,
        4,
        size,
        (("trials = 5", "trials = 1"), ('recipe = "cub200"', 'recipe = "cub200"' + STEPS), *more),
        only,
    )


def imagenet(size: int, images: int, more: Changes, only: str) -> Case:
    """Of `roar-imagenet`."""
    recipe = 'recipe = "imagenet-roar"'
    return Case(
        "roar-imagenet",
        packs,
        images,
        8,
        size,
        (("trials = 3", "trials = 1"), (recipe, recipe + STEPS + "\nwarmup_epochs = 1"), *more),
        only,
    )


NET = 'name = "convnet"\noptions = { widths = [4, 4, 4, 8] }'
FOR_18: Changes = (('name = "resnet18"', NET), SMALL_MAPS)
FOR_50: Changes = (('name = "resnet50"', NET), SMALL_MAPS)
SMALL = (
    cifar("cifar10", 32, 140, FOR_18, "drop=0.5,estimator=sg-sq,estimator=gc^2,postprocess=gaussian(1)"),
    cifar("svhn", 32, 140, FOR_18, "drop=0.3,estimator=ig^2,estimator=vg,postprocess=max(3)"),
    cub(
        40,
        36,
        (*FOR_50, ("image_size = 600", "image_size = 40"), ("crop = 448", "crop = 32")),
        "drop=0.5,estimator=sobel^2,estimator=gc^2,postprocess=gaussian(1)",
    ),
    imagenet(
        40,
        300,
        (*FOR_50, ("warmup_epochs = 1", "warmup_epochs = 1\ncrop = 32")),
        "drop=0.9,estimator=sg-sq(ig),estimator=rand",
    ),
)


def paper_cells(study: Study) -> set[tuple[str, str]]:
    done = {(record.protocol, record.order) for record in study.results if record.status == "done"}
    return done - {("base", "morf")}


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.preset)
@pytest.mark.filterwarnings("error:The given NumPy array is not writable")  # packs are memory maps
def test_small_images_and_nets(case: Case, tmp_path: Path) -> None:
    study = case.run(tmp_path)
    roar = {("roar", "morf"), ("kar", "morf"), ("no-retrain", "morf")}
    audit = {("roar", "morf"), ("road", "morf"), ("road", "lerf")}
    assert paper_cells(study) == (roar if case.preset == "roar-imagenet" else audit)


REAL = (
    cifar("cifar10", 32, 140, (), "drop=0.5,estimator=grad^2,postprocess=gaussian(1)"),
    cifar("svhn", 32, 140, (), "drop=0.5,estimator=gc^2,postprocess=max(3)"),
    cub(520, 6, (), "drop=0.5,estimator=grad^2,postprocess=gaussian(1)"),
    # Groups of 8 of the 20 photos, not of 128: activations of 129 photos in this net are 12 GB. The rate of learning is that
    # of a batch of 20, by the rule of the recipe (4.8 for 4096): 4.8 diverges.
    imagenet(
        256, 20, (("warmup_epochs = 1", "warmup_epochs = 1\nghost_batch = 8\nlr = 0.023"),), "drop=0.9,estimator=grad"
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("case", REAL, ids=lambda case: case.preset)
def test_real_size_model_and_recipe(case: Case, tmp_path: Path) -> None:
    """Of the whole run, only the number of images, epochs and cells is smaller."""
    study = case.run(tmp_path)
    recipe, (train, _) = study.config.resolved_recipe(), load_data(study.config.data)
    expected = {
        "paper-cifar10": ("resnet18", 32, 128, None),
        "paper-svhn": ("resnet18", 32, 128, None),
        "paper-cub200": ("resnet50", 600, 32, 448),
        "roar-imagenet": ("resnet50", 256, 4096, 224),
    }
    found = (study.config.model.name, train.image_shape[0], recipe.batch_size, recipe.crop)
    assert found == expected[case.preset]
    assert study.results.meta["stage_seconds"]["training"] > 0
    assert build(study.folder).is_file()
