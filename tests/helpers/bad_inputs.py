"""Inputs that a user gets wrong, as arguments of the command line: each makes its files in a folder of its own."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Make = Callable[[Path], list[str]]

CODE = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes, outputs=None, kind=None):
        super().__init__()
        self.layer, self.kind = nn.Linear(192, outputs or num_classes), kind
    def forward(self, x):
        y = self.layer(x.flatten(1))
        return {"dict": {"logits": y}, "tuple": (y, y), "sum": y.sum(), None: y}[self.kind]

def make(num_classes): return Net(num_classes)
def with_head(num_classes):
    net = nn.Sequential()
    net.add_module("flat", nn.Flatten())
    net.add_module("head", nn.Linear(192, num_classes))
    return net
def narrow(num_classes): return Net(num_classes, 1)
def answers_dict(num_classes): return Net(num_classes, kind="dict")
def answers_tuple(num_classes): return Net(num_classes, kind="tuple")
def answers_number(num_classes): return Net(num_classes, kind="sum")
def takes_nothing(): return Net(3)
def divides(num_classes): return 1 / 0
def forgets(num_classes): pass
number = 3
def numpy_maps(model, x, target): return x.numpy()
def small_maps(model, x, target): return x.mean(1)[:1]
def nan_maps(model, x, target): return x.mean(1) * float("nan")
def two_arguments(model, x): return x.mean(1)
def raises_in_maps(model, x, target): raise RuntimeError("no such layer: conv9")
def halves(maps): return maps[:, ::2]
def integers(maps): return maps.astype(int)
def raises(maps): raise KeyError("kernel")
def fit(model, batches, seed): return None
def fit_of_one(model): return model.state_dict()
def by_split(split): return [("image", 0)]
def normalised(split): return [(torch.full((3, 8, 8), -2.0), 0)] * 4
def words(split): return [(torch.zeros(3, 8, 8), "cat")] * 4
"""


def images(n: int, seed: int = 0, shape: tuple[int, ...] = (8, 8, 3)) -> Any:
    """Random uint8 images."""
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def npz(folder: Path, name: str = "set.npz", **changes: Any) -> str:
    """A good `.npz` of 30 images in 3 classes, 20 of them for training; changes replace arrays, None leaves one out."""
    arrays: dict[str, Any] = {"images": images(30), "labels": np.arange(30) % 3, "is_train": np.arange(30) < 20}
    arrays = {key: value for key, value in (arrays | changes).items() if value is not None}
    np.savez(folder / name, **arrays)
    return name


def config(folder: Path, data: str = "", *, model: str = "", train: str = "", grid: str = "", more: str = "") -> str:
    """The path of a config over these images, with lines of their own in its sections."""
    if not data:
        data = f'path = "{npz(folder)}"'
    model = model or "options = { widths = [4, 4] }"
    grid = grid or 'protocols = ["road"]\nestimators = ["rand"]\ndrops = [0.3]'
    name = "" if data.startswith("name") else 'name = "mine"\n'
    text = f"name = 'bad'\n{more}\n[data]\n{name}{data}\n[model]\n{model}\n[train]\nepochs = 1\nbatch_size = 10\n{train}\n[[grid]]\n{grid}\n[run]\nexamples = 0\ndevice = 'cpu'\nworkers = 1\n"
    (folder / "study.toml").write_text(text)
    return str(folder / "study.toml")


def run(folder: Path, data: str = "", **parts: str) -> list[str]:
    """The command that runs such a config."""
    return ["run", config(folder, data, **parts), "--out", str(folder / "out"), "--no-report"]


def grid(estimators: str = '["rand"]', rest: str = "drops = [0.3]", protocols: str = '["road"]') -> str:
    """A `[[grid]]` block."""
    return f"protocols = {protocols}\nestimators = {estimators}\n{rest}"


def code(folder: Path, text: str = CODE) -> Path:
    """The user's module `own_code`, beside the config."""
    (folder / "own_code.py").write_text(text)
    return folder


def own_model(folder: Path, name: str) -> list[str]:
    return run(code(folder), model=f'name = "own_code:{name}"')


def own_estimator(folder: Path, name: str) -> list[str]:
    return run(code(folder), grid=grid(f'["own_code:{name}"]'))


def own_postprocess(folder: Path, name: str) -> list[str]:
    return run(code(folder), grid=grid('["grad"]', f'drops = [0.3]\npostprocess = ["own_code:{name}"]'))


def maps(folder: Path, **arrays: Any) -> list[str]:
    np.savez(folder / "maps.npz", **arrays)
    return run(folder, grid=grid('["maps:maps.npz"]'))


def photos(folder: Path, files: dict[str, Any]) -> str:
    """Image files, given as arrays or bytes; a data section."""
    from PIL import Image

    (folder / "photos").mkdir()
    for name, content in files.items():
        path = folder / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            Image.fromarray(content).save(path)
    return 'path = "photos"'


def good_photos(**changes: Any) -> dict[str, Any]:
    """Two classes in two splits; changes by `train__cat__0`."""
    files = {f"{s}/{c}/{i}.png": images(1, i)[0] for s in ("train", "test") for c in ("cat", "dog") for i in range(4)}
    for name, content in changes.items():
        files[name.replace("__", "/") + ".png"] = content
    return files


def weights(folder: Path, content: Any, net: str = "make", name: str = "w.pt") -> list[str]:
    """A study from a weights file: bytes, or something for torch.save."""
    import torch

    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        torch.save(content, folder / name)
    return run(code(folder), model=f'name = "own_code:{net}"\nweights = "{name}"')


class Malicious:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def saved(content: Any) -> bytes:
    """What torch.save writes."""
    import torch

    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def finished(folder: Path) -> Path:
    """A run folder with results."""
    from roarfast.study import Study

    assert Study.from_toml(config(folder), folder / "out").run(workers=1).failed == []
    return folder / "out"


def spoiled(folder: Path) -> Path:
    """A run folder whose store has other bytes in its middle."""
    path = finished(folder) / "results.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(content)
    return path.parent


def bomb(folder: Path) -> str:
    """An `.npz` that is no array inside."""
    with zipfile.ZipFile(folder / "odd.npz", "w") as file:
        file.writestr("images.npy", b"not an array")
        file.writestr("labels.npy", b"neither")
    return 'path = "odd.npz"'


def score(folder: Path, arrays: dict[str, Any] | None = None, **options: str) -> list[str]:
    """`roarfast score` of maps, with some options replaced."""
    import torch

    np.savez(folder / "m.npz", **({"mine": np.zeros((10, 8, 8))} if arrays is None else arrays))
    torch.save({"layer.weight": torch.zeros(3, 192), "layer.bias": torch.zeros(3)}, code(folder) / "w.pt")
    usual = {"model": "own_code:make", "weights": "w.pt", "data": npz(folder), "maps": "m.npz", "metrics": "deletion"}
    return ["score", *(text for key, value in (usual | options).items() for text in (f"--{key}", value))]
