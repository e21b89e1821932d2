"""Protocols are records: config, keys, plan and report read their fields, and one can come from outside."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from helpers.study_helpers import TINY, write_tiny

from roarfast.report import build
from roarfast.study import Study, keys, load
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.protocol import Protocol
from roarfast.study.protocols import PROTOCOLS, describe, find

OUTSIDE = '''
from roarfast.study.protocol import Protocol

def half(cell):
    """The accuracy of the base model on whole images, halved, and a score of its own."""
    codes, rate_index = cell.codes("test")
    scores = cell.work.trainer.score(cell.base_model, cell.work.trainer.whole.test, None)
    return {"accuracy": scores["accuracy"] / 2, "removed": float((codes <= rate_index).mean())}

HALF = Protocol("half", "Half of it", half, trains=False, orders=("morf",), note="Nobody should run this.")
NOT_ONE = 3
'''


@pytest.mark.parametrize(
    ("name", "order", "better", "why"),
    [
        ("roar", "morf", "lower", "removing what matters should hurt"),
        ("road", "lerf", "higher", "removing what does not matter should not hurt"),
        ("kar", "morf", "higher", "keeping what matters should preserve accuracy"),
    ],
)
def test_which_way_is_better(name: str, order: str, better: str, why: str) -> None:
    assert (find(name).better(order), find(name).why_better(order)) == (better, why)


def test_every_record_is_complete() -> None:
    for protocol in PROTOCOLS.values():
        assert set(protocol.orders) <= set(protocol.allowed_orders)
        assert callable(protocol.work())
        assert set(protocol.removal) <= {"fill", "noise", "tolerance"}
        assert protocol.imputes == ("noise" in protocol.removal)


def test_unknown_protocols_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"grid\.0\.protocols\.0 .*no protocol 'raor'; did you mean 'roar'"):
        parse_config(TINY.replace('["roar", "road"]', '["raor"]'))
    with pytest.raises(ConfigError, match=r"no_such_module_here:X.*No module named"):
        parse_config(TINY.replace('["roar", "road"]', '["no_such_module_here:X"]'))


def test_stored_results_of_a_protocol_that_is_gone_are_shown_by_name() -> None:
    assert describe("gone_module:X").title == "gone_module:X"


def test_a_protocol_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_protocol.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"is no roarfast.study.protocol.Protocol, but int"):
        parse_config(TINY.replace('["roar", "road"]', '["half_protocol:NOT_ONE"]'))
    config = write_tiny(
        tmp_path,
        protocols='["roar", "half_protocol:HALF"]',
        estimators='["rand"]',
        postprocess='["plain"]',
        drops="[0.5]",
    )
    study = Study.from_toml(config, tmp_path / "run")
    assert study.run(workers=1, device="cpu").failed == []
    records = {r.protocol: r for r in load(tmp_path / "run")}
    mine = records["half_protocol:HALF"]
    assert mine.accuracy == records["base"].accuracy / 2 and mine.extra == {"removed": 0.5}
    page = Path(build(tmp_path / "run")).read_text()
    assert "Half of it" in page and "Nobody should run this." in page


def test_keys_change_with_the_version_of_a_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    from study_identity import IDENTITY

    from roarfast.study.records import Cell

    cell = Cell("roar", "grad", "plain", "morf", 0.3, 0)
    before = IDENTITY.key(cell)
    newer: Protocol = dataclasses.replace(PROTOCOLS["roar"], version=2)
    monkeypatch.setattr("roarfast.study.identity.find", lambda name: newer)
    assert IDENTITY.key(cell) != before


@pytest.mark.parametrize("protocols", [["roar", "road"], ["completeness", "soundness"]])
def test_the_report_lists_the_seeds_that_were_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocols: list[str]
) -> None:
    used: set[int] = set()
    original = keys.derive_seed

    def spy(*parts: int | str) -> int:
        seed = original(*parts)  # type: ignore[arg-type]
        used.add(seed)
        return seed

    drops = '[0.5]\nnull = ["own", "swap"]'
    config = write_tiny(
        tmp_path, protocols=protocols, estimators=["grad", "rand", "block"], postprocess=["plain"], drops=drops
    )
    config.write_text(config.read_text().replace("[[grid]]", '[removal]\nfill = "noise"\n[[grid]]'))
    study = Study.from_toml(config, tmp_path / "run")
    listed = study.seeds()
    monkeypatch.setattr(keys, "derive_seed", spy)
    monkeypatch.setattr(study, "seeds", lambda: listed)
    assert study.run(workers=1, device="cpu").failed == []
    assert load(tmp_path / "run").meta["seeds"] == listed
    shown = {v for row in listed.values() if isinstance(row, dict) for v in row.values()}
    assert used <= shown
    assert used == shown or "roar" not in protocols  # seeds of training are listed also where nothing is retrained
