"""Trained on modified images, tested on whole ones: what did a model learn instead of the object (Li et al., appendix C)?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.study.protocol import Protocol

if TYPE_CHECKING:
    from roarfast.study.cells import CellWork, Scores

_NOTE = (
    "ROAR tested on whole images: what was removed from the train images is black there, and the test images lose nothing. A model that "
    "learnt the class from the pixels that were left is about as good as the base model; one that learnt it from the place of the "
    "removed pixels is lost."
)


def tested_on_whole(cell: CellWork) -> Scores:
    """Black pixels in the train images, none in the test images."""
    return cell.trained_with_black_pixels()


PROTOCOLS = (
    Protocol(
        "roar-clean",
        "ROAR tested on whole images",
        tested_on_whole,
        trains=True,
        whole_test=True,
        removal=(),
        note=_NOTE,
        rank=45,
    ),
)
