"""Packs: same pixels as decoding directly; atomic, resumable, and every damage is noticed."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from helpers.image_files import make_cub, write_image

from roarfast.data import DataError, load, open_pack, write_pack
from roarfast.data import pack as pack_module
from roarfast.data.decode import decode_image

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    root = tmp_path / "photos"
    for split, count in (("train", 5), ("test", 2)):
        for label in ("cat", "dog"):
            for i in range(count):
                path = root / split / label / f"{i}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(rng.integers(0, 256, (20 + i, 30, 3), dtype=np.uint8)).save(path)
    return root


def test_pack_equals_the_folder(folder, tmp_path):
    seen = []
    target = write_pack(folder, tmp_path / "p", 16, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (14, 14)
    assert not (tmp_path / "p.partial").exists()
    for split in ("train", "test", "all"):
        packed, direct = load(target, split), load(folder, split, size=16)
        assert isinstance(packed.images, np.memmap) and not packed.images.flags.writeable
        order = np.argsort(direct.labels, kind="stable") if split != "all" else None
        if order is not None:
            np.testing.assert_array_equal(packed.images, direct.images[order])
            np.testing.assert_allclose(packed.mean, direct.mean, rtol=1e-12)
            np.testing.assert_allclose(packed.std, direct.std, rtol=1e-12)
        assert packed.class_names == direct.class_names
        assert len(packed) == len(direct)
    assert len(open_pack(target, verify=True)) == 14


def test_pack_of_cub(tmp_path):
    make_cub(tmp_path)
    target = write_pack(tmp_path / "CUB_200_2011", tmp_path / "p", 8)
    assert load(target, "train").labels.tolist() == [0]
    assert load(target, "test").labels.tolist() == [1, 0]
    assert load(target, "test").images[0, 0, 0].tolist() == [2, 2, 2]


def test_interrupted_packing_continues(folder, tmp_path, monkeypatch):
    calls = []

    def fail_late(source, size):
        if len(calls) == 9:
            raise KeyboardInterrupt
        calls.append(source)
        return decode_image(source, size)

    monkeypatch.setattr(pack_module, "decode_image", fail_late)
    with pytest.raises(KeyboardInterrupt):
        write_pack(folder, tmp_path / "p", 16, workers=1)
    assert not (tmp_path / "p").exists()
    with pytest.raises(FileNotFoundError, match="not finished: pack again to continue"):
        open_pack(tmp_path / "p.partial")
    done = int(np.load(tmp_path / "p.partial" / "done.npy").sum())
    assert 0 < done <= 9

    again = []
    monkeypatch.setattr(
        pack_module, "decode_image", lambda source, size: again.append(source) or decode_image(source, size)
    )
    resumed = write_pack(folder, tmp_path / "p", 16)
    assert len(again) == 14 - done
    monkeypatch.undo()
    fresh = write_pack(folder, tmp_path / "q", 16)
    for name in ("images.npy", "labels.npy", "checksums.npy", "pack.json"):
        assert (resumed / name).read_bytes() == (fresh / name).read_bytes()


def test_changed_source_starts_over(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(pack_module, "decode_image", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_pack(folder, tmp_path / "p", 16)
    monkeypatch.undo()
    write_image(folder / "train" / "cat" / "new.png", (40, 40))
    assert len(load(write_pack(folder, tmp_path / "p", 16), "all")) == 15


def test_a_file_that_cannot_be_decoded_is_named(folder, tmp_path):
    bad = folder / "train" / "dog" / "3.jpg"
    content = bad.read_bytes()
    bad.write_bytes(content[:200])
    with pytest.raises(DataError, match=r"cannot decode image .*3\.jpg"):
        write_pack(folder, tmp_path / "p", 16)
    assert not (tmp_path / "p").exists()
    bad.write_bytes(content)
    assert len(load(write_pack(folder, tmp_path / "p", 16), "all")) == 14


def test_existing_targets_are_safe(folder, tmp_path):
    target = write_pack(folder, tmp_path / "p", 16)
    with pytest.raises(FileExistsError, match="exists already"):
        write_pack(folder, target, 8)
    assert load(write_pack(folder, target, 8, overwrite=True)).image_shape == (8, 8, 3)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("…")
    with pytest.raises(FileExistsError, match="is not a pack"):
        write_pack(folder, tmp_path / "precious", 8, overwrite=True)
    with pytest.raises(FileNotFoundError, match="no image folder"):
        write_pack(tmp_path / "nothing", tmp_path / "q", 8)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images found"):
        write_pack(tmp_path / "empty", tmp_path / "q", 8)


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) - 100])


def flip_last_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def edit_manifest(path):
    manifest = json.loads(path.read_text())
    manifest["class_names"].append("unicorn")
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("images.npy", truncate, "images.npy is missing or truncated"),
        ("images.npy", lambda p: p.unlink(), "images.npy is missing or truncated"),
        ("labels.npy", flip_last_byte, "labels.npy does not match its checksum"),
        ("checksums.npy", lambda p: p.unlink(), "checksums.npy"),
        ("pack.json", edit_manifest, "pack.json does not match its checksum"),
        ("pack.json", truncate, "pack.json is not readable"),
    ],
)
def test_damage_is_noticed_when_opening(folder, tmp_path, name, damage, message):
    target = write_pack(folder, tmp_path / "p", 16)
    damage(target / name)
    with pytest.raises(DataError, match=message):
        load(target, "train")


def test_wrong_pixels_are_noticed_when_read(folder, tmp_path):
    torch = pytest.importorskip("torch")
    from roarfast.data import DeviceDataset

    target = write_pack(folder, tmp_path / "p", 16)
    flip_last_byte(target / "images.npy")  # the last image of the last split
    data = load(target, "test")
    message = "image 3 of split test does not match its checksum"
    with pytest.raises(DataError, match="does not match its checksum"):
        open_pack(target, verify=True)
    with pytest.raises(DataError, match=message):
        DeviceDataset(data)
    streamed = DeviceDataset(data, budget=0)
    assert [tuple(x.shape) for x, _ in streamed.batches([np.arange(3)])] == [(3, 3, 16, 16)]
    with pytest.raises(DataError, match=message):
        list(streamed.batches([np.arange(2), np.array([3])]))
    assert isinstance(streamed.labels, torch.Tensor)


def test_unknown_split_and_version(folder, tmp_path):
    target = write_pack(folder, tmp_path / "p", 16)
    with pytest.raises(DataError, match=r"no split 'val'; it has train, test"):
        load(target, "val")
    manifest = json.loads((target / "pack.json").read_text())
    manifest["version"] = 99
    manifest["manifest_sha256"] = pack_module._manifest_hash(manifest)
    (target / "pack.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="version 99"):
        load(target, "train")
    shutil.rmtree(target)


def test_command_line(folder, tmp_path):
    typer_testing = pytest.importorskip("typer.testing")
    from roarfast.data.cli import app

    runner = typer_testing.CliRunner()
    done = runner.invoke(app, ["pack", str(folder), str(tmp_path / "p"), "--size", "12"])
    assert done.exit_code == 0, done.output
    assert "14 images of 12x12, 2 classes" in done.output
    assert runner.invoke(app, ["verify", str(tmp_path / "p")]).exit_code == 0
    flip_last_byte(tmp_path / "p" / "images.npy")
    assert runner.invoke(app, ["verify", str(tmp_path / "p")]).exit_code == 1
    assert runner.invoke(app, ["pack", str(folder), str(tmp_path / "p")]).exit_code == 1
    shown = runner.invoke(app, ["show", str(folder), "--split", "test"])
    assert shown.exit_code == 1 and "another size" in shown.output
    assert "10 classes" in runner.invoke(app, ["show", "digits"]).output
