"""Protocols that train a model per cell: ROAR, KAR, ROAD with retraining, and masks alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.study.protocol import Protocol

if TYPE_CHECKING:
    from roarfast.study.cells import CellWork, Scores


def retrain(cell: CellWork) -> Scores:
    """Modify train and test images, train from scratch, test."""
    return cell.retrained()


def train_on_masks(cell: CellWork) -> Scores:
    """Train on the masks alone; accuracy above chance is class information that the mask itself carries."""
    return cell.trained_on_masks()


PROTOCOLS = (
    Protocol("roar", "ROAR", retrain, trains=True, features=True, rank=10),
    Protocol("kar", "KAR", retrain, trains=True, keeps=True, allowed_orders=("morf",), features=True, rank=20),
    Protocol(
        "road-retrain",
        "ROAD with retraining",
        retrain,
        trains=True,
        imputes=True,
        removal=("noise", "tolerance"),
        cost=1.3,
        rank=40,
    ),
    Protocol(
        "mask-only", "Masks alone", train_on_masks, trains=True, removal=(), shown="leakage", features=True, rank=110
    ),
)
