"""Config files: what is accepted, and that every mistake is named, at once, with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.study_helpers import TINY

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.study.config import load_config, parse_config
from roarfast.study.errors import ConfigError
from roarfast.study.grid import grid_cells
from roarfast.study.presets import PRESETS
from roarfast.train.recipe import get_recipe


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name: str) -> None:
    config = parse_config(PRESETS[name])
    assert config.name == name
    assert grid_cells(config)


@pytest.mark.parametrize("data", ["cifar10", "svhn", "cub200"])
def test_paper_presets_carry_the_settings_of_the_paper(data: str) -> None:
    config = parse_config(PRESETS[f"paper-{data}"])
    assert config.trials == 5
    assert config.removal.rule == "percentile"
    estimators = {e for block in config.grid for e in block.estimators}
    assert estimators >= {"grad", "grad^2", "gi^2", "ig^2", "sg^2", "sg-sq", "vg", "gc^2", "sobel^2", "rand", "block"}
    assert {k for block in config.grid for k in block.postprocess} == {"plain", "max(3)", "gaussian(1)"}
    plain = {e for block in config.grid for e in block.estimators if block.postprocess == ["plain"]}
    assert plain == {"gi", "ig", "sg", "gc", "sobel", "rand", "block"}, "Figure 10, and what is never filtered"
    for block in config.grid:
        table_1 = block.estimators == ["rand", "block"]
        assert block.drops == [0.1, 0.3, 0.5, 0.7, 0.9] if table_1 else block.drops == [0.1, 0.3, 0.5]


def test_roar_imagenet_has_the_thirteen_signed_estimators_of_its_paper() -> None:
    config = parse_config(PRESETS["roar-imagenet"])
    cells = [cell for cell in grid_cells(config) if cell.protocol != "base"]
    assert {cell.estimator for cell in cells} == {
        "grad",
        "gb",
        "ig",
        "grad^2",
        "gb^2",
        "ig^2",
        "sg",
        "sg(gb)",
        "sg(ig)",
        "sg-sq",
        "sg-sq(gb)",
        "sg-sq(ig)",
        "rand",
    }
    assert config.explain.aggregate == "mean(raw)" and config.trials == 3
    assert {cell.protocol for cell in cells} == {"roar", "kar", "no-retrain"}
    assert {c.estimator for c in cells if c.drop == 0.99} == {"rand"}
    assert {c.drop for c in cells if c.estimator == "grad"} == {0.1, 0.3, 0.5, 0.7, 0.9}


def test_the_lines_that_the_presets_offer_work() -> None:
    """Base models of ROAD by MMClassification's recipe, CUB-200 at the size of the paper's code, retraining from the base."""
    road = parse_config(
        PRESETS["paper-cifar10"].replace('recipe = "cifar10" ', "# ").replace('# recipe = "c', 'recipe = "c')
    )
    assert road.resolved_recipe() == get_recipe("cifar10-mmcls")
    text = PRESETS["paper-cub200"].replace('recipe = "cub200" ', "# ").replace('# recipe = "c', 'recipe = "c')
    birds = parse_config(text.replace('# start = "base"', 'start = "base"'))
    assert (birds.data.image_size, birds.resolved_recipe().crop, birds.train.start) == (600, 448, "base")


def test_names_get_their_canonical_spelling() -> None:
    config = parse_config(TINY.replace('"grad^2"', '"Grad²"').replace('"max(3)"', '"max"'))
    assert config.grid[0].estimators[0] == "grad^2"
    assert config.grid[0].postprocess == ["plain", "max(3)"]


def test_all_problems_are_reported_at_once_with_path_line_and_nearest_name() -> None:
    text = TINY
    text = (
        text.replace("trials = 1", "trails = 1")
        .replace("epochs = 2", "epoch = 2")
        .replace("drops = [0.3, 0.5]", "drops = [30, 0.5]")
    )
    text = text.replace('protocols = ["roar", "road"]', 'protocols = ["roar", "raod"]').replace('"sg-sq"', '"sg-sqq"')
    text = text.replace("train_size = 60", 'train_size = "many"')
    found = problems(text)
    assert len(found) == 6
    expected = [
        ("trails (line 2)", "did you mean 'trials'?"),
        ("data.train_size (line 5)", "valid integer"),
        ("train.epoch (line 12)", "did you mean 'epochs'?"),
        ("grid.0.protocols.1 (line 17)", "did you mean 'road'?"),
        ("grid.0.estimators.1 (line 18)", "did you mean 'sg-sq'?"),
        ("grid.0.drops.0 (line 20)", "30 % is 0.3"),
    ]
    for where, what in expected:
        assert any(line.startswith(where) and what in line for line in found), (where, what, found)


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ('name = "shapes"', 'name = "shape"', "data.name", "did you mean 'shapes'?"),
        ('name = "convnet"', 'name = "convnett"', "model.name", "did you mean 'convnet'?"),
        ('recipe = "quick"', 'recipe = "quik"', "train.recipe", "did you mean 'quick'?"),
        ("epochs = 2", "epochs = 0", "train.epochs", "must be an int >= 1, got 0"),
        ("ig_steps = 2", "ig_stepz = 2", "explain.options.ig_stepz", "did you mean 'ig_steps'?"),
        ("ig_steps = 2", "ig_steps = 0", "explain.options.ig_steps", "at least 1"),
        ('"max(3)"', '"maximum(3)"', "grid.0.postprocess.1", "there is no post-processing"),
        ("drops = [0.3, 0.5]", "drops = [0.3, 0.3]", "grid.0.drops", "0.3 is there twice"),
        ("drops = [0.3, 0.5]", 'drops = [0.3]\nnull = ["model"]', "grid.0.null (line 21)", "needs trials = 2 or more"),
        ('"max(3)"', '"gausian(1)"', "grid.0.postprocess.1", "'gausian' (did you mean 'gaussian'?)"),
        ('"max(3)"', '"zzz"', "grid.0.postprocess.1", "allowed: plain, max"),
        ('"max(3)"', '"power(0)"', "grid.0.postprocess.1", "p is > 0, got 0"),
        ("drops = [0.3, 0.5]", "drops = [-0.1]", "grid.0.drops.0", "in [0, 1], got -0.1"),
        ("drops = [0.3, 0.5]", "", "grid.0", "drops is missing: roar has no rates of its own"),
        ("drops = [0.3, 0.5]", "drops = []", "grid.0", "drops is missing"),
        ('name = "tiny"', 'name = "a/b"', "name", "letters, digits"),
        ("examples = 2", "workers = 0", "run.workers", "at least 1"),
        ('name = "shapes"', 'name = "shapes"\ntrain = "a.npz"', "data", "train and test come together"),
        ("examples = 2", 'devise = "cpu"', "run.devise", "did you mean 'device'?"),
        ("trials = 1", "trials = 1\nsead = 3", "sead", "did you mean 'seed'?"),
        ("trials = 1", "trials = 1\nestimators = 5", "estimators", "valid list, got 5"),
    ],
)
def test_mistakes(old: str, new: str, where: str, what: str) -> None:
    assert old in TINY
    found = problems(TINY.replace(old, new))
    assert any(line.startswith(where) and what in line for line in found), found


@pytest.mark.parametrize(
    ("step", "end"), [("gausian(1)", "(did you mean 'gaussian'?)"), ("power(0)", "p is > 0, got 0")]
)
def test_a_hint_is_given_once_and_only_where_a_name_is_wrong(step: str, end: str) -> None:
    (found,) = problems(TINY.replace('"max(3)"', f'"{step}"'))
    assert found.endswith(end)


def test_a_block_without_cells_is_an_error() -> None:
    text = TINY.replace('["grad^2", "sg-sq", "rand", "block"]', '["rand"]').replace('["plain", "max(3)"]', '["max(3)"]')
    assert "no cells" in problems(text)[0]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: No such file"):
        load_config(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("name = \n")
    with pytest.raises(ConfigError, match=r"not valid TOML.*line 1"):
        load_config(tmp_path / "bad.toml")


def test_data_paths_are_relative_to_the_config_and_the_root_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TINY.replace('name = "shapes"', 'name = "mine"\ntrain = "a.npz"\ntest = "b.npz"\nroot = "sub"'))
    assert load_config(path).data.root == str(tmp_path / "sub")
    assert load_config(path, data_root=tmp_path / "other").data.root == str(tmp_path / "other")


def test_mask_only_is_added_beside_roar() -> None:
    config = parse_config(TINY).with_mask_only()
    assert config.grid[0].protocols == ["roar", "road", "mask-only"]


BAD_VALUES = {
    "recipe": ("train", 'recipe = "quik"', "there is no recipe 'quik'"),
    "unknown field": ("train", "epoch = 3", "train.epoch"),
    "text as number": ("train", 'lr = "0.1"', "train.lr"),
    "negative batch": ("train", "batch_size = -4", "train.batch_size"),
    "rate twice": ("grid", "drops = [0.3, 0.3]", "0.3 is there twice"),
    "rate in per cent": ("grid", "drops = [30]", "30 % is 0.3"),
    "no such model": ("model", 'name = "convnett"', "there is no model 'convnett'"),
    "no such set": ("data", 'name = "shape"', "there is no data set 'shape'"),
    "one split": ("data", 'name = "x"\ntrain = "a.npz"', "train and test come together"),
    "order": ("grid", 'orders = ["up"]', "'morf' or 'lerf'"),
    "no cells": ("grid", 'postprocess = ["max"]\nestimators = ["rand"]', "take no post-processing"),
    "estimator": ("grid", 'estimators = ["gradd"]', "gradd"),
    "rule": ("removal", 'rule = "exakt"', "did you mean 'exact'"),
    "workers": ("run", "workers = 0", "must be 'auto' or at least 1"),
    "trials": ("", "trials = 0", "trials"),
}


def with_problems(*names: str) -> str:
    """A config with the sections of some bad values in it."""
    sections = {
        "": ['name = "x"'],
        "data": ['name = "shapes"'],
        "model": [],
        "train": [],
        "removal": [],
        "run": [],
        "grid": ['protocols = ["roar"]', 'estimators = ["grad"]', "drops = [0.5]"],
    }
    for name in names:
        section, lines, _ = BAD_VALUES[name]
        for line in lines.splitlines():
            key = line.split("=")[0]
            sections[section] = [old for old in sections[section] if old.split("=")[0] != key] + [line]
    heads = {"": "", "grid": "[[grid]]"}
    return "\n".join("\n".join([heads.get(name, f"[{name}]"), *lines]) for name, lines in sections.items())


@pytest.mark.parametrize("first", BAD_VALUES)
def test_of_two_problems_both_are_reported(first: str) -> None:
    for second in BAD_VALUES:
        same_key = {first, second} in (
            {"rate twice", "rate in per cent"},
            {"no such set", "one split"},
            {"no cells", "estimator"},
        )
        if same_key or second == first:
            continue
        with pytest.raises(ConfigError) as error:
            parse_config(with_problems(first, second))
        for name in (first, second):
            assert BAD_VALUES[name][2] in str(error.value), f"{first} and {second}: {error.value}"
