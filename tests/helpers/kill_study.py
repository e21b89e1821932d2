"""Runs a study in a child process and kills it, again and again: `python kill_study.py CONFIG OUT KILLS SEED SECONDS`.

The imports happen once, in a parent that never computes; each life of the study is a fork of it, so a life is spent on
the study and not on importing. Prints how many kills hit a study that was not finished.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time

from roarfast.study import make  # noqa: F401  (imports torch and all that the study uses)
from roarfast.study.study import Study


def life(config: str, out: str) -> None:
    outcome = Study.from_toml(config, out).run(workers=1)
    os._exit(1 if outcome.failed else 0)


def main(config: str, out: str, kills: int, seed: int, seconds: float) -> None:
    hits = kill(config, out, kills, seed, seconds)
    while hits < kills // 2 and seconds > 0.1:  # most came after the end: again from the beginning, earlier
        shutil.rmtree(out)
        seconds /= 2
        hits = kill(config, out, kills, seed, seconds)
    child = os.fork()
    if child == 0:
        life(config, out)
    _, status = os.waitpid(child, 0)
    print(hits)
    sys.exit(os.waitstatus_to_exitcode(status))


def kill(config: str, out: str, kills: int, seed: int, seconds: float) -> int:
    rng = random.Random(seed)
    hits = 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            life(config, out)
        time.sleep(seconds * rng.uniform(0.05, 0.5))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        hits += os.WIFSIGNALED(status)
    return hits


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
