"""Drop-ins: other benchmarks become fast by one line, and give the same numbers.

Use them so::

    with roarfast.compat.patch("quantus", "grad-cam"):    # for a block
        ...
    roarfast.compat.enable("quantus")                     # until disable(), for notebooks
    print(roarfast.compat.status())                       # what was fast, what was passed on and why

    python -m roarfast.compat --patch quantus,grad-cam script.py

Or change an import: `roarfast.compat.road`, `.grad_cam`, `.ndimage`, `.captum` and `.torch_ops` hold functions with the
peers' names and signatures and need no peer installed. This package imports no peer until its patch is asked for.
"""

from roarfast.compat._options import CompatWarning
from roarfast.compat._patch import disable, enable, patch, status, worker_init_fn
from roarfast.compat._status import PeerStatus
from roarfast.compat._status import reset as reset_status

__all__ = ["CompatWarning", "PeerStatus", "disable", "enable", "patch", "reset_status", "status", "worker_init_fn"]
