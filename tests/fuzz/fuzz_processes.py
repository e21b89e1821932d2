"""Cases of many calls: threads inside ops at once, and a fork while a thread is inside one."""

from __future__ import annotations

import os
import signal
import threading
import warnings

import numpy as np
from fuzz_case import Case, Rng, difference, pick
from fuzz_cases import OPS

import roarfast as rf

THREAD_CASES = 24
"""Calls of one case of flavour `threads`."""
RACED, GATHERS = 2048, 200
"""Samples of a batch, long enough to be spoiled while it is made, and batches of one case."""


def thread_case(rng: Rng) -> str:
    """Several Python threads inside ops at once, while another spoils the index of a batch."""
    cases = [pick(rng, list(OPS.values()))(rng) for _ in range(THREAD_CASES)]
    images, index = np.zeros((4, 3, 16, 16), np.uint8), np.zeros(RACED, np.int64)
    found: list[str] = []
    stop = threading.Event()

    def work(part: list[Case]) -> None:
        for case in part:
            try:
                found.extend(filter(None, [difference(case, case.call())]))
            except Exception as error:
                found.append(f"{case.op}: {type(error).__name__}: {error}")

    def spoil() -> None:
        while not stop.is_set():
            index[:] = 2**40
            index[:] = 0

    def gather() -> None:
        for _ in range(GATHERS):
            try:
                rf.gather_batch(images, index)
            except ValueError as error:
                if "index" not in str(error):
                    found.append(str(error))

    workers = [threading.Thread(target=work, args=(cases[i::3],)) for i in range(3)]
    others = [threading.Thread(target=f) for f in (spoil, gather)]
    for thread in workers + others:
        thread.start()
    for thread in [*workers, others[1]]:
        thread.join()
    stop.set()
    others[0].join()
    return found[0] if found else ""


def fork_case(rng: Rng) -> str:
    """A child forked while a thread is inside an op runs every op."""
    cases = [make(rng) for make in OPS.values()]
    a, stop = np.zeros((64, 64, 64), np.float32), threading.Event()

    def work() -> None:
        while not stop.is_set():
            rf.gaussian_filter(a, 2)

    thread = threading.Thread(target=work)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        code = 1
        try:
            code = 2 if any(difference(case, case.call()) for case in cases) else 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    stop.set()
    thread.join()
    return "" if status == 0 else f"the forked child ended with status {status}"
