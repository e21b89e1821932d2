"""`import torchvision` that also works when torchvision's compiled library does not load.

A torchvision built for another torch (a CUDA build beside a CPU-only torch, say) cannot load its `_C` library. It says
so only when one of its compiled ops is used, but its import already fails, because it describes two of those ops
(`torchvision::nms`, `torchvision::qnms`) to torch without checking that they exist. Nothing in this package uses them:
models, datasets and transforms are plain Python. So the missing schemas are declared before the import.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from roarfast._extras import install_advice

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_declared: list[Any] = []  # a torch.library.Library takes its definitions with it when it is collected


def import_torchvision(submodule: str = "") -> ModuleType:
    """Imports torchvision, or one of its submodules.

    Args:
        submodule: For example `"models"` or `"transforms.v2"`; empty for torchvision itself.

    Returns:
        The imported module. Calling this again is cheap and harmless.

    Raises:
        ModuleNotFoundError: torchvision is not installed.

    Example:
        >>> models = import_torchvision("models")
        >>> models.resnet18(num_classes=10).fc.out_features
        10
    """
    if "torchvision" not in sys.modules:
        spec = importlib.util.find_spec("torchvision")
        if spec is None or not spec.submodule_search_locations:
            advice = install_advice("torchvision")
            raise ModuleNotFoundError(f"torchvision is not installed; {advice}", name="torchvision")
        _declare_missing_ops(Path(spec.submodule_search_locations[0]))
    return importlib.import_module(f"torchvision.{submodule}" if submodule else "torchvision")


def library_problem() -> str | None:
    """What is wrong with torchvision's compiled library beside this torch; None if nothing is, or there is none.

    Raises:
        ImportError: There is no torch.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return None
    if _load_libraries(Path(spec.submodule_search_locations[0])):
        return None
    return (
        "torchvision's compiled ops do not load: it was built for another torch. roarfast does without them, but `import "
        "torchvision` fails in scripts of your own"
    )


def _load_libraries(package: Path) -> bool:
    """Loads the compiled libraries; whether all could be."""
    import torch

    fine = True
    for library in sorted([*package.glob("_C*.so"), *package.glob("_C*.pyd"), *package.glob("_C*.dylib")]):
        try:
            torch.ops.load_library(str(library))
        except (OSError, RuntimeError):
            fine = False
    return fine


def _declare_missing_ops(package: Path) -> None:
    import torch

    _load_libraries(package)
    for schema in _SCHEMAS:
        name = schema[: schema.index("(")]
        try:
            torch._C._dispatch_has_kernel_for_dispatch_key(
                f"torchvision::{name}", "CPU"
            )  # raises if there is no such op
        except RuntimeError:
            if not _declared:
                _declared.append(torch.library.Library("torchvision", "FRAGMENT"))
            _declared[0].define(schema)
