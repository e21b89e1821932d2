"""Packs: image files decoded once into one memory-mapped array, so that ImageNet-size sets stream.

A pack is a folder:

    images.npy      uint8 [N, H, W, 3], splits one after the other
    labels.npy      int64 [N]
    checksums.npy   uint32 [N], CRC-32 of each image
    pack.json       sizes, class names, splits, channel statistics, and hashes of the small files and of itself

It is written as `<name>.partial` and renamed when complete, so a pack that exists is whole. The partial folder remembers
which images are done: packing again after an interruption continues there.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from roarfast._files import create_memmap, delete_own_folder, publish_folder, write_atomic
from roarfast._types import Numpy
from roarfast.data.dataset import DataError, Dataset, stats_from_sums
from roarfast.data.decode import decode_image, map_parallel
from roarfast.data.folders import Listing, list_folder

FORMAT, VERSION = "roarfast-pack", 1
_SYNC_EVERY = 512  # images between two flushes to disk: what an interruption can lose
_SMALL_FILES = ("labels.npy", "checksums.npy")
_OWN_FILES = (*_SMALL_FILES, "images.npy", "sums.npy", "done.npy", "plan.json", "pack.json")

Mapped: TypeAlias = np.memmap[Any, np.dtype[Any]]
"""An array of NumPy in a file."""
Progress = Callable[[int, int], None]  # (images done, images in all)


def is_pack(path: str | Path) -> bool:
    """Whether a folder looks like a pack."""
    return (Path(path) / "pack.json").is_file()


def split_names(path: str | Path) -> list[str]:
    """The splits of a pack; `["all"]` if its folder had none."""
    return list(_read_manifest(Path(path))["splits"])


def write_pack(
    source: str | Path,
    target: str | Path,
    size: int,
    *,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Decode, scale and centre-crop the images of a folder into a pack.

    Args:
        source: image folder: one folder per class, below split folders or not; or CUB-200-2011 in its official layout.
        target: the pack to write. While under way it is `<target>.partial`, from which a second call continues.
        size: side of the square images.
        workers: decoding threads; default all cores.
        overwrite: replace an existing pack.
        progress: called with (done, all) now and then.

    Returns:
        `target` as a path.

    Raises:
        DataError: a file cannot be decoded (it is named; nothing is lost: repair or remove it and call again).
    """
    source, target = Path(source).expanduser(), Path(target).expanduser()
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if not source.is_dir():
        raise FileNotFoundError(f"no image folder at {source.absolute()}")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists already; choose another name or pass overwrite=True (--overwrite)")
    if target.exists() and not is_pack(target):
        raise FileExistsError(f"{target} is not a pack: it will not be replaced")
    listing = _sorted_by_split(list_folder(source))
    partial = target.with_name(target.name + ".partial")
    plan = _plan(source, listing, size)
    images, checksums, sums, done = _open_partial(partial, plan, (len(listing.files), size, size, 3))
    todo = np.flatnonzero(~done)
    finished = len(done) - len(todo)
    pending: list[int] = []

    def settle() -> None:
        """What is marked done must be on disk before its mark is."""
        for array in (images, checksums, sums):
            array.flush()
        done[pending] = True
        done.flush()
        pending.clear()

    try:
        for i, image in zip(todo, map_parallel(lambda k: decode_image(listing.files[k], size), todo, workers)):
            images[i] = image
            checksums[i] = zlib.crc32(image.data)
            pixels = image.reshape(-1, 3).astype(np.int64)
            sums[i] = np.concatenate([pixels.sum(0), (pixels**2).sum(0)])
            pending.append(int(i))
            finished += 1
            if len(pending) >= _SYNC_EVERY:
                settle()
            if progress is not None:
                progress(finished, len(done))
    finally:
        settle()
    _finish(partial, listing, size, source, checksums, sums)
    delete_own_folder(target, _OWN_FILES)
    publish_folder(partial, target)
    return target


def open_pack(path: str | Path, split: str = "all", *, verify: bool = False) -> Dataset:
    """Open a pack without reading its images.

    Args:
        path: the folder.
        split: one of its splits, or `"all"`.
        verify: also read every image and compare its checksum.

    Returns:
        A `Dataset` whose images are a read-only memory map.

    Raises:
        DataError: damaged: a file is missing or truncated, or a checksum differs.
    """
    path = Path(path)
    manifest = _read_manifest(path)
    shape = tuple(manifest["shape"])
    images = _map_images(path / "images.npy", shape)
    small = {}
    for name in _SMALL_FILES:
        try:
            content = (path / name).read_bytes()
        except OSError as error:
            raise DataError(f"damaged pack {path}: {name}: {error}") from error
        if hashlib.sha256(content).hexdigest() != manifest["sha256"][name]:
            raise DataError(f"damaged pack {path}: {name} does not match its checksum")
        small[name] = np.load(path / name, allow_pickle=False)
    splits = manifest["splits"]
    if split != "all" and split not in splits:
        raise DataError(f"{path} has no split {split!r}; it has {', '.join(splits)} (and 'all')")
    first, last = (0, shape[0]) if split == "all" else splits[split]
    mean, std = (tuple(v) for v in manifest["stats"].get(split, manifest["stats"]["all"]))
    data = Dataset(
        images[first:last],
        small["labels.npy"][first:last],
        tuple(manifest["class_names"]),
        name=str(path),
        split=split,
        checksums=small["checksums.npy"][first:last],
        known_stats=(mean, std),
    )
    if verify:
        verify_images(data, np.arange(len(data)), np.asarray(data.images))
    return data


def verify_images(data: Dataset, rows: Numpy, images: Numpy) -> None:
    """Compare images just read (`images[k]` is row `rows[k]` of `data`) with the checksums, if there are any."""
    if data.checksums is None:
        return
    for k, row in enumerate(rows):
        if zlib.crc32(np.ascontiguousarray(images[k]).data) != int(data.checksums[row]):
            raise DataError(f"damaged pack {data.name}: image {row} of split {data.split} does not match its checksum")


def _sorted_by_split(listing: Listing) -> Listing:
    order = sorted(
        range(len(listing.files)), key=lambda i: ("train", "val", "test", listing.splits[i]).index(listing.splits[i])
    )
    return Listing(
        [listing.files[i] for i in order],
        listing.labels[order],
        listing.class_names,
        [listing.splits[i] for i in order],
    )


def _plan(source: Path, listing: Listing, size: int) -> dict[str, str | int]:
    """What must be the same for a partial pack to be continued."""
    digest = hashlib.sha256()
    for file, label, split in zip(listing.files, listing.labels, listing.splits):
        stat = file.stat() if file.exists() else None
        known = None if stat is None else (stat.st_size, stat.st_mtime_ns)
        digest.update(repr((str(file.relative_to(source)), int(label), split, known)).encode())
    return {
        "format": FORMAT,
        "version": VERSION,
        "size": size,
        "files": len(listing.files),
        "sources": digest.hexdigest(),
    }


def _open_partial(partial: Path, plan: dict[str, str | int], shape: tuple[int, ...]) -> list[Mapped]:
    names = ("images.npy", "checksums.npy", "sums.npy", "done.npy")
    kinds = (np.uint8, np.uint32, np.int64, np.bool_)
    shapes: tuple[tuple[int, ...], ...] = (shape, shape[:1], (shape[0], 6), shape[:1])
    plan_file = partial / "plan.json"
    try:
        same = plan_file.is_file() and json.loads(plan_file.read_text()) == plan
        if same:
            arrays = [np.load(partial / name, mmap_mode="r+", allow_pickle=False) for name in names]
            if [a.shape for a in arrays] == list(shapes):
                return arrays
    except (OSError, ValueError):
        pass  # a damaged partial pack is started over
    delete_own_folder(partial, _OWN_FILES)
    partial.mkdir(parents=True)
    made = [create_memmap(partial / name, kind, s) for name, kind, s in zip(names, kinds, shapes)]
    write_atomic(plan_file, json.dumps(plan).encode())
    return made


def _finish(partial: Path, listing: Listing, size: int, source: Path, checksums: Numpy, sums: Numpy) -> None:
    np.save(partial / "labels.npy", listing.labels)
    splits = {
        s: [listing.splits.index(s), len(listing.splits) - listing.splits[::-1].index(s)]
        for s in dict.fromkeys(listing.splits)
    }
    stats = {}
    for split, (first, last) in {**splits, "all": [0, len(listing.files)]}.items():
        total = np.asarray(sums[first:last]).sum(0)
        stats[split] = stats_from_sums(total[:3], total[3:], np.full(3, (last - first) * size * size))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "shape": [len(listing.files), size, size, 3],
        "class_names": list(listing.class_names),
        "splits": splits,
        "stats": stats,
        "source": source.name,
        "sha256": {name: hashlib.sha256((partial / name).read_bytes()).hexdigest() for name in _SMALL_FILES},
    }
    manifest["manifest_sha256"] = _manifest_hash(manifest)
    for name in ("sums.npy", "done.npy", "plan.json"):
        (partial / name).unlink()
    write_atomic(partial / "pack.json", json.dumps(manifest, indent=1).encode())


def _manifest_hash(manifest: Mapping[str, object]) -> str:
    rest = {k: v for k, v in manifest.items() if k != "manifest_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    file = path / "pack.json"
    if not file.is_file():
        hint = " (it was not finished: pack again to continue)" if path.name.endswith(".partial") else ""
        raise FileNotFoundError(f"no pack at {path.absolute()}{hint}")
    try:
        manifest = json.loads(file.read_text())
        intact = manifest["manifest_sha256"] == _manifest_hash(manifest)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"damaged pack {path}: pack.json is not readable: {error!r}") from error
    if not intact:
        raise DataError(f"damaged pack {path}: pack.json does not match its checksum")
    if manifest["format"] != FORMAT or manifest["version"] != VERSION:
        raise DataError(f"{path} is {manifest['format']} version {manifest['version']}, this reads {FORMAT} {VERSION}")
    return manifest


def _map_images(file: Path, shape: tuple[int, ...]) -> Numpy:
    try:
        images = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"damaged pack: {file} is missing or truncated: {error}") from error
    if images.shape != shape or images.dtype != np.uint8:
        raise DataError(f"damaged pack: {file} holds {images.dtype} {images.shape}, pack.json says uint8 {shape}")
    return images
