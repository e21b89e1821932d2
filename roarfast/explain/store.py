"""`AttributionStore`: maps on disk, each with what it was made from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from roarfast._files import create_memmap, delete_own_folder, publish_folder, read_json, write_json
from roarfast.explain.files import Journal, locked
from roarfast.explain.hashing import checksum, file_checksum
from roarfast.explain.names import Name, split_name

Rows: TypeAlias = "int | slice | Sequence[int] | npt.NDArray[np.int64] | npt.NDArray[np.bool_]"
"""What indexes an axis."""

FORMAT = 1
_FILES = ("maps.npy", "scales.npy", "tv.npy")
_OWN_FILES = (*_FILES, "identity.json", "meta.json", "journal.jsonl")


class StoreMismatch(ValueError):
    """The stored maps were made from something else than asked for."""


class StoreCorrupt(ValueError):
    """A stored file is not what was written."""


def differences(stored: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """The keys of `wanted` whose stored values differ, as readable lines."""
    return [
        f"{key}: stored {stored.get(key)!r}, asked for {value!r}"
        for key, value in wanted.items()
        if stored.get(key) != value
    ]


class StoredMaps:
    """The maps of one estimator: an array-like `[N, H, W]` on disk.

    Indexing returns float32 in memory, whatever they are stored as. `raw` is the memory map itself.

    Attributes:
        meta: What the maps were made from, checksums, versions and total-variation statistics.
        raw: The memory-mapped file, float32 or float16.
        tv: Total variation float64 `[N]` of the maps after each post-processing, by its name.
    """

    def __init__(self, folder: Path, verify: bool) -> None:
        self.folder = folder
        meta = read_json(folder / "meta.json")
        if not isinstance(meta, dict) or meta.get("identity", {}).get("format") != FORMAT:
            raise StoreCorrupt(f"{folder / 'meta.json'} is missing, damaged or of another version of the format")
        self.meta: dict[str, Any] = meta
        if verify:
            self.verify()
        self.raw = np.load(folder / "maps.npy", mmap_mode="r", allow_pickle=False)
        self._scales: npt.NDArray[np.float32] = np.load(folder / "scales.npy", allow_pickle=False)
        tv = np.load(folder / "tv.npy", allow_pickle=False)
        self.tv = {name: tv[:, i] for i, name in enumerate(meta["identity"]["postprocess"])}

    @property
    def shape(self) -> tuple[int, ...]:
        """`(N, H, W)`, or `(N, C, H, W)` for per-channel maps."""
        return tuple(self.raw.shape)

    def __len__(self) -> int:
        return int(self.raw.shape[0])

    def __getitem__(self, key: Rows | tuple[Rows, ...]) -> npt.NDArray[np.float32]:
        maps = np.asarray(self.raw[key], np.float32)
        if self.raw.dtype == np.float32:
            return maps
        first = key[0] if isinstance(key, tuple) else key
        scales = self._scales[first]
        return maps / scales.reshape(scales.shape + (1,) * (maps.ndim - scales.ndim))

    def verify(self) -> None:
        """Reads the files again; a changed byte is a `StoreCorrupt` error."""
        for name in _FILES:
            path = self.folder / name
            if not path.exists() or file_checksum(path) != self.meta["checksums"].get(name):
                raise StoreCorrupt(f"{path} is missing or damaged: delete {self.folder} and compute the maps again")


class AttributionStore:
    """A folder of attribution maps, one sub-folder per estimator.

    A sub-folder appears under its name only when it is complete; until then it is `<name>.partial`, from which an
    interrupted computation is resumed. Maps of another model, data, seed or setting are an error, never reused.

    Args:
        root: The folder; made when first written to.

    Example:
        >>> import tempfile
        >>> AttributionStore(tempfile.mkdtemp()).names()
        []
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def folder(self, name: str | Name) -> Path:
        """Where the complete maps of an estimator are, or will be."""
        return self.root / (name.slug if isinstance(name, Name) else _slug(name))

    def names(self) -> list[str]:
        """The estimators whose maps are complete."""
        found = (read_json(path) for path in sorted(self.root.glob("*/meta.json")) if path.parent.suffix != ".partial")
        return [meta["identity"]["estimator"] for meta in found if isinstance(meta, dict)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, (str, Name)) and (self.folder(name) / "meta.json").exists()

    def open(self, name: str | Name, expected: Mapping[str, object] | None = None, verify: bool = True) -> StoredMaps:
        """The maps of an estimator.

        Args:
            name: The estimator.
            expected: What they must have been made from, as in `{"model": model_hash(model)}`.
            verify: Compare checksums (reads the files once).

        Raises:
            FileNotFoundError: If there are none, or only a part.
            StoreMismatch: If they were made from something else.
            StoreCorrupt: If a file was changed.
        """
        folder = self.folder(name)
        if not folder.exists():
            hint = " (only a part of them: run the same command again)" if _partial(folder).exists() else ""
            raise FileNotFoundError(f"no maps of {str(name)!r} in {self.root}{hint}; there are: {self.names()}")
        stored = StoredMaps(folder, verify)
        wrong = differences(stored.meta["identity"], expected or {})
        if wrong:
            raise StoreMismatch(f"the maps in {folder} were made from something else: " + "; ".join(wrong))
        return stored

    def delete(self, name: str | Name) -> None:
        """Deletes the maps of an estimator, complete or not."""
        for folder in (self.folder(name), _partial(self.folder(name))):
            delete_own_folder(folder, _OWN_FILES)

    @contextlib.contextmanager
    def writer(
        self, identity: Mapping[str, Any], dtype: npt.DTypeLike = np.float32, chunk: int = 256, overwrite: bool = False
    ) -> Iterator[MapWriter]:
        """Writes the maps of one estimator, going on where an earlier writer was killed.

        Args:
            identity: What the maps are made from, as JSON values; with `estimator`, `shape` and `postprocess`.
            dtype: float32, or float16 (with a power-of-two scale per map, so small gradients do not vanish).
            chunk: Maps that are written and noted at a time.
            overwrite: Delete what is there if it was made from something else, instead of raising `StoreMismatch`.
        """
        name = str(identity["estimator"])
        folder = self.folder(name)
        self.root.mkdir(parents=True, exist_ok=True)
        full = {**identity, "format": FORMAT, "dtype": np.dtype(dtype).name}
        with locked(self.root / f".{folder.name}.lock", f"the maps of {name!r} in {self.root}"):
            _make_way(folder, full, overwrite)
            _make_way(_partial(folder), {**full, "chunk": chunk}, overwrite)
            writer = MapWriter(folder, full, chunk)
            try:
                yield writer
            finally:
                writer.close()


def _slug(name: str) -> str:
    return split_name(name).slug  # a user's estimator is any name that follows the grammar


def _partial(folder: Path) -> Path:
    return folder.with_name(folder.name + ".partial")


def _make_way(folder: Path, identity: Mapping[str, object], overwrite: bool) -> None:
    if not folder.exists():
        return
    found = read_json(folder / "identity.json")
    wrong = differences(found, identity) if isinstance(found, dict) else ["it is damaged"]
    if wrong and not overwrite and isinstance(found, dict):
        raise StoreMismatch(
            f"{folder} holds maps of something else: {'; '.join(wrong)}. "
            "Use another folder, or overwrite=True to delete them."
        )
    if wrong:
        delete_own_folder(folder, _OWN_FILES)


class MapWriter:
    """Writes chunks of maps in any order; made by `AttributionStore.writer`."""

    def __init__(self, folder: Path, identity: Mapping[str, Any], chunk: int) -> None:
        self.folder = folder
        self.identity = identity
        self.complete = folder.exists()
        n = int(identity["shape"][0])
        self.chunks = [(start, min(start + chunk, n)) for start in range(0, n, chunk)]
        self._journal: Journal | None = None
        if self.complete:
            self.missing: list[tuple[int, int]] = []
            return
        partial = _partial(folder)
        if partial.exists() and not self._opens(partial, n):
            delete_own_folder(partial, _OWN_FILES)
        if not partial.exists():
            partial.mkdir()
            self._create(partial, n)
            write_json(partial / "identity.json", {**identity, "chunk": chunk})  # last: now it can be resumed
        self._arrays = [np.lib.format.open_memmap(partial / name, mode="r+") for name in _FILES]
        self._journal = Journal(partial / "journal.jsonl")
        intact = {c for c, sum_ in self._journal.done.items() if self._checksum(*c) == sum_}
        self.missing = [c for c in self.chunks if c not in intact]

    def _layout(self, n: int) -> Iterator[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of each file."""
        identity = self.identity
        shapes = (tuple(identity["shape"]), (n,), (n, len(identity["postprocess"])))
        yield from zip(_FILES, shapes, (identity["dtype"], "float32", "float64"))

    def _create(self, partial: Path, n: int) -> None:
        for name, shape, dtype in self._layout(n):
            create_memmap(partial / name, dtype, shape)

    def _opens(self, partial: Path, n: int) -> bool:
        """Whether the files of an unfinished folder are there, whole, and of the right kind; the journal checks the rest."""
        try:
            for name, shape, dtype in self._layout(n):
                array = np.lib.format.open_memmap(partial / name, mode="r")
                if array.shape != shape or array.dtype != np.dtype(dtype) or not array.flags.c_contiguous:
                    return False
        except (OSError, ValueError):
            return False
        return True

    def write(self, start: int, maps: npt.NDArray[np.float32], tv: npt.NDArray[np.float64]) -> None:
        """Puts a chunk on disk.

        Args:
            start: Its first map; it must be one of `chunks`.
            maps: float32 `[n, H, W]`, finite.
            tv: Total variations `[n, number of post-processings]`.
        """
        stop = start + len(maps)
        if self._journal is None or (start, stop) not in self.chunks:
            raise ValueError(f"maps {start} to {stop} are not a chunk that is missing in {self.folder}")
        finite = np.isfinite(maps).reshape(len(maps), -1).all(1)
        if not finite.all():
            bad = (np.flatnonzero(~finite) + start).tolist()
            raise ValueError(
                f"the maps of {self.identity['estimator']!r} are not finite for images {bad[:10]}: "
                "the model's gradients overflow or its input is not finite"
            )
        scales = _scales(maps) if self.identity["dtype"] == "float16" else np.ones(len(maps), np.float32)
        for array, values in zip(self._arrays, (maps * _column(scales, maps.ndim), scales, tv)):
            array[start:stop] = values
            array.flush()
        self._journal.add(start, stop, self._checksum(start, stop))
        self.missing = [c for c in self.missing if c != (start, stop)]

    def finish(self, extra: Mapping[str, object]) -> None:
        """Makes the maps appear under their name, with metadata `extra` besides the identity."""
        if self.complete:
            return
        if self.missing:
            raise RuntimeError(f"{len(self.missing)} chunks are still missing in {_partial(self.folder)}")
        partial = _partial(self.folder)
        tv = np.array(self._arrays[2])
        self.close()
        for name in _FILES:
            with (partial / name).open("rb") as file:
                os.fsync(file.fileno())
        statistics = {
            k: {"mean": float(tv[:, i].mean()), "std": float(tv[:, i].std())} if len(tv) else {}
            for i, k in enumerate(self.identity["postprocess"])
        }
        checksums = {name: file_checksum(partial / name) for name in _FILES}
        meta = {"identity": dict(self.identity), "checksums": checksums, "total_variation": statistics, **extra}
        write_json(partial / "identity.json", self.identity)
        write_json(partial / "meta.json", meta)
        publish_folder(partial, self.folder)
        (self.folder / "journal.jsonl").unlink(missing_ok=True)
        self.complete = True

    def close(self) -> None:
        """Closes the files; what was written stays for the next writer."""
        if self._journal is not None:
            self._journal.close()
            self._arrays = []
            self._journal = None

    def _checksum(self, start: int, stop: int) -> str:
        return checksum(*(array[start:stop] for array in self._arrays))


def _column(values: npt.NDArray[np.float32], ndim: int) -> npt.NDArray[np.float32]:
    return values.reshape(values.shape + (1,) * (ndim - 1))


def _scales(maps: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Powers of two that bring the largest value of each map to [2^14, 2^15), within float16."""
    largest = np.abs(maps).reshape(len(maps), -1).max(1, initial=0)
    _, exponent = np.frexp(largest)
    # Between the exponents of normal float32 numbers, so that scale and product stay exact.
    return np.where(largest > 0, np.ldexp(np.float32(1), np.clip(15 - exponent, -126, 126)), 1).astype(np.float32)


__all__: Sequence[str] = ("AttributionStore", "MapWriter", "StoreCorrupt", "StoreMismatch", "StoredMaps")
