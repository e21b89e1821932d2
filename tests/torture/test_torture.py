"""A small torture: that each kind of attack is carried out, noticed and survived. `make torture` is the whole one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")
pytest.importorskip("PIL")

sys.path.insert(0, str(Path(__file__).parent))
from disks import full_disk, may_mount
from lives import live
from subjects import PackSubject, ResponsesSubject
from torture import Torture


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory) -> Torture:
    """Packs and responses only: a study takes seconds, and its damage has tests of its own."""
    import roarfast.data.pack
    import roarfast.metrics  # noqa: F401  (before the first life)

    made = Torture(tmp_path_factory.mktemp("torture"), seed=0)
    for subject in (PackSubject(), ResponsesSubject()):
        made.undisturbed(subject)
    return made


def test_kills_are_survived(torture: Torture) -> None:
    torture.kills(PackSubject(), "parent", "pack", 3)
    assert torture.failures == []
    assert torture.table["pack"]["kills"] == 3 and torture.table["pack"]["finished as undisturbed"] >= 1


@pytest.mark.parametrize("kind", [*PackSubject.kinds, *ResponsesSubject.kinds], ids=lambda kind: kind.name)
def test_damage_is_noticed_or_harmless(torture: Torture, kind) -> None:
    subject = PackSubject() if kind in PackSubject.kinds else ResponsesSubject()
    torture.damage(subject, kind)
    assert torture.failures == []
    assert sum(torture.table[kind.name].values()) == 2


def test_a_full_disk_is_a_message(torture: Torture) -> None:
    if not may_mount():
        pytest.skip("mounting a small file system is not allowed here")
    full_disk(torture, ResponsesSubject(), 1, 4)
    assert torture.failures == []
    (row,) = (row for name, row in torture.table.items() if name.startswith("full disk"))
    assert row["finished as undisturbed"] == 1 and row["stopped with a message"] == 1


def test_what_must_not_happen_is_reported(tmp_path: Path) -> None:
    """A reader that looks at no checksum, a run that dies of its disk, and one that never works again."""

    class Careless(ResponsesSubject):
        name = "careless"

        def work(self, folder: Path, keep: bool = False):
            return lambda say: (folder / "answers.npz").touch()

        def result(self, folder: Path):
            return (folder / "answers.npz").read_bytes()

    torture = Torture(tmp_path, seed=0)
    subject = Careless()
    torture.undisturbed(subject)
    (torture.finished["careless"] / "answers.npz").write_bytes(b"right" * 10)
    torture.wanted["careless"] = b"right" * 10
    torture.damage(subject, subject.kinds[0])
    assert torture.table["responses"]["WRONG"] == 1 and "another result" in torture.failures[0]

    def broken(say) -> None:
        raise ValueError("no")

    subject.work = lambda folder, keep=False: broken  # type: ignore[method-assign]
    torture.damage(subject, subject.kinds[0])
    assert torture.table["responses"]["FAILS FOR EVER"] == 1 and torture.table["responses"]["UNCLEAR END"] == 1
    assert any("fails again" in line for line in torture.failures)
    assert "| responses |" in "\n".join(torture.report())


def test_lives_say_how_they_ended(tmp_path: Path) -> None:
    import os
    import signal

    def dies(say) -> None:
        say("before")
        os.kill(os.getpid(), signal.SIGKILL)

    end = live(dies, tmp_path / "log")
    assert end.code == -signal.SIGKILL and end.said == ["before"]
    assert live(lambda say: None, tmp_path / "log").code == 0

    def refuses(say) -> None:
        raise OSError(f"{tmp_path / 'a.npy'} is damaged")

    end = live(refuses, tmp_path / "log")
    assert end.code == 2 and end.kind == "OSError"
    assert end.names(tmp_path / "a.npy") and not end.names(tmp_path / "elsewhere" / "b.npy")


def test_records_of_several_runs_are_one_table() -> None:
    import json

    from torture_record import report

    runs = [
        {"seed": 2, "table": {"pack": {"kills": 3}, "maps": {"damaged": 1, "noticed, made again": 1}}, "failures": []},
        {"seed": 1, "table": {"pack": {"kills": 4}}, "failures": ["maps: another result"]},
    ]
    page = "\n".join(report(json.dumps(run) for run in runs))
    assert "Seeds 1, 2: 1 failures:" in page and "- maps: another result" in page
    assert "| pack | 7 |" in page and "| maps | 1 | 1 |" in page and "Full disks" not in page
