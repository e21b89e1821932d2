"""Arguments that have another name now, or are SciPy's: an error says which to write, or where they work."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**now: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks a function whose arguments were renamed: old name → what to write instead.

    Example:
        >>> @renamed(memory="out_layout=...")
        ... def f(out_layout="NCHW"):
        ...     return out_layout
        >>> f(memory="NHWC")
        Traceback (most recent call last):
        TypeError: f() has no argument 'memory': write out_layout=...
    """
    old = tuple(sorted(now))  # a frozenset here is more than torch.compile of 2.6 can guard

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in old:
                if name in kwargs:
                    raise TypeError(f"{function.__name__}() has no argument {name!r}: write {now[name]}")
            return function(*args, **kwargs)

        return call

    return mark


def scipys(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks a filter that lacks some arguments of its namesake in `scipy.ndimage`.

    Example:
        >>> @scipys("axes", "output")
        ... def f(a):
        ...     return a
        >>> f(1, axes=0)
        Traceback (most recent call last):
        TypeError: f() has no argument 'axes'; roarfast.compat.ndimage.f takes SciPy's: axes, output
    """
    known = tuple(sorted(names))

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in known:
                if name in kwargs:
                    here = function.__name__
                    raise TypeError(
                        f"{here}() has no argument {name!r}; roarfast.compat.ndimage.{here} takes SciPy's: {', '.join(names)}"
                    )
            return function(*args, **kwargs)

        return call

    return mark
