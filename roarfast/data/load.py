"""`load`: a dataset by name or path."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roarfast._torchvision import import_torchvision
from roarfast.data import official, pack, shapes
from roarfast.data.dataset import DataError, Dataset
from roarfast.data.download import fetch
from roarfast.data.folders import SPLIT_NAMES, is_cub, load_folder
from roarfast.data.npz import has_split_keys, load_npz

_CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class Request:
    """What is asked of a named data set; see `load`."""

    split: str
    root: Path
    download: bool = False
    size: int | None = None
    n: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Source:
    """A data set known by name.

    Attributes:
        name: As in `load` and in configs.
        read: Makes a split; it may leave cutting it to n images to `load`.
        generated: Whether it is made by a program: then `n` is how many to make.
        period: Of a generated one: any so many images from a multiple of it on have `per_class` of each class.
        per_class: See `period`.
        most: Of a generated one: the largest n.
    """

    name: str
    read: Callable[[Request], Dataset]
    generated: bool = False
    period: int = 1
    per_class: int = 1
    most: int | None = None


def default_root() -> Path:
    """Where named datasets are looked for: `ROARFAST_DATA`, else `roarfast` in the user's cache folder."""
    if os.environ.get("ROARFAST_DATA"):
        return Path(os.environ["ROARFAST_DATA"]).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "roarfast" / "data"


def load(
    name_or_path: str | Path,
    split: str = "train",
    root: str | Path | None = None,
    download: bool = False,
    *,
    size: int | None = None,
    n: int | None = None,
    seed: int = 0,
    layout: str | None = None,
) -> Dataset:
    """Load one split of a dataset.

    Args:
        name_or_path: `"shapes"` (generated), `"digits"` (scikit-learn), `"mnist"`, `"fashion"`, `"cifar10"`, `"cifar100"`,
            `"svhn"`, `"cub200"`, or a path: a
            pack, an image folder (one folder per class, or the official layout of CUB-200-2011), or an `.npz` file with
            `images`, `labels` and `is_train`, or `train_images`, `train_labels`, `test_images` and `test_labels`
            (`docs/data.md`).
        split: `"train"` or `"test"`; `"all"` for everything a path holds.
        root: folder of the named datasets; default `default_root()`.
        download: fetch `cifar10`, `svhn`, `mnist`, `fashion` or `cifar100` into `root` if it is not there. Nothing is downloaded unless asked for.
        size: scale and centre-crop image files to this size; `cub200` takes 224 unless told otherwise. Images that are
            stored as arrays are not scaled: another size than theirs is an error.
        n: only the first n images (of `shapes`: generate n); if there are fewer, all, and `notes` says so.
        seed: of `shapes`.
        layout: of the images in an `.npz` file, `"NHWC"` or `"NCHW"`; default NHWC, unless the shape looks like NCHW,
            which is an error.

    Returns:
        The split as a `Dataset`.

    Raises:
        FileNotFoundError: nothing there; the message says where it was looked for and how to get it.
        DataError: there, but damaged or inconsistent.

    Example:
        >>> data = load("shapes", "test", n=10)
        >>> data.images.shape, data.class_names[0]
        ((10, 32, 32, 3), 'disk')
    """
    if n is not None and n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    name = str(name_or_path)
    if layout is not None and name in SOURCES:
        raise ValueError(f"layout={layout!r} is for .npz files, not for {name!r}")
    folder = Path(root).expanduser() if root is not None else default_root()
    if name in SOURCES:
        data = SOURCES[name].read(Request(split, folder, download, size, n, seed))
        if SOURCES[name].generated:
            return data
    else:
        data = _path(Path(name_or_path).expanduser(), split, size, layout)
    if size is not None and data.image_shape[:2] != (size, size):
        h, w, _ = data.image_shape
        raise DataError(
            f"size={size} (data.image_size in a study) scales image files, but {data.name} has arrays of {h}x{w}: leave it "
            "out, or scale the images before they are stored"
        )
    return first(data, n)


def first(data: Dataset, n: int | None) -> Dataset:
    """The first n images; where there are fewer, all of them with a note."""
    if n is None or n == len(data):
        return data
    if n < len(data):
        return data.subset(slice(0, n))
    note = f"{n} {data.split} images were asked for, and there are {len(data)}: all of them are used"
    return replace(data, notes=(*data.notes, note))


def _path(path: Path, split: str, size: int | None, layout: str | None) -> Dataset:
    if not path.exists():
        names = ", ".join(SOURCES)
        hint = f" (known names: {names})" if path.parent == Path() else ""
        raise FileNotFoundError(f"no dataset at {path.absolute()}{hint}; give a folder, a pack or an .npz file")
    if layout is not None and path.suffix != ".npz":
        raise ValueError(f"layout={layout!r} is for .npz files, which {path} is not")
    if pack.is_pack(path):
        return pack.open_pack(path, split)
    if path.is_dir():
        return load_folder(path, split, size)
    if path.suffix == ".npz":
        return load_npz(path, split, size, layout)
    raise DataError(f"{path} is neither a folder, a pack nor an .npz file")


def has_splits(path: Path) -> bool:
    """Whether a pack, folder or `.npz` file says which of its images are for training."""
    if not path.is_dir():
        return path.suffix == ".npz" and has_split_keys(path)
    if pack.is_pack(path):
        return pack.split_names(path) != ["all"]
    return any((path / name).is_dir() for name in SPLIT_NAMES) or is_cub(path) or is_cub(path / "CUB_200_2011")


def _digits(split: str) -> Dataset:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ModuleNotFoundError("digits comes with scikit-learn: pip install scikit-learn") from error
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    raw = load_digits()
    images = np.rint(raw.images * (255 / 16)).astype(np.uint8)[..., None]  # 17 grey levels
    test = np.arange(len(images)) % 5 == 4
    rows = np.flatnonzero(test == (split == "test"))
    return Dataset(images[rows], raw.target[rows], tuple(map(str, range(10))), name="digits", split=split)


def _torchvision(name: str, split: str, root: Path, download: bool) -> Dataset:
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    datasets = import_torchvision("datasets")
    if download:  # torchvision finds the files there, checks and unpacks them
        if name == "cifar10":
            if not (root / datasets.CIFAR10.base_folder).is_dir():
                fetch([datasets.CIFAR10.url], root / datasets.CIFAR10.filename, datasets.CIFAR10.tgz_md5)
        else:
            url, file, md5 = datasets.SVHN.split_list[split]
            fetch([url], root / file, md5)
    try:
        if name == "cifar10":
            raw = datasets.CIFAR10(str(root), train=split == "train", download=download)
            return Dataset(raw.data, np.array(raw.targets), _CIFAR10_CLASSES, name=name, split=split)
        raw = datasets.SVHN(str(root), split=split, download=download)
        return Dataset(
            np.ascontiguousarray(raw.data.transpose(0, 2, 3, 1)),
            raw.labels,
            tuple(map(str, range(10))),
            name=name,
            split=split,
        )
    except RuntimeError as error:
        if "not found or corrupted" not in str(error):
            raise
        files = "cifar-10-batches-py" if name == "cifar10" else f"{split}_32x32.mat"
        raise FileNotFoundError(
            f"{name} not found (or damaged): looked for {root / files}. Get it with "
            f"load({name!r}, {split!r}, download=True), or put the files there, or pass root=… (or set ROARFAST_DATA)."
        ) from error


def _cub200(split: str, root: Path, size: int) -> Dataset:
    for folder in (root / "CUB_200_2011", root):
        if (folder / "images.txt").is_file():
            return load_folder(folder, split, size)
    raise FileNotFoundError(
        f"CUB-200-2011 not found: looked for {root / 'CUB_200_2011' / 'images.txt'}. Download CUB_200_2011.tgz from "
        "https://data.caltech.edu/records/65de6-vp158, unpack it there, or pass root=… (or set ROARFAST_DATA)."
    )


def _named(name: str, read: Callable[[str, str, Path, bool], Dataset]) -> Source:
    return Source(name, lambda r: read(name, r.split, r.root, r.download))


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "shapes",
            lambda r: shapes.generate(r.split, r.n, r.seed),
            generated=True,
            period=100,
            per_class=10,
            most=1_000_000,  # 3 GB
        ),
        Source("digits", lambda r: _digits(r.split)),
        *(_named(name, official.load_official) for name in ("mnist", "fashion")),
        _named("cifar10", _torchvision),
        _named("cifar100", official.load_official),
        _named("svhn", _torchvision),
        Source("cub200", lambda r: _cub200(r.split, r.root, 224 if r.size is None else r.size)),
    )
}
"""Name → record."""
