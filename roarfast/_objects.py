"""`package.module:object`: how configs name what somebody else wrote."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from roarfast._timm import timm_factory
from roarfast._torchvision import import_torchvision

_NAME = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")


def is_reference(text: str) -> bool:
    """Whether a name is `package.module:object` rather than one of ours."""
    return ":" in text


_SESSION = "<session>"
"""In the place of a module: objects that only this process has."""
_kept: dict[str, Any] = {}


def keep_object(name: str, found: Any) -> str:
    """Keeps an object that cannot be imported; returns the reference under which `load_object` finds it in this process."""
    _kept[name] = found
    return f"{_SESSION}:{name}"


def is_kept(text: str) -> bool:
    """Whether a reference is of `keep_object`."""
    return text.startswith(f"{_SESSION}:")


def check_name(name: str, what: str) -> str:
    """A name that configs can give to something: `[a-z][a-z0-9_-]*`; `what` says to what, for the message."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise ValueError(f"the name of {what} must be lower-case letters, digits, '_' and '-', got {name!r}")
    return name


def load_object(text: str) -> Any:
    """The object that `"package.module:object"` names; of `"timm:name"`, a factory of timm's model.

    Raises:
        ValueError: If the module cannot be imported or has no such object; the message says which.

    Example:
        >>> load_object("math:pi")
        3.141592653589793
    """
    module_name, _, path = text.partition(":")
    if module_name == _SESSION:
        if path not in _kept:
            raise ValueError(
                f"{path.partition('.')[0]!r} is an object of the Python session that began this study: run it from there, as "
                "Study(config, out, estimators=[…], data=…)"
            )
        return _kept[path]
    if not module_name or not path:
        raise ValueError(f"{text!r} is not of the form 'package.module:object'")
    try:
        if module_name == "timm" and path.isidentifier():
            return timm_factory(path)
        if module_name.split(".")[0] == "torchvision":
            found: Any = import_torchvision(module_name.partition(".")[2])
        else:
            found = importlib.import_module(module_name)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{text!r}: {error}") from error
    except (Exception, SystemExit) as error:  # what somebody else's module does when it is imported
        raise ValueError(f"{text!r}: importing {module_name} failed: {type(error).__name__}: {error}") from error
    return found


def make_importable(folder: Path) -> None:
    """Lets `model.name = "my_file:function"` find a file beside the config: last on the path, so that it shadows nothing."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
