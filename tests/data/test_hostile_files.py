"""Files made to break their reader: what is promised and not there, images of no size, code, links, markup."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image

from roarfast.data import load
from roarfast.data.dataset import DataError
from roarfast.data.decode import decode_image
from roarfast.data.pack import open_pack, write_pack


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """A PNG that claims a size, whatever its pixels are."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def some(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(buffer, kind)
    return buffer.getvalue()


HOSTILE = {
    "empty": b"",
    "text": b"#!/bin/sh\necho owned\n",
    "a bomb of 10^10 pixels": png(100_000, 100_000),
    "a bomb of zeros": png(60_000, 60_000, bytes(1_000_000)),
    "no pixels": png(0, 0),
    "missing rows": png(64, 64, bytes(100)),
    "cut PNG": some("PNG")[:200],
    "cut JPEG": some("JPEG")[:150],
    "cut GIF": some("GIF")[:60],
    "cut TIFF": some("TIFF")[:100],
    "cut WEBP": some("WEBP")[:60],
    "EPS, which would start a program": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/tmp/owned) (w) file\n",
    "TIFF that points beyond itself": b"II*\0\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.filterwarnings(
    "ignore::PIL.Image.DecompressionBombWarning", "ignore:Truncated File Read", "ignore:Corrupt"
)
def test_images_that_break_decoders_are_bad_data_by_name(what: str, tmp_path: Path) -> None:
    path = tmp_path / "photos" / "cat" / "evil.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(HOSTILE[what])
    (path.parent / "good.png").write_bytes(some("PNG"))
    with pytest.raises(DataError, match=r"evil\.png"):
        decode_image(path, 8)
    with pytest.raises(DataError, match=r"evil\.png"):
        write_pack(tmp_path / "photos", tmp_path / "pack", 8)
    path.unlink()  # "repair or remove it and call again"
    assert len(open_pack(write_pack(tmp_path / "photos", tmp_path / "pack", 8))) == 1


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
@pytest.mark.filterwarnings("ignore")
def test_random_damage_to_images_is_an_image_or_bad_data(kind: str) -> None:
    whole, rng = some(kind), np.random.default_rng(1)
    for _ in range(150):
        content = bytearray(whole)
        for place in rng.integers(0, len(whole), 4):
            content[int(place)] = int(rng.integers(256))
        try:
            assert decode_image(bytes(content), 8).shape == (8, 8, 3)
        except DataError as error:
            assert "cannot decode image" in str(error) or "range is not known" in str(error)


def member(shape: tuple[int, ...], descr: str = "|u1") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        member((10**6, 1000, 1000, 3)),
        member((2**40, 2**22, 4, 3)),
        member((-5, 8, 8, 3)),
        member((3, 8, 8, 3), "|O") + b"cos\nsystem\n(S'true'\ntR.",
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        b"",
    ],
    ids=["12 TB", "overflow", "negative", "a pickle", "nested header", "empty"],
)
def test_an_npz_that_promises_more_than_memory_is_bad_data(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "huge.npz"
    labels = io.BytesIO()
    np.save(labels, np.zeros(3, np.int64))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("images.npy", content)
        file.writestr("labels.npy", labels.getvalue())
    with pytest.raises(DataError, match=r"huge\.npz"):
        load(path, "all")


def test_a_zip_bomb_is_not_unpacked_for_its_shape(tmp_path: Path) -> None:
    """Zeros of 64 MB in 64 kB, behind a header of twelve images: only those are looked at, or it is refused."""
    path = tmp_path / "bomb.npz"
    labels = io.BytesIO()
    np.save(labels, np.zeros(12, np.int64))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("images.npy", member((12, 8, 8, 3)) + bytes(64 << 20))
        file.writestr("labels.npy", labels.getvalue())
    assert path.stat().st_size < 1 << 18
    try:
        assert load(path, "all").images.shape == (12, 8, 8, 3)
    except DataError as error:
        assert "bomb.npz" in str(error)
