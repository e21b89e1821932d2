"""A Ray cluster of two nodes on this machine, for tests."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


@contextlib.contextmanager
def two_nodes(cpus: int = 1) -> Iterator[Any]:
    """A head that does no work, and two nodes of `cpus` CPUs; a `ray.cluster_utils.Cluster`."""
    import ray
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ |= {"RAY_worker_niceness": "0", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    head = NODE | {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head, connect=False)
    try:
        for _ in range(2):
            cluster.add_node(**NODE | {"num_cpus": cpus})
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        os.environ.clear()
        os.environ |= before
