"""The display of long jobs: a bar on a terminal, lines elsewhere, nothing where nothing is wanted."""

from __future__ import annotations

import re
import sys

import pytest

from roarfast import _progress
from roarfast._progress import Bar, Lines, Progress, progress


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(_progress, "_on_terminal", lambda: True)


@pytest.fixture
def no_rich(monkeypatch):
    for name in ("rich", "rich.console", "rich.progress"):
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
        job._bar.refresh()
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
