"""Names made to break SQL and HTML, in what a study stores and reports: text stays text."""

from __future__ import annotations

import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("matplotlib")

from helpers.synthetic_study import meta, record

from roarfast.study.records import Cell
from roarfast.study.results import StudyResults
from roarfast.study.store import Store

SQL = ("'); DROP TABLE cells; --", '"; DELETE FROM work; --', "a' OR '1'='1", "\0", "%_", "💥" * 50, "?1 :name @x $y")


@pytest.mark.parametrize("evil", SQL)
def test_sql_in_names_is_text(tmp_path: Path, evil: str) -> None:
    with Store.create(tmp_path) as store:
        store.register([(f"{evil}{k}", Cell("roar", evil, evil, evil, 0.5, k)) for k in range(3)], evil)
        store.put(**{"config": {"name": evil}})
        store.mark([f"{evil}0"], "running")
        store.fail([f"{evil}1"], evil)
        store.finish_work(evil, evil, evil, {evil: evil}, {})
        assert sorted(store.statuses().values()) == ["failed", "pending", "running"]
        assert store.get("config", None) == {"name": evil} and store.work()[evil]["info"] == {evil: evil}
        assert {row["estimator"] for row in store.rows()} == {evil}
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        assert database.execute("SELECT count(*) FROM cells WHERE dataset = ?", (evil,)).fetchone() == (3,)
    database.close()


HTML = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>"


class Tags(HTMLParser):
    """Handlers, images of nowhere, and scripts that call `alert`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.found += [
            f"{tag} {name}" for name, value in attributes if name.startswith("on") and "alert" in (value or "")
        ]
        if ("src", "x") in attributes:
            self.found.append(tag)

    def handle_data(self, data: str) -> None:
        if self.inside == "script" and data.strip().startswith("alert("):
            self.found.append(data)


def test_html_in_names_is_text(tmp_path: Path) -> None:
    """As from a stranger's database: estimators, post-processings, data sets, errors, config, versions, hardware."""
    from roarfast.report.build import build

    evil = f"../../{HTML}"
    records = [record("base", "none", "plain", 0.0, t, dataset=HTML, accuracy=0.8) for t in (0, 1)]
    for t in (0, 1):
        for name in (evil, "rand"):
            records.append(
                record(
                    "roar",
                    name,
                    HTML,
                    0.5,
                    t,
                    dataset=HTML,
                    accuracy=0.5,
                    tv_mask=0.1,
                    tv_map=3.0,
                    removed_fraction=0.5,
                )
            )
    records.append(record("roar", evil, "plain", 0.3, 0, dataset=HTML, status="failed", error=f"Traceback\n{HTML}"))
    facts = meta()
    facts["config"] |= {"name": HTML, "data": {"name": HTML}}
    facts["versions"]["torch"] = facts["hardware"]["cpu"] = HTML
    (tmp_path / "a" / "run").mkdir(parents=True)
    path = build(tmp_path / "a" / "run", results=StudyResults(records, facts))
    tags = Tags()
    tags.feed(path.read_text())
    assert tags.found == []
    assert "&lt;img src=x" in path.read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"] and [e.name for e in (tmp_path / "a").iterdir()] == [
        "run"
    ]


def test_the_probe_finds_what_it_looks_for() -> None:
    tags = Tags()
    tags.feed(f"<p>{HTML}</p>")
    assert len(tags.found) == 4
