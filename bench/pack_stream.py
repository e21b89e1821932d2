"""A pack larger than memory is meant to be: one epoch from a cold disk, and maps of its size written and read.

    python bench/pack_stream.py [--gb 8] [--folder DIR]

Writes a synthetic pack at 224x224, then prints, from a cold cache: a plain read of the file, an epoch of batches as they are
read (shuffled, checksums compared), and some of its batches as a training gets them (float32, cropped and flipped); then a map
store of as many float16 maps, written in chunks, stopped half-way and resumed, and read back. Beside each: megabytes per second,
and the most anonymous memory (`RssAnon`). Not part of `make bench`: it takes minutes and the disk.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from roarfast._files import write_atomic
from roarfast.data import DeviceDataset, Transform, epoch_batches
from roarfast.data.pack import FORMAT, VERSION, _manifest_hash, open_pack
from roarfast.explain import AttributionStore

SIDE, BATCH, CHUNK, PIECES = 224, 64, 256, 8
STRIDE = SIDE * SIDE * 3


def write_synthetic(folder: Path, count: int) -> None:
    """A pack of noise: blocks of random bytes, each image from another place of them."""
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, 64 * STRIDE + count, dtype=np.uint8)
    images = np.lib.format.open_memmap(folder / "images.npy", "w+", np.uint8, (count, SIDE, SIDE, 3))
    begin = images.offset
    del images
    checksums = np.empty(count, np.uint32)
    with (folder / "images.npy").open("rb+", buffering=0) as file:
        file.seek(begin)
        for i in range(count):
            image = noise[(i % 61) * STRIDE + i :][:STRIDE]
            checksums[i] = zlib.crc32(image.data)
            file.write(image.data)
        os.fsync(file.fileno())
    np.save(folder / "checksums.npy", checksums)
    np.save(folder / "labels.npy", np.arange(count, dtype=np.int64) % 10)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "shape": [count, SIDE, SIDE, 3],
        "class_names": [str(c) for c in range(10)],
        "splits": {"train": [0, count]},
        "stats": {"all": [[0.5] * 3, [0.29] * 3], "train": [[0.5] * 3, [0.29] * 3]},
        "source": "synthetic",
        "sha256": {
            name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("labels.npy", "checksums.npy")
        },
    }
    manifest["manifest_sha256"] = _manifest_hash(manifest)
    write_atomic(folder / "pack.json", json.dumps(manifest).encode())


def drop_cache(folder: Path) -> None:
    """Lets the kernel forget the files, and those of nobody else."""
    for path in folder.rglob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Watch:
    """The most anonymous memory of this process while it runs."""

    def __init__(self) -> None:
        self.most, self.seconds = 0, 0.0

    @contextmanager
    def running(self) -> Iterator[Watch]:
        done = threading.Event()

        def look() -> None:
            while not done.wait(0.05):
                lines = Path("/proc/self/status").read_text().splitlines()
                self.most = max(self.most, *(int(line.split()[1]) for line in lines if line.startswith("RssAnon")))

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        begun = time.perf_counter()
        try:
            yield self
        finally:
            self.seconds += time.perf_counter() - begun
            done.set()
            thread.join()


def row(what: str, size: float, watch: Watch, plain: float | None = None) -> float:
    speed = size / watch.seconds / 1e6
    ratio = "" if plain is None else f"{speed / plain:6.2f}x of the plain read"
    print(f"{what:<58}{speed:>8.0f} MB/s  RssAnon {watch.most / 1e3:>5.0f} MB  {ratio}", flush=True)
    return speed


def plain_read(path: Path, first: float, last: float) -> int:
    """Reads a part of a file, in order; returns its bytes."""
    whole, buffer = path.stat().st_size, memoryview(bytearray(16 << 20))
    begin, end = int(first * whole), int(last * whole)
    with path.open("rb", buffering=0) as file:
        file.seek(begin)
        while (left := end - file.tell()) > 0:
            file.readinto(buffer[: min(left, len(buffer))])
    return end - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=8.0)
    parser.add_argument("--folder", type=Path, help="where the pack is written, and deleted; default: temporary files")
    parser.add_argument("--pack", type=Path, help="a pack that this script left, instead of a new one; it stays")
    parser.add_argument("--pieces", type=int, default=PIECES, help=f"so many of {PIECES} parts of the epoch")
    options = parser.parse_args()
    if options.pack is not None:
        stream(options.pack, len(open_pack(options.pack, "train")), options.pieces)
        return
    count = int(options.gb * 1e9 / STRIDE)
    with tempfile.TemporaryDirectory(dir=options.folder) as above:
        folder = Path(above) / "synthetic.pack"
        write_synthetic(folder, count)
        drop_cache(folder)
        print(f"{count} images of {SIDE}x{SIDE}, {count * STRIDE / 1e9:.1f} GB; cold before each row (posix_fadvise)")
        stream(folder, count, options.pieces)
        (folder / "images.npy").unlink()
        maps(Path(above), count)


def stream(folder: Path, count: int, pieces: int) -> None:
    """Parts of the file and of the epoch in turn, each cold: the speed of a disk may change within a minute."""
    order = list(epoch_batches(count, BATCH, seed=0, epoch=0))
    data = DeviceDataset(open_pack(folder, "train"), "cpu", budget=0)
    reading, streaming, floats = Watch(), Watch(), Watch()
    size = [0, 0, 0]
    edges = np.linspace(0, len(order), PIECES + 1).astype(int)
    for piece in range(pieces):
        drop_cache(folder)
        with reading.running():
            size[0] += plain_read(folder / "images.npy", piece / PIECES, (piece + 1) / PIECES)
        drop_cache(folder)
        batches = order[edges[piece] : edges[piece + 1]]
        few = len(batches) // 16
        with streaming.running():
            for batch, _ in data._streamed_batches(batches[few:]):
                size[1] += len(batch.rows) * STRIDE
        with floats.running():
            for x, _ in data.batches(batches[:few], Transform(crop=192, random_crop=True, flip=True), reuse=True):
                size[2] += len(x) * STRIDE
    print(f"{pieces} of {PIECES} parts of the epoch, {size[0] / 1e9:.1f} GB read twice")
    plain = row("plain read", size[0], reading)
    row("the epoch as it is read: shuffled, checksums compared", size[1], streaming, plain)
    row("a sixteenth of it as float32 batches, cropped and flipped", size[2], floats, plain)


def maps(above: Path, count: int) -> None:
    store = AttributionStore(above / "maps")
    identity = {"estimator": "synthetic", "shape": [count, SIDE, SIDE], "postprocess": [], "data": "synthetic"}
    values = np.random.default_rng(1).random((CHUNK, SIDE, SIDE), np.float32)
    size = count * SIDE * SIDE * 2

    def write(most: int) -> int:
        done = 0
        with store.writer(identity, np.dtype(np.float16), CHUNK, False) as writer:
            missing = list(writer.missing)
            for begin, end in missing:
                if done >= most:
                    return done
                writer.write(begin, values[: end - begin], np.empty((end - begin, 0)))
                done += end - begin
            writer.finish({})
        return done

    with Watch().running() as watch:
        first = write(count // 2)
        second = write(count)
    assert first < count and first + second == count
    row(f"map store: float16, chunks of {CHUNK}, stopped and resumed", size, watch)
    drop_cache(above)
    with Watch().running() as watch:
        found = store.open("synthetic", verify=True)
    row("map store: opened, checksum compared", size, watch)
    assert len(found) == count and found[count - 1].shape == (SIDE, SIDE)


if __name__ == "__main__":
    main()
