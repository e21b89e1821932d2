"""Border modes of the filters: SciPy's names and the values of rf_border in csrc/include/roarfast.h."""

MODES = {"reflect": 0, "mirror": 1, "nearest": 2, "wrap": 3, "constant": 4}

# SciPy accepts these too.
ALIASES = {"grid-mirror": "reflect", "grid-wrap": "wrap", "grid-constant": "constant"}


def mode_name(mode: str) -> str:
    """The canonical name of a border mode; a ValueError lists the allowed ones."""
    mode = ALIASES.get(mode, mode)
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
    return mode
