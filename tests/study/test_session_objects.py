"""`Study(config, estimators=[…])`: objects of Python are what their names in a TOML file would be, or are kept and hashed."""

from __future__ import annotations

import copy
import functools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pydantic")
pytest.importorskip("torch")

import torch

from roarfast import _objects
from roarfast.data import Dataset, load
from roarfast.explain import Estimator, External, from_captum
from roarfast.study import Study
from roarfast.study.errors import StudyError
from roarfast.study.fingerprint import NoFingerprint, fingerprint

MODULE = """\
import torch
from roarfast.data import load

def bright(model, x, target, factor=1.0):
    return factor * x.mean(1)

def rounded(maps):
    return maps.round(1)

def images(split):
    return load("shapes", split, n=40)

def make(num_classes):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, num_classes))
"""
CONFIG: dict[str, Any] = {
    "name": "objects",
    "data": {"name": "shapes", "train_size": 40, "test_size": 40},
    "model": {"options": {"widths": [4, 4]}},
    "train": {"epochs": 1, "batch_size": 20},
    "grid": [{"protocols": ["road"], "estimators": ["rand"], "drops": [0.3]}],
    "run": {"examples": 0, "device": "cpu"},
}


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import importlib

    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(_objects, "_kept", {})
    (tmp_path / "session_code.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "session_code", raising=False)
    importlib.invalidate_caches()
    return importlib.import_module("session_code")


def config(**changes: Any) -> dict[str, Any]:
    made = copy.deepcopy(CONFIG)
    grid = {key: changes.pop(key) for key in ("estimators", "postprocess", "protocols") if key in changes}
    made["grid"][0] |= grid
    return made | changes


def keys(study: Study) -> list[str]:
    return list(study.setup(device="cpu", workers=1).cells)


def accuracies(study: Study, **options: Any) -> dict[tuple[str, str, str], Any]:
    assert study.run(**options).failed == []
    return {(r.estimator, r.postprocess, r.order): r.accuracy for r in study.results}


def test_what_can_be_imported_has_the_keys_of_toml(module: Any, tmp_path: Path) -> None:
    captum = pytest.importorskip("captum.attr")
    table = [{"name": "strong", "object": "session_code:bright", "options": {"factor": 2.0}}]
    named = config(
        estimators=["rand", "session_code:bright", "captum.attr:Saliency", "strong"],
        postprocess=["plain", "session_code:rounded"],
    )
    toml = Study(named | {"estimators": table}, tmp_path / "toml")
    strong = {"name": "strong", "object": module.bright, "options": {"factor": 2.0}}
    python = Study(
        config(),
        tmp_path / "python",
        estimators=[module.bright, captum.Saliency, strong],
        postprocessings=[module.rounded],
    )
    assert keys(python) == keys(toml)
    inside = config(estimators=["rand", module.bright, captum.Saliency, strong], postprocess=["plain", module.rounded])
    assert keys(Study(inside, tmp_path / "inside")) == keys(toml)
    assert accuracies(python, workers=2) == accuracies(toml, workers=1), "and worker processes find them"


def test_the_same_for_data_and_model(module: Any, tmp_path: Path) -> None:
    plain = config(data={"name": "session_code:images"}, model={"name": "session_code:make"})
    objects = config(data={}, model={})
    assert keys(Study(objects, tmp_path, data=module.images, model=module.make)) == keys(Study(plain, tmp_path))


def test_partial_and_external_objects(module: Any, tmp_path: Path) -> None:
    partial = Study(config(), tmp_path, estimators=[functools.partial(module.bright, factor=3.0)])
    (entry,) = partial.config.estimators
    assert (entry.name, entry.object, entry.options) == ("bright", "session_code:bright", {"factor": 3.0})
    external = Study(config(), tmp_path, estimators=[External("mine", module.bright)])
    assert [(e.name, e.object) for e in external.config.estimators] == [("mine", "session_code:bright")]


def test_records_are_kept_and_hashed(module: Any, tmp_path: Path) -> None:
    def study(factor: float) -> Study:
        record = Estimator("mine", of_pass=lambda x, gradients, options: factor * gradients.have("input"))
        return Study(config(), tmp_path, estimators=[record, "sg(mine)"])

    first, again, other = (study(factor).config for factor in (2.0, 2.0, 3.0))
    assert first == again != other and first.grid[0].estimators == ["rand", "mine", "sg(mine)"]
    assert first.own_estimators()["mine"].of_pass is not None


def test_names_in_the_grid_are_only_defined_and_others_join_it(module: Any, tmp_path: Path) -> None:
    named = config(estimators=["rand", "mine^2"], postprocess=["max(3)|soft"])
    study = Study(
        named,
        tmp_path,
        estimators=[External("mine", module.bright), "grad"],
        postprocessings=[{"name": "soft", "object": module.rounded}],
    )
    assert study.config.grid[0].estimators == ["rand", "mine^2", "grad"]
    assert study.config.grid[0].postprocess == ["max(3)|soft"]


def test_lambdas_are_kept_hashed_and_resumed(module: Any, tmp_path: Path) -> None:
    def study(factor: float, **more: Any) -> Study:
        mine = {"name": "mine", "object": lambda model, x, target: factor * x.mean(1)} | more
        return Study(config(), tmp_path / "run", estimators=[mine])

    found = accuracies(study(1.0))
    assert all(found["mine", "plain", order] is not None for order in ("morf", "lerf"))
    again = study(1.0).run()
    assert again.done == 0 and again.skipped == 5, "a new function of the same source and values"
    assert keys(study(2.0)) != keys(study(1.0)), "what it closes over counts"
    assert keys(study(2.0, version=1)) == keys(study(1.0, version=1)) != keys(study(1.0, version=2))
    with pytest.raises(StudyError, match=r"belongs to another study(.|\n)*mine"):
        study(2.0).run()
    with pytest.raises(StudyError, match=r"workers = 2, but mine cannot be imported by other processes"):
        study(1.0).run(workers=2)
    _objects._kept.clear()
    with pytest.raises(StudyError, match="'mine' is an object of the Python session that began this study"):
        Study(load_stored(tmp_path / "run"), tmp_path / "run")


def load_stored(folder: Path) -> dict[str, Any]:
    from roarfast.study import load as load_results

    return dict(load_results(folder).meta["config"])


class Pairs(torch.utils.data.Dataset[Any]):
    """A data set of torch that only this test has."""

    def __init__(self, split: str) -> None:
        self.data = load("shapes", split, n=40)
        self.classes = list(self.data.class_names)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        return torch.from_numpy(self.data.images[i]).permute(2, 0, 1), int(self.data.labels[i])


@pytest.mark.parametrize("workers", [1, 2])
def test_data_sets_as_objects_are_the_same_images_in_every_process(module: Any, tmp_path: Path, workers: int) -> None:
    ours = Study(config(), tmp_path / "ours")
    given = Study(config(data={"name": "mine"}), tmp_path / "given", data=(Pairs("train"), Pairs("test")))
    assert given.setup(device="cpu").identity.data == ours.setup(device="cpu").identity.data
    assert accuracies(given, workers=workers) == accuracies(ours, workers=1)
    assert {r.dataset for r in given.results} == {"mine"} and not list((tmp_path / "given").rglob("*shared*/*.npz"))
    _objects._kept.clear()
    from roarfast.study.images import load_data

    load_data.cache_clear()
    with pytest.raises(StudyError, match="the images of this study were given in Python"):
        Study(load_stored(tmp_path / "given"), tmp_path / "given").run()


def test_few_of_given_images(module: Any, tmp_path: Path) -> None:
    whole = tuple(load("shapes", split, n=40) for split in ("train", "test"))
    study = Study(config(data={"name": "mine", "train_size": 20, "test_size": 10}), tmp_path, data=whole)
    assert study.setup(device="cpu").identity.data["images"] == [20, 10]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ({"estimators": [lambda model, x, target: x.mean(1)]}, r"has no name: give \{'name': 'mine', 'object': …\}"),
        ({"estimators": [3]}, "estimators: 3 is no function, class or name"),
        ({"estimators": "grad"}, "estimators must be a list, got 'grad'"),
        ({"estimators": [{"name": "a"}]}, "has no 'object'"),
        (
            {"estimators": [{"name": "a", "object": print, "opitons": {}}]},
            "there is no key 'opitons'; known are name, object",
        ),
        (
            {"estimators": [External("a", lambda m, x, t: open_file)]},
            r"cannot be hashed: it holds a _io\.TextIOWrapper.*'version': 1",
        ),
        ({"data": 3}, r"data must be \(train, test\), or a class or function that makes them, got int"),
        ({"data": ([], [])}, r"has no items"),
        ({"estimators": ["nonsense"]}, "there is no estimator 'nonsense'"),
    ],
)
def test_what_cannot_be_is_said(module: Any, tmp_path: Path, objects: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError if "data" in objects and objects["data"] != 3 else StudyError, match=message):
        Study(config(), tmp_path, **objects)


open_file = sys.__stdout__


def test_images_in_python_and_a_path_contradict(module: Any, tmp_path: Path) -> None:
    whole = tuple(load("shapes", split, n=40) for split in ("train", "test"))
    with pytest.raises(StudyError, match="images given in Python are taken as they are: no path"):
        Study(config(data={"name": "mine", "path": "x"}), tmp_path, data=whole)
    other = Dataset(np.zeros((4, 8, 8, 3), np.uint8), np.arange(4), ("a", "b", "c", "d"))
    with pytest.raises(StudyError, match="they must have one size"):
        Study(config(data={}), tmp_path, data=(whole[0], other)).setup(device="cpu")


def test_captum_objects_of_one_model_are_refused_with_the_way_out(module: Any, tmp_path: Path) -> None:
    captum = pytest.importorskip("captum.attr")
    net = torch.nn.Linear(2, 2)
    with pytest.raises(StudyError, match=r"was made for one model.*give the class, as in \{'object': Saliency"):
        Study(config(), tmp_path, estimators=[captum.Saliency(net)])
    with pytest.raises(StudyError, match="made for another model"):
        entry = {"name": "mine", "object": from_captum(captum.Saliency(net)).function, "version": 1}
        Study(config(), tmp_path, estimators=[entry]).setup(device="cpu")


def helper(x: float) -> float:
    return x + LIMIT


LIMIT = 1.0


def test_fingerprints_follow_helpers_constants_and_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    def uses(x: float) -> float:
        return helper(x)

    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, x: float) -> float:
            return self.by * x

    before = fingerprint(uses)
    assert fingerprint(uses) == before
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 2.0)
    assert fingerprint(uses) != before, "a constant two functions away"
    assert fingerprint(Scaled(1.0)) == fingerprint(Scaled(1.0)) != fingerprint(Scaled(2.0))
    assert fingerprint(Scaled(1.0).__call__) != fingerprint(Scaled(2.0).__call__)
    assert fingerprint(np.arange(3)) != fingerprint(np.arange(3.0)) != fingerprint(torch.arange(3.0))
    nets = [torch.nn.Linear(2, 2) for _ in range(2)]
    assert fingerprint(nets[0]) == fingerprint(nets[0]) != fingerprint(nets[1])
    assert fingerprint({"a": {1, 2}}) == fingerprint({"a": {2, 1}})
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # a session, not `python -m pytest`
    code: dict[str, Any] = {"__name__": "__main__"}
    exec("def nowhere(): pass", code)
    with pytest.raises(NoFingerprint, match="the source of nowhere cannot be found"):
        fingerprint(code["nowhere"])


def test_a_script_can_be_run_again(tmp_path: Path) -> None:
    """Functions of `__main__`: the second run finds everything done, a changed one is noticed."""
    import subprocess

    text = f"""\
from roarfast.study import Study
FACTOR = 1.0
def mine(model, x, target):
    return FACTOR * x.mean(1)
if __name__ == "__main__":
    outcome = Study({CONFIG!r}, "run", estimators=[mine]).run()
    print(outcome.done, outcome.skipped, outcome.failed)
"""
    script = tmp_path / "script.py"

    def run(text: str) -> Any:
        script.write_text(text)
        return subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)

    first, second, changed = run(text), run(text + "# a comment\n"), run(text.replace("FACTOR = 1.0", "FACTOR = 3.0"))
    assert first.stdout.split()[1:] == ["0", "[]"], first.stderr
    assert second.stdout.split()[0] == "0", second.stderr
    assert changed.returncode == 1 and "belongs to another study" in changed.stderr
