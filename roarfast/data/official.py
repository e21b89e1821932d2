"""MNIST, Fashion-MNIST and CIFAR-100 from the files their authors publish, without unpickling anything."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np

from roarfast._torchvision import import_torchvision
from roarfast._types import Numpy
from roarfast.data.dataset import DataError, Dataset
from roarfast.data.download import fetch

_FASHION_CLASSES = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
_IDX_PREFIX = {"train": "train", "test": "t10k"}
_CIFAR100_URL = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
_CIFAR100_RECORD = 2 + 3 * 32 * 32  # coarse label, fine label, three planes


def load_official(name: str, split: str, root: Path, download: bool = False) -> Dataset:
    """One split of `"mnist"`, `"fashion"` or `"cifar100"`; images as uint8 `[N, H, W, C]`.

    Args:
        name: Which one.
        split: `"train"` or `"test"`.
        root: The folder that holds `MNIST/raw` or `FashionMNIST/raw` (IDX files, also gzipped), or `cifar-100-binary`.
        download: Fetch the files if they are not there.

    Raises:
        FileNotFoundError: They are not there; says where they were looked for and how to get them.
        DataError: They are damaged.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    return _cifar100(split, root, download) if name == "cifar100" else _idx_digits(name, split, root, download)


def _idx_digits(name: str, split: str, root: Path, download: bool) -> Dataset:
    folder_name = "MNIST" if name == "mnist" else "FashionMNIST"
    if download:
        published = getattr(import_torchvision("datasets"), folder_name)
        raw = root / folder_name / "raw"
        for file, md5 in published.resources:
            if not (raw / file.removesuffix(".gz")).is_file():
                fetch([mirror + file for mirror in published.mirrors], raw / file, md5)
    prefix = _IDX_PREFIX[split]
    files = [_find(name, root, folder_name, f"{prefix}-{kind}-ubyte", split) for kind in ("images-idx3", "labels-idx1")]
    images, labels = read_idx(files[0]), read_idx(files[1])
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise DataError(f"{files[0]} and {files[1]} do not belong together: shapes {images.shape} and {labels.shape}")
    classes = tuple(map(str, range(10))) if name == "mnist" else _FASHION_CLASSES
    return Dataset(images[..., None], labels.astype(np.int64), classes, name=name, split=split, boxes=ink_boxes(images))


def _find(name: str, root: Path, folder_name: str, file: str, split: str) -> Path:
    places = (root / folder_name / "raw", root / folder_name, root / name)
    for place in places:
        for candidate in (place / file, place / f"{file}.gz"):
            if candidate.is_file():
                return candidate
    raise FileNotFoundError(
        f"{name} not found: looked for {places[0] / file} (also .gz, also in {places[1]} and {places[2]}). Get it with "
        f"load({name!r}, {split!r}, download=True), or put the files there, or pass root=… (or set ROARFAST_DATA)."
    )


def read_idx(path: Path) -> Numpy:
    """An IDX file of bytes (plain or gzipped) as a uint8 array.

    Raises:
        DataError: Not such a file, or not as long as its header says.
    """
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} is damaged: {error}") from error
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08" or len(raw) < 4 + 4 * raw[3]:
        raise DataError(f"{path} is not an IDX file of bytes: it begins with {raw[:4]!r}")
    shape = struct.unpack(f">{raw[3]}I", raw[4 : 4 + 4 * raw[3]])
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise DataError(f"{path} is damaged: its header says {shape}, it holds {values.size} bytes")
    return values.reshape(shape).copy()


def ink_boxes(images: Numpy) -> Numpy:
    """The smallest rectangle that holds all pixels above 0: uint8 `[N, H, W]` to float32 `[N, 4]`, x0 y0 x1 y1.

    Pixel [y, x] covers [x, x + 1), so an image with one pixel has a box of side 1; an empty one has a box of zeros.

    Example:
        >>> image = np.zeros((1, 5, 5), np.uint8)
        >>> image[0, 1:3, 2] = 9
        >>> ink_boxes(image).tolist()
        [[2.0, 1.0, 3.0, 3.0]]
    """
    ink = images > 0
    sides = []
    for line in (np.asarray(ink.any(1)), np.asarray(ink.any(2))):  # columns with ink, rows with ink
        first = line.argmax(1)
        last = line.shape[1] - line[:, ::-1].argmax(1)
        sides.append((first, np.where(line.any(1), last, first)))
    (x0, x1), (y0, y1) = sides
    return np.stack([x0, y0, x1, y1], 1).astype(np.float32)


def _cifar100(split: str, root: Path, download: bool) -> Dataset:
    folder = root / "cifar-100-binary"
    if download and not (folder / f"{split}.bin").is_file():
        archive = fetch([_CIFAR100_URL], root / _CIFAR100_URL.rpartition("/")[2], "03b5dce01913d631647c71ecec9e9cb8")
        import_torchvision("datasets").utils.extract_archive(str(archive), str(root))
    path = folder / f"{split}.bin"
    if not path.is_file():
        raise FileNotFoundError(
            f"cifar100 not found: looked for {path}, of the binary version ({_CIFAR100_URL}). Get it with "
            f"load('cifar100', {split!r}, download=True), or unpack it there, or pass root=… (or set ROARFAST_DATA)."
        )
    raw = np.fromfile(path, np.uint8)
    if raw.size == 0 or raw.size % _CIFAR100_RECORD:
        raise DataError(f"{path} is damaged: {raw.size} bytes are no whole number of records of {_CIFAR100_RECORD}")
    records = raw.reshape(-1, _CIFAR100_RECORD)
    images = np.ascontiguousarray(records[:, 2:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    names_file = folder / "fine_label_names.txt"
    names = names_file.read_text().split() if names_file.is_file() else [str(c) for c in range(100)]
    return Dataset(images, records[:, 1].astype(np.int64), tuple(names), name="cifar100", split=split)
