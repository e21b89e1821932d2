"""The example images that a study kept, one file per estimator."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import SupportsInt

import numpy as np
import numpy.typing as npt

from roarfast._sealed import Damaged, read_sealed
from roarfast._types import Numpy
from roarfast.study.runfolder import RunFolder

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Examples:
    """The examples of one estimator: M images, K post-processings, D drop rates.

    Attributes:
        estimator: Its name.
        file: Name of its file, without the ending.
        images: uint8 `[M, H, W, C]`.
        processed: Maps after post-processing `[K, M, H, W]`.
        masks: bool `[K, D, M, H, W]`, True = removed.
        modified: uint8 `[K, D, M, H, W, C]`, with the study's fill.
        postprocesses: Names.
        drops: Rates, ascending.
        labels: Class of each image as text; empty if it is not stored.
        predictions: Class that the base model predicts for the whole image, likewise.
        answers: What it predicts for the modified images, by post-processing, rate and image: "cat, 61 %"; empty if not stored.
        class_names: Of all classes; empty if not stored.
    """

    estimator: str
    file: str
    images: Bytes
    processed: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    modified: Bytes
    postprocesses: list[str]
    drops: list[float]
    labels: list[str]
    predictions: list[str]
    answers: list[list[list[str]]] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)

    def nested(self, k: int) -> bool:
        """Whether every mask holds the one before: a random block is drawn anew for each rate."""
        masks = self.masks[k]
        return bool((masks[1:] | ~masks[:-1]).all())

    def label(self, m: int) -> str:
        """What is known of an image: "image 2: cat, predicted dog"."""
        text = f"image {m + 1}" + (f": {self.labels[m]}" if self.labels else "")
        return text + (f", predicted {self.predictions[m]}" if self.predictions else "")


def stored_examples(files: RunFolder, estimators: Sequence[str]) -> list[Examples]:
    """The examples of every estimator that has a file; files that cannot be read are left out."""
    found = []
    for estimator in estimators:
        path = files.example(estimator)
        try:
            with np.load(io.BytesIO(read_sealed(path)), allow_pickle=False) as arrays:
                found.append(_read(estimator, path.stem, dict(arrays)))
        except (OSError, ValueError, KeyError, IndexError, Damaged, zipfile.BadZipFile):
            continue
    return found


def _read(estimator: str, file: str, arrays: dict[str, Numpy]) -> Examples:
    drops = np.argsort(arrays["drops"], kind="stable")
    names = [str(name) for name in arrays["class_names"]] if "class_names" in arrays else []

    def name(number: SupportsInt) -> str:
        return names[int(number)] if int(number) < len(names) else f"class {int(number)}"

    def classes(key: str) -> list[str]:
        return [name(c) for c in arrays.get(key, ())]

    answers = []
    if "predicted" in arrays and "probability" in arrays:
        classes_and_chances = zip(arrays["predicted"][:, drops], arrays["probability"][:, drops])
        answers = [
            [[f"{name(c)}, {100 * p:.0f} %" for c, p in zip(*pair)] for pair in zip(*rates)]
            for rates in classes_and_chances
        ]
    return Examples(
        estimator,
        file,
        arrays["images"],
        arrays["processed"],
        arrays["mask"][:, drops].astype(bool),
        arrays["modified"][:, drops],
        [str(k) for k in arrays["postprocess"]],
        [float(t) for t in arrays["drops"][drops]],
        classes("labels"),
        classes("prediction"),
        answers,
        names,
    )
