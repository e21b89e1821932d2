"""Weights files: what fits is loaded, what does not is named, nothing is executed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import torch
from torch import nn

from roarfast.train import build_model, load_weights


def model(classes: int = 3, widths: tuple[int, ...] = (4, 4)) -> Any:
    return build_model("convnet", classes, seed=0, widths=widths)


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "_orig_mod.module."])
@pytest.mark.parametrize("entry", [None, "model", "state_dict"])
def test_wrappers_are_taken_off(tmp_path: Path, prefix: str, entry: str | None) -> None:
    wanted = {name: torch.randn_like(v) if v.is_floating_point() else v for name, v in model().state_dict().items()}
    state = {prefix + name: value for name, value in wanted.items()}
    torch.save(state if entry is None else {entry: state, "epoch": 3}, tmp_path / "w.pt")
    net = model()
    assert load_weights(net, tmp_path / "w.pt") == []
    assert all(torch.equal(value, wanted[name]) for name, value in net.state_dict().items())


class Planted:
    def __reduce__(self) -> Any:
        return os.mkdir, ("planted",)


def write_bad(path: Path, kind: str) -> None:
    if kind == "malicious":
        torch.save({"w": Planted()}, path)
    elif kind == "plain pickle":
        path.write_bytes(pickle.dumps(Planted()))
    elif kind == "whole model":
        torch.save(nn.Linear(2, 2), path)
    elif kind == "truncated":
        torch.save(model().state_dict(), path)
        path.write_bytes(path.read_bytes()[:-200])
    elif kind == "text":
        path.write_text("these are not weights\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "list":
        torch.save([torch.zeros(2)], path)
    elif kind == "other architecture":
        torch.save(model(widths=(4, 8, 8)).state_dict(), path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("malicious", "holds more than tensors .* save the weights with"),
        ("plain pickle", "holds more than tensors|no file that torch.save wrote"),
        ("whole model", "holds more than tensors"),
        ("truncated", "damaged"),
        ("text", "damaged|no file that torch.save wrote"),
        ("empty", "damaged"),
        ("list", "must hold a state dict, names with tensors, got list"),
        ("other architecture", "does not fit this model: missing or of another shape"),
    ],
)
def test_bad_files_are_named_in_one_line_and_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bad(tmp_path / "w.pt", kind)
    with pytest.raises(ValueError, match=message) as error:
        load_weights(model(), tmp_path / "w.pt")
    assert str(tmp_path / "w.pt") in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "planted").exists()


def test_a_classifier_of_other_classes_is_reported(tmp_path: Path) -> None:
    torch.save(model(7).state_dict(), tmp_path / "w.pt")
    assert load_weights(model(3), tmp_path / "w.pt") == ["fc.weight", "fc.bias"]
