"""The sparse linear model and its manipulation."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from roarfast.metrics import sparse_linear
from roarfast.metrics.localisation import pointing_game


@pytest.fixture(scope="module")
def digits():
    pytest.importorskip("sklearn")
    from roarfast.data import load

    data = load("digits", "train")
    return data.images[..., 0], data.labels


def test_fista_reaches_the_optimum(digits):
    """The subgradient conditions: |gradient| <= penalty where a weight is 0, = -sign * penalty elsewhere, 0 for the bias."""
    images, labels = digits[0][:300], digits[1][:300]
    model = sparse_linear.fit(images, labels, 10, penalty=0.02, steps=4000)
    logits = model.logits(images)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    residual = p - np.eye(10)[labels]
    gradient = (residual.T @ model.inputs(images).reshape(300, -1)).reshape(model.weights.shape) / 300
    zero = model.weights == 0
    assert 0.5 < zero.mean() < 0.99
    assert np.abs(gradient[zero]).max() <= 0.02 + 1e-6
    np.testing.assert_allclose(gradient[~zero], -0.02 * np.sign(model.weights[~zero]), atol=1e-5)
    np.testing.assert_allclose(residual.mean(0), 0, atol=1e-4)


def test_the_explanation_points_anywhere_and_no_answer_changes(digits):
    images, labels = digits
    model = sparse_linear.fit(images, labels, 10)
    moved = sparse_linear.point_at(model, images)
    np.testing.assert_array_equal(model.logits(images).argmax(1), moved.logits(images).argmax(1))
    assert (model.logits(images).argmax(1) == labels).mean() > 0.75
    box = np.zeros(images.shape, bool)
    box[:, 1:] = True  # everything but the row of the corner
    assert pointing_game(moved.maps(images, labels), box).ratio == 0
    assert pointing_game(model.maps(images, labels), box).ratio > 0.5
    corner = moved.maps(images, labels)
    assert (corner.reshape(len(images), -1).argmax(1) == 0).all()


def test_impossible_on_raw_pixels(digits):
    images, labels = digits
    raw = sparse_linear.fit(images, labels, 10, mean=0.0, std=1.0, steps=50)
    with pytest.raises(ValueError, match=r"sees pixel \(0, 0\) as 0, so its attribution is 0 for any weight"):
        sparse_linear.point_at(raw, images)
    with pytest.raises(ValueError, match=r"pixel \(3, 3\) must be the same in all images"):
        sparse_linear.point_at(raw, images, 3, 3)
    # By construction: nothing outside the ink has attribution, so the standard model always points inside its box.
    outside = images == 0
    assert not raw.maps(images, labels)[outside].any()


def test_table_3_of_004_by_one_command(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    images = np.zeros((60, 12, 12, 1), np.uint8)
    for image, label in zip(images, labels):  # ink in one of three places
        image[2 + 3 * label : 4 + 3 * label, 3:9] = rng.integers(100, 256, (2, 6, 1))
    np.savez(tmp_path / "digits.npz", images=images, labels=labels)
    tool, data = Path(__file__).resolve().parents[2] / "tools" / "mnist_linear.py", str(tmp_path / "digits.npz")
    command = [sys.executable, str(tool), "--train", data, "--test", data, "--steps", "20", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    with (tmp_path / "table.csv").open(newline="") as file:
        found = {(row["input"], row["map"]): row for row in csv.DictReader(file)}
    standard, manipulated = found["shifted", "standard"], found["shifted", "manipulated"]
    assert standard["accuracy"] == manipulated["accuracy"] and manipulated["changed"] == "0"
    assert float(standard["pointing"]) == 100 and float(manipulated["pointing"]) == 0
    assert float(manipulated["pointing_high"]) > 0  # 60 images do not prove that it never happens
    assert "| shifted | manipulated |" in (tmp_path / "README.md").read_text()
