"""Models of timm by name: `"timm:vit_tiny_patch16_224"`."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from roarfast._extras import install_advice
from roarfast._torchvision import import_torchvision


def timm_factory(name: str) -> Callable[..., Any]:
    """A factory of the model that timm calls `name`.

    Raises:
        ImportError: timm is not installed.
        AttributeError: It has no model of this name; the message names similar ones.
    """
    import_torchvision()  # timm imports it, and it may need help
    try:
        import timm
    except ImportError as error:
        raise ImportError(f"{error}: models of timm need the package; {install_advice('timm')}") from error
    if not timm.is_model(name):
        close = difflib.get_close_matches(name, timm.list_models(), 3)
        hint = f"; similar are {', '.join(close)}" if close else ""
        raise AttributeError(f"timm {timm.__version__} has no model {name!r}{hint}")

    def make(num_classes: int, in_channels: int = 3, **options: Any) -> Any:
        return timm.create_model(name, num_classes=num_classes, in_chans=in_channels, **options)

    return make
