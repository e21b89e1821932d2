"""torchvision imports in a fresh interpreter whether or not its compiled library loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_import_models_and_transforms():
    code = """
from roarfast._torchvision import import_torchvision
a, b = import_torchvision(), import_torchvision()
assert a is b
model = import_torchvision("models").resnet18(num_classes=7)
import torchvision.transforms.v2
print(model.fc.out_features)
"""
    assert run(code) == "7"
