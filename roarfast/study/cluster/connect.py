"""Connects to a Ray cluster, or starts one here; what can go wrong becomes an error that says what to do."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Mapping
from types import ModuleType

from roarfast.study.errors import StudyError

_PATIENCE = 5.0
"""Seconds for the head to answer: Ray itself tries a wrong address for minutes, deaf to Ctrl-C."""


def import_ray() -> ModuleType:
    """The module `ray`.

    Raises:
        StudyError: It is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise StudyError(
            f"--ray needs the package ray ({error}): get it with: pip install 'roarfast[ray]', on every node in the same "
            "version; without it, --workers runs a study on this machine"
        ) from None
    return ray


def connect(address: str) -> tuple[ModuleType, bool]:
    """Connects this process to a cluster.

    Args:
        address: `HOST:PORT` of the head; or `"auto"`: the cluster that `RAY_ADDRESS` names or that runs on this machine,
            and if there is none, a new one here, of this machine alone.

    Returns:
        The module `ray`, and whether the cluster was started here.

    Raises:
        StudyError: Ray is missing, nobody answers at the address, or versions differ.
    """
    ray = import_ray()
    if ray.is_initialized():
        return ray, False
    quiet = {"log_to_driver": False, "configure_logging": False}
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "auto")
    if address == "auto":
        try:
            _init(ray, "auto", quiet)
            return ray, False
        except ConnectionError:
            # Ray's workers are nice to everybody (15); ours are what this machine is to do, as those of --workers are.
            os.environ.setdefault("RAY_worker_niceness", "0")
            ray.init(address="local", include_dashboard=False, **quiet)
            return ray, True
    _check(address)
    try:
        _init(ray, address, quiet)
    except ConnectionError as error:
        raise StudyError(f"no Ray cluster at {address!r}: {error}{_ADVICE}") from None
    return ray, False


_ADVICE = (
    ". Start one with `ray start --head` on one machine and `ray start --address=HEAD:6379` on the others, and run the study "
    "on one of them; `--ray auto` without a cluster uses this machine alone"
)


def _init(ray: ModuleType, address: str, options: Mapping[str, object]) -> None:
    try:
        ray.init(address=address, **options)
    except RuntimeError as error:
        raise explained(error, ray.__version__) from None


def explained(error: Exception, version: str) -> Exception:
    """A `StudyError` for what Ray says about versions that differ; other errors as they are."""
    text = str(error)
    if "ersion mismatch" not in text:
        return error
    facts = " ".join(text.split())
    return StudyError(
        f"the cluster runs other versions than this machine (Ray {version}, Python {platform.python_version()}): {facts}. "
        f"Install the same ones everywhere: pip install 'ray=={version}' under Python {platform.python_version()}, then "
        "`ray stop` and `ray start` again"
    )


def _check(address: str) -> None:
    """Raises an error at once where Ray would try for minutes."""
    if address.startswith("ray://"):
        raise StudyError(
            f"--ray {address}: a study runs on a machine of its cluster, not through Ray's client. Log in to the head and use "
            "`--ray auto`, or send it there: ray job submit -- roarfast run study.toml --ray auto"
        )
    found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:/\s]+):(\d{1,5})", address)
    if not found:
        raise StudyError(f"--ray must be 'auto' or HOST:PORT of the head of a Ray cluster, got {address!r}")
    host, port = found[1].strip("[]"), int(found[2])
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise StudyError(f"no Ray cluster answers at {address}: {error}{_ADVICE}") from None
