"""Packages that come with an extra: which there are, which are missing, how to get them."""

from __future__ import annotations

import importlib.metadata
import re

OPTIONAL_PACKAGES = (
    *("torch", "torchvision", "scipy", "scikit-learn", "pillow", "matplotlib", "rich", "typer", "pydantic", "captum"),
)
# By module; the others need torchvision.
NEED_ONE_TORCH = {"torchvision": "torchvision", "pytorch_grad_cam": "grad-cam", "timm": "timm"}
_MODULES = {"sklearn": "scikit-learn", "PIL": "pillow"}  # whose name differs from that of their package


def is_optional(module: str | None) -> bool:
    """Whether a module that was not found belongs to a package that comes with an extra."""
    root = (module or "").split(".")[0]
    return _MODULES.get(root, root) in {*OPTIONAL_PACKAGES, *_of_extra("study"), *_of_extra("vision")}


def _of_extra(extra: str) -> set[str]:
    """The packages of an extra, as pyproject.toml has them; none where roarfast is imported without being installed."""
    lines = (importlib.metadata.requires("roarfast") or []) if installed("roarfast") else []
    wanted = (line for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line))
    return {re.split(r"[^\w.-]", line)[0] for line in wanted}


def installed(package: str) -> str | None:
    """The version of a package, None if it is not there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def install_advice(module: str | None = None) -> str:
    """A sentence with the command that adds what is missing. It cannot replace a torch that is there.

    Each torchvision belongs to one version of torch: without a bound, pip takes the newest of both.
    """
    torch = installed("torch")
    package = NEED_ONE_TORCH.get((module or "").split(".")[0])
    if package is not None:
        return f"get it with: pip install {package}" + (f" 'torch=={torch}'" if torch else "")
    kept = f"your torch {torch} stays" if torch else "install the torch you want before"
    return f"get them with: pip install 'roarfast[study]' ({kept})"
