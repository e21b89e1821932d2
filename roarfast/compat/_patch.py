"""`patch`, `enable` and `disable`: other packages made fast for a block, or until further notice."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

from roarfast import _backend
from roarfast.compat import _imputer_class, _peers, _slots, _status
from roarfast.compat._options import Options

Wanted: TypeAlias = str | type
"""A peer by name, or a class like NoisyLinearImputer."""

_lock = threading.RLock()
_active: dict[str, int] = {}  # patches in force, per peer
_tested: dict[str, bool] = {}
_requests: dict[object, tuple[tuple[Wanted, ...], Options]] = {}  # of the tokens in force, for worker processes
_enabled: list[tuple[Wanted, object]] = []  # by enable(): what was asked for, and its token


def _name(peer: Wanted) -> str:
    return peer if isinstance(peer, str) else f"{peer.__module__}.{peer.__qualname__}"


def _targets(peer: Wanted, options: Options) -> list[_slots.Target]:
    if isinstance(peer, type):
        return _imputer_class.targets(peer, _name(peer), options)
    if not isinstance(peer, str):
        raise TypeError(f"peer must be a name or a class like NoisyLinearImputer, got {peer!r}")
    record = _peers.find(peer)
    replaced = record.load()
    _tested[peer] = _peers.is_tested(record, replaced)
    return record.targets(replaced, options)


def _apply(peers: tuple[Wanted, ...], options: Options) -> object:
    with _lock:
        token = _slots.push([target for peer in peers for target in _targets(peer, options)])
        _requests[token] = (peers, options)
        for peer in peers:
            _active[_name(peer)] = _active.get(_name(peer), 0) + 1
        return token


def _undo(token: object) -> None:
    with _lock:
        _slots.pop(token)
        peers, _ = _requests.pop(token)
        for peer in peers:
            _active[_name(peer)] -= 1


class patch(contextlib.ContextDecorator):
    """Make other packages fast inside a `with` block, or inside a decorated function.

    Patches hold for the whole process, threads included; overlapping blocks are counted, and the last one to end puts
    every attribute back as it was. Processes started by fork inherit them, spawned ones need `worker_init_fn`.

    Args:
        *peers: Names ("quantus", "grad-cam", "road", "soco", "roar", "scipy"), or a class that is a copy of
            road_evaluation's `NoisyLinearImputer`, as many projects carry one.
        mode: `"faithful"` for the peer's numbers, `"fixed"` for those it should give; see docs/compat.
        noise: `"peer"` for the peer's own random numbers, `"philox"` for ours: faster, other values.
        tol: Largest error of an imputed value, as a fraction of the range of the known pixels; default 1e-5, and 1e-8
            for float64 images.
        seed: For `noise="philox"`.

    Raises:
        ModuleNotFoundError: If a peer is not installed.

    Warns:
        CompatWarning: Once, if the installed version of a peer is not one that was tested.

    Example:
        >>> import numpy as np, roarfast.compat, scipy.ndimage
        >>> with roarfast.compat.patch("scipy"):
        ...     blurred = scipy.ndimage.gaussian_filter(np.eye(5), 1.0)
        >>> scipy.ndimage.gaussian_filter.__module__.startswith("roarfast")
        False
    """

    def __init__(
        self, *peers: str | type, mode: str = "faithful", noise: str = "peer", tol: float | None = None, seed: int = 0
    ) -> None:
        if not peers:
            raise ValueError(f"patch needs at least one peer: one of {', '.join(_peers.MODULES)}, or a class")
        for peer in peers:
            if isinstance(peer, str):
                _peers.find(peer)
            elif not isinstance(peer, type):
                raise TypeError(f"peer must be a name or a class like NoisyLinearImputer, got {peer!r}")
        self.peers = peers
        self.options = Options(mode, noise, tol, seed)
        self._tokens: list[object] = []  # one per block that is open

    def __enter__(self) -> patch:
        self._tokens.append(_apply(self.peers, self.options))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _undo(self._tokens.pop())


def enable(
    *peers: str | type, mode: str = "faithful", noise: str = "peer", tol: float | None = None, seed: int = 0
) -> None:
    """`patch` until `disable` is called: for notebooks and the first line of a script.

    Example:
        >>> import roarfast.compat
        >>> roarfast.compat.enable("scipy")
        >>> roarfast.compat.disable()
    """
    wanted = patch(*peers, mode=mode, noise=noise, tol=tol, seed=seed)
    with _lock:
        # One token per peer, so that each can be disabled alone; all or none if one of them fails.
        done: list[tuple[Wanted, object]] = []
        try:
            for peer in wanted.peers:
                done.append((peer, _apply((peer,), wanted.options)))
        except BaseException:
            for _, token in done:
                _undo(token)
            raise
        _enabled.extend(done)


def disable(*peers: str | type) -> None:
    """Undoes `enable`: of these peers, or of all. Blocks of `patch` that are open stay in force.

    Args:
        *peers: As they were given to `enable`; none: all.

    Example:
        >>> enable("scipy")
        >>> disable("scipy")
        >>> import scipy.ndimage
        >>> scipy.ndimage.gaussian_filter.__module__.split(".")[0]
        'scipy'
    """
    with _lock:
        for peer, token in list(_enabled):
            if not peers or peer in peers:
                _undo(token)
                _enabled.remove((peer, token))


def status() -> dict[str, _status.PeerStatus]:
    """What was fast, and what went to the original and why, since the start or `reset_status`.

    Returns:
        A dict by peer, printing as a table, of everything that was patched or called.

    Example:
        >>> import numpy as np, roarfast.compat
        >>> from roarfast.compat import ndimage
        >>> roarfast.compat.reset_status()
        >>> blurred = ndimage.gaussian_filter(np.eye(5), 1.0)
        >>> roarfast.compat.status()["scipy"].fast
        {'gaussian_filter': 1}
    """
    with _lock:
        names = set(_active) | _status.counted_peers()
        result = _Table()
        for name in sorted(names):
            found = _peers.version(_peers.find(name)) if name in _peers.MODULES else None
            result[name] = _status.PeerStatus(
                name, found, _tested.get(name), bool(_active.get(name)), *_status.counts(name)
            )
        return result


class _Table(dict[str, _status.PeerStatus]):
    def __str__(self) -> str:
        return "\n".join(map(str, self.values())) or "nothing patched, nothing called"


def worker_init_fn() -> Callable[[int], None]:
    """A `worker_init_fn` for torch's DataLoader that puts the patches in force now into effect in spawned workers.

    It also sets one thread per worker, as the workers are the parallelism.

    Example:
        >>> import roarfast.compat
        >>> callable(roarfast.compat.worker_init_fn())
        True
    """
    with _lock:
        return functools.partial(_init_worker, tuple(_requests.values()))


def _init_worker(requests: tuple[tuple[tuple[Wanted, ...], Options], ...], worker: int) -> None:
    _backend.set_num_threads(1)
    for peers, options in requests:
        missing = tuple(peer for peer in peers if not _active.get(_name(peer)))  # forked workers have them already
        if missing:
            _apply(missing, options)
