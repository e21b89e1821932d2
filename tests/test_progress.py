"""The display of long jobs: a bar on a terminal, lines elsewhere, nothing where nothing is wanted."""

from __future__ import annotations

import io
import re
import sys

import pytest

from roarfast import _progress
from roarfast._progress import MODES, Bar, Lines, Progress, progress, progress_in_mode


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(_progress, "_on_terminal", lambda: True)


@pytest.fixture
def no_rich(monkeypatch):
    for name in ("rich", "rich.console", "rich.live"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("hidden", [False, None])  # None: the standard error output is no terminal here
def test_nothing_is_shown_where_nothing_is_wanted(capsys, hidden):
    with progress("maps", 10, show=hidden) as job:
        job.advance(10)
    assert type(job) is Progress and job.done == 10
    assert capsys.readouterr() == ("", "")


def test_lines_where_there_is_no_terminal(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with progress("maps", 100, show=True, done=20) as job:
        for _ in range(8):
            now[0] += 3
            job.advance(10, "drop rate 0.3")
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err.splitlines() == [  # every 5 seconds at most, and at the end
        "maps: 40/100 (40 %), 0:18 left, drop rate 0.3",
        "maps: 60/100 (60 %), 0:12 left, drop rate 0.3",
        "maps: 80/100 (80 %), 0:06 left, drop rate 0.3",
        "maps: 100/100 (100 %), 0:00 left, drop rate 0.3",
    ]


def test_lines_of_a_job_that_is_not_counted_yet(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with progress("packing", None, show=True) as job:
        now[0] = 6
        job.update(3)
        job.update(5, 5)
    assert capsys.readouterr().err.splitlines() == ["packing: 3", "packing: 5/5 (100 %), 0:00 left"]


def test_a_terminal_without_rich_gets_lines(terminal, no_rich):
    assert isinstance(progress("maps", 10), Lines)


def test_a_bar_on_a_terminal(terminal, capsys, monkeypatch):
    pytest.importorskip("rich")
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)  # rich must take the captured output for a terminal too
    with progress("maps", 10, done=4) as job:
        assert isinstance(job, Bar)
        job.update(10, what="more maps", note="loss 0.1")
        job._live.refresh()
    shown = capsys.readouterr()
    shown = shown._replace(err=re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.err))
    assert "more maps" in shown.err and "10/10" in shown.err and "loss 0.1" in shown.err and not shown.out


def test_long_times(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    job = progress("maps", 1000, show=True)
    now[0] = 10
    job.advance(1)
    assert "2:46:30 left" in capsys.readouterr().err


def test_notebooks_get_lines(monkeypatch):
    class ZMQInteractiveShell:
        pass

    class IPython:
        get_ipython = staticmethod(ZMQInteractiveShell)

    monkeypatch.setattr(_progress, "_on_terminal", lambda: False)
    assert type(progress("maps", 10)) is Progress
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    assert isinstance(progress("maps", 10), Lines)
    assert type(progress("maps", 10, show=False)) is Progress


def test_modes(capsys, terminal):
    pytest.importorskip("rich")
    kinds = {mode: type(progress_in_mode(mode, "training", 3)) for mode in MODES}
    assert kinds == {"auto": Bar, "bar": Bar, "log": Lines, "none": Progress}
    given = Progress()
    assert progress_in_mode(given, "training", 3) is given
    with pytest.raises(ValueError, match="progress must be one of auto, bar, log, none, got 'loud'"):
        progress_in_mode("loud", "training", 3)


def test_items_and_notes_stay_in_a_log(capsys):
    with progress_in_mode("log", "training", 2) as job:
        job.update(1, note="not shown")
        job.part(0, "not shown")
        job.item("epoch 1")
        job.say("a note")
    assert capsys.readouterr().err.splitlines() == ["epoch 1", "a note"]


def test_a_bar_with_parts_and_the_last_item(monkeypatch):
    pytest.importorskip("rich")
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    job = Bar("study", None, stream=stream, stays=True)
    job.say("before it starts")
    job.close()
    assert stream.getvalue().strip() == "before it starts", "a bar that never started draws nothing"
    job.update(1, 4, left=90.0)
    job.part(0, "roar grad 0.3")
    job.part(1, "")
    job.item("roar grad 0.1: 81 %")
    job._live.refresh()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert all(
        text in shown for text in ("study", "1/4", "about 1 min 30 s left", "  roar grad 0.3", "last: roar grad 0.1")
    )
    job.close()
    end = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert end.rstrip().endswith("last: roar grad 0.1: 81 %") and end.count("roar grad 0.3") == shown.count(
        "roar grad 0.3"
    )


def test_tasks_of_a_study():
    pytest.importorskip("pydantic")
    from roarfast.study.progress import Eta, make_progress

    stream = io.StringIO()
    told = make_progress(stream)
    told.start("tiny", 3, 2, Eta({"roar": 3}), 5)
    told.begin(0, "roar grad 0.3")
    told.update(0, "epoch 1")
    told.finish(0, "roar grad 0.3", "81 %", "roar", 10.0)
    told.drop("roar")
    told.note("a note")
    told.stop()
    assert [line[9:] for line in stream.getvalue().splitlines()] == [
        "tiny: 5 cells to do in 3 tasks, 2 workers",
        "[1/3, about 10.0 s left] roar grad 0.3: 81 % (10.0 s)",
        "a note",
    ]
    assert told.job.done == 2
