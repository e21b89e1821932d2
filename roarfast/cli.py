"""The `roarfast` command. `--help`, `--version` and `info` need nothing but NumPy, `selftest` torch; the rest is in `commands.py`."""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from zipfile import BadZipFile

from roarfast import _extras, info
from roarfast._version import __version__
from roarfast.study.errors import StudyError

_PLAIN_HELP = """\
usage: roarfast [--help] [--version] COMMAND …

Fast, exact and honest remove-and-retrain evaluation of attribution maps.

  info [--json]   version, compiler, SIMD level, threads, CUDA and optional packages
  selftest        compare every op on a device with the CPU (needs torch); selftest --help for more"""


def main() -> None:
    """Entry point of the `roarfast` command."""
    try:
        from roarfast.commands import app  # needs typer and more, which may be missing
    except ModuleNotFoundError as error:
        if (error.name or "roarfast").split(".")[0] == "roarfast":
            raise
        sys.exit(_main_without_extras(sys.argv[1:]))
    try:
        with clear_errors():
            app()
    except ModuleNotFoundError as error:
        if not _extras.is_optional(error.name):
            raise
        advice = _extras.install_advice(error.name)
        print(f"error: this needs {error.name}, which is not installed; {advice}", file=sys.stderr)
        sys.exit(2)


HANDLED = (
    StudyError,
    ModuleNotFoundError,
    OSError,
    ValueError,
    RuntimeError,
    MemoryError,
    EOFError,
    sqlite3.Error,
    BadZipFile,
)
"""What a user can cause, or can mend by an install: a sentence at the command line."""


@contextmanager
def clear_errors() -> Iterator[None]:
    """What a user can cause is one line without a traceback: files, configs, numbers, memory, devices.

    Other errors are ours, and their traceback is wanted; `ROARFAST_TRACEBACK=1` shows that of every error.
    """
    try:
        yield
    except ModuleNotFoundError:
        raise  # `main` knows which packages come with an extra
    except HANDLED as error:
        if os.environ.get("ROARFAST_TRACEBACK"):
            raise
        print(f"error: {_sentence(error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)


def _sentence(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return f"something is nested too deep: {error}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    return str(error) or type(error).__name__


def _main_without_extras(arguments: list[str]) -> int:
    """What works with NumPy alone; for anything else, what to install."""
    command = arguments[0] if arguments else "--help"
    if command == "--version":
        print(__version__)
    elif command == "info":
        info.show("--json" in arguments[1:])
    elif command == "selftest":
        return _selftest(arguments[1:])
    elif command in ("--help", "-h", "help"):
        print(f"{_PLAIN_HELP}\n\nData, scores, studies and reports come with more packages; {_extras.install_advice()}")
    else:
        print(f"error: `roarfast {command}` needs more packages; {_extras.install_advice()}", file=sys.stderr)
        return 2
    return 0


def _selftest(arguments: list[str]) -> int:
    options = argparse.ArgumentParser("roarfast selftest")
    options.add_argument("--device", default="cuda")
    options.add_argument("--json", action="store_true")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--out")
    given = options.parse_args(arguments)
    try:
        from roarfast import selftest  # needs torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print("error: selftest needs torch, which is not installed: pip install torch", file=sys.stderr)
        return 2
    return selftest.show(given.device, given.json, given.quick, given.out)
