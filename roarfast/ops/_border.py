"""Border modes of the filters: SciPy's names and the values of rf_border in csrc/include/roarfast.h."""

from __future__ import annotations

from collections.abc import Sequence

MODES = {"reflect": 0, "mirror": 1, "nearest": 2, "wrap": 3, "constant": 4}

# SciPy accepts these too.
ALIASES = {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}


def mode_names(mode: str | Sequence[str]) -> list[str]:
    """The canonical names of the border modes of both image axes, from one or a (rows, columns) pair."""
    if isinstance(mode, str):
        return [mode_name(mode)] * 2
    if not isinstance(mode, Sequence) or len(mode) != 2:
        hint = "" if isinstance(mode, Sequence) else "; for SciPy's order of arguments: roarfast.compat.ndimage"
        raise ValueError(f"mode must be one border mode or a (rows, columns) pair, got {mode!r}{hint}")
    return [mode_name(m) for m in mode]


def mode_codes(modes: Sequence[str]) -> list[int]:
    """The values of rf_border."""
    return [MODES[mode] for mode in modes]


def mode_name(mode: str) -> str:
    """The canonical name of a border mode; a ValueError lists the allowed ones."""
    mode = ALIASES.get(mode, mode) if isinstance(mode, str) else mode
    if not isinstance(mode, str) or mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    return mode
