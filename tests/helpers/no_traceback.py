"""Watches every call of the command line in the suite: whatever a test gives it, no Python traceback may reach a user.

Tests call it in three ways: `cli.main` (which prints what it does not catch), typer's `CliRunner` (which keeps it), and as a process.
"""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Any

from roarfast.cli import HANDLED

TRACEBACK = "Traceback (most recent call last)"


def is_command(arguments: Any) -> bool:
    """Whether a process is `roarfast …` or `python -m roarfast …`."""
    words = [str(word) for word in arguments] if isinstance(arguments, list | tuple) else []
    return bool(words) and (Path(words[0]).name == "roarfast" or words[1:3] == ["-m", "roarfast"])


def check_process(done: Any) -> None:
    """Fails if a finished process showed a traceback."""
    text = done.stderr.decode(errors="replace") if isinstance(done.stderr, bytes) else done.stderr or ""
    assert TRACEBACK not in text, f"{done.args} showed a traceback:\n{text}"


def check_result(result: Any) -> None:
    """Fails if a command that was run in this process ended with something that `cli.main` does not turn into a sentence."""
    error = result.exception
    assert TRACEBACK not in result.stderr, f"a command printed a traceback:\n{result.stderr}"
    assert error is None or isinstance(error, (SystemExit, KeyboardInterrupt, *HANDLED)), f"not caught: {error!r}"


def watch() -> None:
    """Puts both checks behind `CliRunner.invoke` and `subprocess.run`."""
    run = subprocess.run

    @functools.wraps(run)
    def watched_run(*arguments: Any, **options: Any) -> Any:
        done = run(*arguments, **options)
        if arguments and is_command(arguments[0]):
            check_process(done)
        return done

    subprocess.run = watched_run  # type: ignore[assignment]
    try:
        from typer.testing import CliRunner
    except ImportError:  # an environment without the extra `study` has no commands to watch
        return
    invoke = CliRunner.invoke

    @functools.wraps(invoke)
    def watched_invoke(self: CliRunner, *arguments: Any, **options: Any) -> Any:
        result = invoke(self, *arguments, **options)
        check_result(result)
        return result

    CliRunner.invoke = watched_invoke  # type: ignore[method-assign]
