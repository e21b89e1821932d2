"""A study of things from outside the package: estimator, post-processing, fill, data set and protocol by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from helpers.study_helpers import outcome

from roarfast.study import Study, load
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.tasks import MapsTask

PLUGINS = Path(__file__).parents[1] / "plugins"
CONFIG = """\
name = "outside"
[data]
name = "outside_pack:two_shapes"
train_size = 40
test_size = 20
[model]
options = { widths = [4, 4] }
[train]
epochs = 2
batch_size = 20
[removal]
fill = "outside_pack:mirrored"
[[estimators]]
name = "contrast"
object = "outside_pack:contrast"
options = { scale = 2.0 }
[[grid]]
protocols = ["roar", "outside_pack:LOST"]
estimators = ["contrast", "contrast^2", "rand"]
postprocess = ["plain", "outside_pack:shaken"]
drops = [0.3, 0.5]
[run]
examples = 2
device = "cpu"
"""


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PLUGINS)


def write(folder: Path, text: str = CONFIG) -> Path:
    path = folder / "study.toml"
    path.write_text(text)
    return path


def test_two_workers_and_a_kill_give_the_store_of_one_run(tmp_path: Path) -> None:
    config = write(tmp_path)
    assert Study.from_toml(config, tmp_path / "whole").run(workers=1).failed == []
    records = load(tmp_path / "whole").records
    assert {r.status for r in records} == {"done"} and len(records) == 1 + 2 * 2 * (2 * 2 + 1)
    assert all("lost" in r.extra for r in records if r.protocol == "outside_pack:LOST")
    plain, shaken = (
        next(r for r in records if (r.protocol, r.estimator, r.postprocess) == ("roar", "contrast", k))
        for k in ("plain", "shaken")
    )
    assert plain.key != shaken.key and plain.tv_map != shaken.tv_map
    killed = (
        "import os, sys, threading; sys.path.append(sys.argv[3])\n"
        "from roarfast.study import Study\n"
        "from roarfast.study.store import Store\n"
        "finish, count = Store.finish, [0]\n"
        "def spy(self, *a):\n"
        "    finish(self, *a); count[0] += 1\n"
        "    if count[0] == 6: os._exit(9)\n"
        "Store.finish = spy\n"
        "Study.from_toml(sys.argv[1], sys.argv[2]).run(workers=2)\n"
    )
    command = [sys.executable, "-c", killed, str(config), str(tmp_path / "killed"), str(PLUGINS)]
    assert subprocess.run(command, check=False, timeout=300).returncode == 9
    assert Study.from_toml(config, tmp_path / "killed").run(workers=2).failed == []
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("outside_pack:mirrored", "outside_pack:nothing", "removal.fill.*nothing"),
        ("outside_pack:two_shapes", "outside_pack:nothing", "data.name.*nothing"),
        ('object = "outside_pack:contrast"', 'object = "outside_pack:nothing"', "estimators.0.object.*nothing"),
        ('"contrast", "contrast^2"', '"contrats"', r"grid\.0\.estimators\.0.*did you mean 'contrast'"),
        ('name = "contrast"', 'name = "Con"', r"estimators\.0\.name"),
    ],
)
def test_what_is_not_there_is_an_error_at_its_line(old: str, new: str, message: str) -> None:
    assert old in CONFIG
    with pytest.raises(ConfigError, match=message):
        parse_config(CONFIG.replace(old, new))


def test_options_and_version_of_an_estimator_are_part_of_its_keys(tmp_path: Path) -> None:
    def key(text: str) -> str:
        study = Study(parse_config(text), tmp_path / "none")
        return next(k for k, c in study.setup(device="cpu", workers=1).cells.items() if c.estimator == "contrast")

    changed = [CONFIG.replace("scale = 2.0", "scale = 3.0"), CONFIG.replace("[[grid]]", "version = 2\n[[grid]]", 1)]
    assert len({key(text) for text in [CONFIG, *changed]}) == 3


def test_a_record_shares_passes_and_is_averaged(tmp_path: Path) -> None:
    text = CONFIG.replace(
        "[[estimators]]",
        """[[estimators]]
name = "tilted"
object = "outside_pack:TILTED"
options = { tilt = 0.5 }
[[estimators]]""",
        1,
    ).replace('"contrast^2", "rand"', '"grad", "tilted", "sg", "sg(tilted)"')
    plan = Study(parse_config(text), tmp_path / "none").setup(device="cpu", workers=1).plan
    families = {task.estimators for task in plan.tasks.values() if isinstance(task, MapsTask)}
    assert families == {("contrast",), ("grad", "tilted"), ("sg",), ("sg(tilted)",)}
    with pytest.raises(ConfigError, match=r"sg\(...\) takes a gradient-type base, not 'contrast'"):
        parse_config(CONFIG.replace('"contrast^2"', '"sg(contrast)"'))
