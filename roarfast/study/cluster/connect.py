"""Connects to a Ray cluster, or starts one here; what can go wrong becomes an error that says what to do."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import socket
from collections.abc import Mapping
from types import ModuleType

from roarfast.study.errors import StudyError

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/\s]+):(\d{1,5})")
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
        address = os.environ.get("RAY_ADDRESS") or "auto"
    if address == "auto":
        if _has_cluster(ray):
            with contextlib.suppress(ConnectionError):
                _init(ray, "auto", quiet)
                return ray, False
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
            "`--ray auto`, or send it there: ray job submit -- roarfast run /PATH/study.toml --out /PATH/run --ray auto"
        )
    if not _ADDRESS.fullmatch(address):
        raise StudyError(f"--ray must be 'auto' or HOST:PORT of the head of a Ray cluster, got {address!r}")
    if problem := _silent(address):
        raise StudyError(f"no Ray cluster answers at {address}: {problem}{_ADVICE}")


def _silent(address: str) -> str:
    """Why nobody answers at HOST:PORT; nothing if somebody does."""
    found = _ADDRESS.fullmatch(address)
    assert found is not None
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        return str(error) or type(error).__name__
    return ""


def _has_cluster(ray: ModuleType) -> bool:
    """Whether Ray should look for the cluster of this machine: it would ask one that was killed, not stopped, for minutes."""
    try:
        found = ray._private.services.get_ray_address_from_environment("auto", None)
    except ConnectionError:
        return False
    except Exception:  # not an interface that Ray promises to keep: then it looks itself
        return True
    return not (isinstance(found, str) and _ADDRESS.fullmatch(found) and _silent(found))
