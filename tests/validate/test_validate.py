"""`roarfast validate`: every check holds, and the command says so, or says what failed."""

import json

import pytest
from typer.testing import CliRunner

from roarfast import validate
from roarfast.commands import app
from roarfast.validate.check import exactly

run_cli = CliRunner().invoke


@pytest.mark.parametrize("name", validate.CHECKS)
def test_every_claim(name):
    (result,) = validate.run([validate.CHECKS[name]])
    assert result.outcome.verdict in ("holds", "differs"), result.outcome.here


def test_numbers_of_theorem_32():
    values = validate.CHECKS["counterexample"].run().values
    assert values["I(Z;A|X)"] == 1 and values["I(Z;kA|X)"] == 0
    assert values["I(Z;X'|X)"] == 0.75
    assert values["I(X';Y)"] == pytest.approx(0.344361, abs=5e-7)
    assert values["Bayes(X')"] == 0.75 and values["Bayes(kX')"] == 0.5


def test_json():
    result = run_cli(app, ["validate", "--only", "counterexample,error-bounds", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["name"] for row in rows] == ["counterexample", "error-bounds"]
    assert {"claim", "paper", "here", "values", "verdict", "seconds"} <= rows[0].keys()


def test_table():
    result = run_cli(app, ["validate", "--only", "theorems"])
    assert result.exit_code == 0, result.output
    assert "7 claims" in result.stdout and "0 failed" in result.stdout
    assert "Song et al." in " ".join(result.stdout.split())


def test_papers_are_cited_by_name():
    """A reader does not know our numbers."""
    check = validate.Check("a", "b", "c", "002, Algorithm 2; 000's argument", "d", lambda: exactly({}, {}))
    assert check.cited == "Li et al., Algorithm 2; Song et al.'s argument"
    assert not [c.cited for c in validate.CHECKS.values() if c.cited.startswith("00")]


def test_a_group_is_its_file():
    assert {c.name for c in validate.select(["theorems"])} > {"theorem-3.1", "counterexample"}
    assert all(c.group == "theorems" for c in validate.select(["theorems"]))


@pytest.mark.parametrize(("word", "hint"), [("theorms", "did you mean 'theorems'?"), ("zzz", "there are the groups")])
def test_unknown_name(word, hint):
    result = run_cli(app, ["validate", "--only", word])
    assert result.exit_code == 2
    assert word in result.stderr and hint in result.stderr


def test_a_failure_is_an_exit_code(monkeypatch):
    broken = validate.Check("wrong", "theorems", "1 is 2", "nowhere", "2", lambda: exactly({"one": 1}, {"one": 2}))
    crash = validate.Check("crash", "theorems", "1 / 0", "nowhere", "?", lambda: exactly({"one": 1 // 0}, {}))
    monkeypatch.setitem(validate.CHECKS, "wrong", broken)
    monkeypatch.setitem(validate.CHECKS, "crash", crash)
    result = run_cli(app, ["validate", "--only", "wrong,crash", "--json"])
    assert result.exit_code == 1
    rows = json.loads(result.stdout)
    assert [row["verdict"] for row in rows] == ["fails", "fails"]
    assert "ZeroDivisionError" in rows[1]["here"]


def test_names_are_unique():
    with pytest.raises(ValueError, match="two checks called 'counterexample'"):
        validate.check("counterexample", claim="again", source="here")(lambda: exactly({}, {}))


def test_help_and_list():
    assert "no data, no training" in run_cli(app, ["validate", "--help"]).stdout
    listed = run_cli(app, ["validate", "--only", "theorems", "--list"]).stdout.splitlines()
    assert len(listed) == 7 and listed[0].startswith("theorems/theorem-3.1: ")
