"""removed_fraction: which share of each map codes remove."""

from __future__ import annotations

from collections.abc import Iterator

from _common import Case, random_maps, size_name

import roarfast as rf


def cases(quick: bool) -> Iterator[Case]:
    a = random_maps(*((16, 64, 64) if quick else (256, 224, 224)))
    codes = rf.rank_codes(a, (0.1, 0.3, 0.5))
    yield Case(
        "removed_fraction",
        f"{size_name(a)}, 3 rates",
        lambda: rf.removed_fraction(codes, 1),
        {"numpy": lambda: (codes <= 1).mean((1, 2))},
        {},
        copy_bytes=codes.nbytes,
    )
