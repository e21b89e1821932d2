"""Which samples, in which order: shuffles that depend on (seed, epoch) alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox


def epoch_order(n: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """A random permutation of 0..n-1 for one epoch.

    Sorts Philox words, so it is the same with any version of NumPy, on any machine.

    Args:
        n: number of samples.
        seed: of the training.
        epoch: counted from 0.

    Returns:
        int64 `[n]`.

    Example:
        >>> sorted(epoch_order(5, seed=0, epoch=3).tolist())
        [0, 1, 2, 3, 4]
    """
    return np.argsort(philox.words(seed, epoch, n, philox.SHUFFLE), kind="stable")


def epoch_batches(
    n: int, batch_size: int, seed: int, epoch: int, *, drop_last: bool = False, rank: int = 0, world: int = 1
) -> list[npt.NDArray[np.int64]]:
    """The training batches of an epoch as sample indices.

    Args:
        n: number of samples.
        batch_size: over all processes; a multiple of `world`.
        seed: of the training.
        epoch: counted from 0.
        drop_last: leave out a last batch that is not full. A last batch of one sample per process is always left out:
            batch normalisation cannot use it.
        rank: which process asks. Each gets an equal, contiguous part of every batch.
        world: how many processes there are. A last batch is cut to a multiple of it.
    """
    if batch_size < 1 or batch_size % world:
        raise ValueError(f"batch_size must be a positive multiple of the {world} processes, got {batch_size}")
    order = epoch_order(n, seed, epoch)
    batches = [order[start : start + batch_size] for start in range(0, n, batch_size)]
    last = len(batches[-1]) // world if batches else 0
    if batches and len(batches[-1]) < batch_size and (drop_last or last < 2) and len(batches) > 1:
        batches.pop()
    shares = [len(batch) // world for batch in batches]
    return [batch[rank * share : (rank + 1) * share] for batch, share in zip(batches, shares)]
