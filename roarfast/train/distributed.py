"""Data-parallel training under `torchrun`: who am I, sums over processes, averaged batch-norm statistics."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, nn

_PATIENCE = timedelta(minutes=5)
"""For another process to come, or to answer: one reads images while another is ready."""


@dataclass(frozen=True)
class World:
    """The processes of a training. One process: rank 0 of 1."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        """Whether this process prints and writes checkpoints."""
        return self.rank == 0

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """Element-wise sum over the processes."""
        if self.size > 1:
            distributed.all_reduce(values)
        return values

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is set in any process."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor([float(flag)], device=device)).item() > 0)

    def barrier(self) -> None:
        """Wait for the other processes."""
        if self.size > 1:
            distributed.barrier()


@contextlib.contextmanager
def join_world() -> Iterator[World]:
    """The world `torchrun` describes in the environment; a process group is started (and ended) if none is there."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    started = not distributed.is_initialized()
    if started:
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield World(distributed.get_rank(), distributed.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")))
        if started:
            distributed.barrier()  # a process that leaves early makes gloo's threads in the others abort
    finally:
        if started:
            distributed.destroy_process_group()


@contextlib.contextmanager
def as_rank(rank: int, size: int, meeting: str | Path) -> Iterator[None]:
    """Trainings of the block are one of `size` processes on this machine, as under `torchrun`.

    A process that leaves while others train makes them fail; one that is done waits for them (`wait`).

    Args:
        rank: Of this process.
        size: How many there are.
        meeting: A file that does not exist yet, the same for all of them: where they find each other.
    """
    before = dict(os.environ)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": "0"}  # each sees one GPU, its own
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    try:
        distributed.init_process_group(
            backend, init_method=Path(meeting).absolute().as_uri(), rank=rank, world_size=size, timeout=_PATIENCE
        )
        try:
            yield
        finally:
            distributed.destroy_process_group()
    finally:
        os.environ.clear()
        os.environ |= before


def wait() -> None:
    """Waits for the other processes of `as_rank`: one that leaves early makes gloo's threads in the others abort."""
    distributed.barrier()


def wrap(model: nn.Module, world: World, device: torch.device) -> nn.Module:
    """The model as the loop calls it. Buffers are not broadcast: see `average_statistics`."""
    if world.size == 1:
        return model
    ids = [torch.cuda.current_device() if device.index is None else device.index] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=ids, broadcast_buffers=False)


def average_statistics(model: nn.Module, world: World) -> None:
    """Gives every process the mean of the running batch-norm statistics, before evaluation and in checkpoints.

    Each process normalises with the statistics of its own part of the batch (ghost batch normalisation with
    `batch_size / processes`); the mean of their running statistics is what one process with those groups would have.
    """
    if world.size == 1:
        return
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            for buffer in (module.running_mean, module.running_var):
                if buffer is not None:
                    world.sum(buffer)
                    buffer /= world.size
