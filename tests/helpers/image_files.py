"""Small image files in the layouts of known data sets. Skips where Pillow is missing."""

from __future__ import annotations

import pytest

Image = pytest.importorskip("PIL.Image")


def write_image(path, size=(12, 10), colour=(10, 20, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def make_cub(root):
    """Three photos of two classes in the official layout."""
    folder = root / "CUB_200_2011"
    rows = [(1, "001.A/a.png", 1, 1), (2, "002.B/b.png", 2, 0), (3, "001.A/c.png", 1, 0)]
    for i, name, _, _ in rows:
        write_image(folder / "images" / name, (40, 20), (i, i, i))
    (folder / "images.txt").write_text("".join(f"{i} {name}\n" for i, name, _, _ in rows))
    (folder / "image_class_labels.txt").write_text("".join(f"{i} {label}\n" for i, _, label, _ in rows))
    (folder / "train_test_split.txt").write_text("".join(f"{i} {train}\n" for i, _, _, train in rows))
    (folder / "bounding_boxes.txt").write_text("".join(f"{i} 12.0 2.0 10.0 8.0\n" for i, *_ in rows))
    (folder / "classes.txt").write_text("1 001.A\n2 002.B\n")
    return folder
