"""Oracle masks: disks, and patches that give the label away."""

import numpy as np
import pytest

import roarfast as rf
from roarfast.explain.oracles import center_map, edge_places, oracle_maps


def test_center_is_a_disk_for_every_rate():
    a = center_map((32, 32))
    assert len(np.unique(a)) == 1024
    y, x = np.mgrid[:32, :32] - 15.5
    distance = np.hypot(y, x)
    for drop in (0.1, 0.37, 0.7):
        mask = rf.removal_mask(a, drop)
        assert distance[mask].max() <= distance[~mask].min()
    assert distance[rf.removal_mask(a, 0.7)].max() == pytest.approx(np.sqrt(0.7 * 1024 / np.pi), abs=0.15)


def test_one_mask_for_all_images():
    masks = rf.removal_mask(oracle_maps("center", np.arange(10), (32, 32), 10), 0.7)
    assert (masks == masks[0]).all()


@pytest.mark.parametrize("name", ["edge", "center+edge"])
def test_the_label_can_be_read_from_the_mask(name):
    labels = np.arange(40) % 10
    masks = rf.removal_mask(oracle_maps(name, labels, (32, 32), 10), 0.7 if "center" in name else 0.05)
    assert (masks.sum((1, 2)) == int((0.7 if "center" in name else 0.05) * 1024)).all()
    places, side = edge_places((32, 32), 10)
    assert side == 7 and len(set(places)) == 10
    for mask, label in zip(masks, labels):
        row, column = places[label]
        assert mask[row : row + side, column : column + side].all()
        assert row in (0, 32 - side) or column in (0, 32 - side)


def test_patches_are_spread():
    places, _ = edge_places((32, 32), 10)
    apart = [np.abs(np.subtract(p, q)).max() for i, p in enumerate(places) for q in places[:i]]
    assert min(apart) >= 5  # near corners of the image patches may overlap a little, never coincide


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: oracle_maps("centre", [0], (8, 8), 2), ValueError, "name must be one of center, edge, center"),
        (lambda: oracle_maps("edge", [2], (8, 8), 2), ValueError, r"labels must be in \[0, 2\), got 2 to 2"),
        (lambda: oracle_maps("edge", [0.5], (8, 8), 2), TypeError, "labels must be integers"),
        (lambda: edge_places((8, 8), 100), ValueError, "100 classes need as many places"),
        (lambda: edge_places((8, 8), 2, 5), ValueError, r"patch must be in \(0, 1\)"),
    ],
)
def test_bad_inputs(call, error, message):
    with pytest.raises(error, match=message):
        call()
