"""roarfast: fast, exact and honest remove-and-retrain evaluation of attribution maps."""

from roarfast import ops
from roarfast._backend import BackendError, get_num_threads, set_num_threads
from roarfast._version import RESULT_VERSION, __version__
from roarfast.data.impute_dataset import impute_dataset
from roarfast.ops import *  # noqa: F403  (every op is importable from the top level)

__all__ = [
    "BackendError",
    "RESULT_VERSION",
    "__version__",
    "get_num_threads",
    "impute_dataset",
    "set_num_threads",
    *ops.__all__,
]
