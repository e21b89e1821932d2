"""Run a test suite with other packages patched: `pytest -p roarfast.compat.pytest_plugin --roarfast-patch quantus`.

The patch is in force while tests run and not while they are collected, so that what a suite looks up by function object
at import still finds the originals. A summary of what was fast ends the report, that of pytest-xdist's workers included.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from roarfast.compat import _status, patch, status
from roarfast.compat._options import MODES, NOISES

if TYPE_CHECKING:
    import pytest

    hook = pytest.hookimpl
else:
    from pytest import hookimpl as hook


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's options."""
    group = parser.getgroup("roarfast")
    group.addoption("--roarfast-patch", default="", metavar="NAMES", help="peers to patch, comma-separated")
    group.addoption("--roarfast-mode", default="faithful", choices=MODES, help="the peer's numbers, or faults mended")
    group.addoption("--roarfast-noise", default="peer", choices=NOISES, help="the peer's random numbers, or ours")


@hook(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Patches while the tests run."""
    names = session.config.getoption("--roarfast-patch")
    if not names:
        return (yield)
    with patch(
        *names.split(","),
        mode=session.config.getoption("--roarfast-mode"),
        noise=session.config.getoption("--roarfast-noise"),
    ):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its counts on."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["roarfast_status"] = _status.rows()


@hook(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """The counts of a worker arrive."""
    _status.add(getattr(node, "workeroutput", {}).get("roarfast_status", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was fast, and what was passed on and why."""
    if config.getoption("--roarfast-patch"):
        terminalreporter.section("roarfast.compat")
        terminalreporter.write_line(str(status()))
