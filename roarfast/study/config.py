"""Reading the config of a study: a TOML file, checked as a whole before anything runs, with every problem at its line."""

from __future__ import annotations

import copy
import re
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from roarfast._objects import make_importable
from roarfast.study import migrations, names
from roarfast.study.errors import ConfigError, Problem, line_of, nearest
from roarfast.study.runfolder import RunFolder
from roarfast.study.schema import StudyConfig
from roarfast.study.stored_maps import PREFIX, is_stored

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Location = tuple[int | str, ...]
"""Keys and positions from the whole config to a value in it."""


def load_config(path: str | Path, data_root: str | Path | None = None) -> StudyConfig:
    """Reads and checks a TOML file; relative data and weight paths are relative to the file.

    Raises:
        ConfigError: With every problem found, each with its key path, line and the nearest valid name.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror or error}")], str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError([Problem("", f"is no text in UTF-8: {error}")], str(path)) from None
    folder = path.resolve().parent
    make_importable(folder)
    return parse_config(text, str(path), folder, data_root, in_run_folder=RunFolder(folder).store.is_file())


def parse_config(
    text: str,
    source: str = "the config",
    folder: Path | None = None,
    data_root: str | Path | None = None,
    in_run_folder: bool = False,
) -> StudyConfig:
    """Checks the text of a config; see `load_config`. In a run folder, names of earlier versions are translated."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Problem("", f"is not valid TOML: {error}")], source) from None
    except RecursionError:
        raise ConfigError([Problem("", "is not valid TOML for this purpose: nested too deeply")], source) from None
    if data_root is not None and isinstance(raw.get("data"), dict):
        raw["data"]["root"] = str(Path(data_root).resolve())
    _resolve_paths(raw, folder)
    if in_run_folder and (renamed := migrations.translate(raw)):
        warnings.warn(f"{source}: {'; '.join(map(str, renamed))} (results keep their keys)", stacklevel=3)
    return validate(raw, source, text)


def validate(raw: dict[str, object], source: str = "the config", text: str | None = None) -> StudyConfig:
    """Checks a config given as a dict (the parsed TOML)."""
    raw = copy.deepcopy(raw)
    problems = [Problem(".".join(r.path), str(r), line_of(text, r.path)) for r in migrations.translate(raw)]
    config, found_errors = _check(raw)
    problems += [_problem(error, text) for error in found_errors]
    model = raw.get("model")
    model_name = model.get("name", "convnet") if isinstance(model, dict) else "convnet"
    found = [*names.train_problems(raw.get("train", {}), model_name), *names.name_problems(raw)]
    problems += [Problem(p, message, line_of(text, p.split("."))) for p, message in found]
    if problems or config is None:
        raise ConfigError(problems, source)
    return config


def _check(raw: dict[str, object]) -> tuple[StudyConfig | None, list[ErrorDetails]]:
    """The config, or all its errors.

    pydantic checks what depends on several values only when each of them is fine, so what is wrong is taken out and the
    rest checked again, until nothing new is found.
    """
    rest = copy.deepcopy(raw)
    found: list[ErrorDetails] = []
    taken_out: set[Location] = set()
    for _ in range(_MAX_WAVES):
        try:
            config = StudyConfig.of(rest)
            return (config if not found else None), found
        except ValidationError as error:
            errors = error.errors()
        paths = [_path_in(rest, e["loc"]) for e in errors]
        wrong_inside = {path[:-1] for path in paths if path}
        errors = [e for e, p in zip(errors, paths) if not (e["type"] == "too_short" and p in wrong_inside)]
        new = [e for e in errors if not _follows(e, taken_out)]
        known = {(tuple(map(str, e["loc"])), e["msg"]) for e in found}
        new = [e for e in new if (tuple(map(str, e["loc"])), e["msg"]) not in known]
        found += new
        if not new:
            break
        # Deepest first, and of a list the last first, so that the other positions stay.
        for path in sorted(
            set(paths), key=lambda p: (len(p), p[-1] if p and isinstance(p[-1], int) else 0), reverse=True
        ):
            _take_out(rest, path)
            taken_out.add(path)
    return None, found


_MAX_WAVES = 5


def _path_in(raw: object, location: Location) -> Location:
    """The part of a pydantic location that exists in the raw values, without its tags of unions."""
    path: list[int | str] = []
    for part in location:
        values = dict(enumerate(raw)) if isinstance(raw, list) else raw
        if isinstance(values, dict) and part in values:
            raw = values[part]
            path.append(part)
    return tuple(path)


def _follows(error: ErrorDetails, taken_out: set[Location]) -> bool:
    """Whether an error is there only because something wrong was taken out."""
    location = tuple(part for part in error["loc"] if not _is_union_tag(part))
    if error["type"] not in ("missing", "too_short"):
        return False
    return any(out[: len(location)] == location or location[: len(out)] == out for out in taken_out)


_PLACEHOLDERS: dict[str, object] = {
    "name": "shapes",
    "data": {"name": "shapes"},
    "protocols": ["roar"],
    "estimators": ["grad"],
    "drops": [0.5],
    "mean": [0.5],
    "std": [0.5],
}
"""For required values that are wrong: without them, what depends on the others would not be checked."""


def _take_out(raw: Any, path: Location) -> None:
    if not path:
        return
    for part in path[:-2]:
        raw = raw[part]
    inner, last = raw[path[-2]] if len(path) > 1 else raw, path[-1]
    if isinstance(inner, list) and isinstance(last, int):
        if last < len(inner):
            del inner[last]
        if not inner:
            _take_out(raw, path[-2:-1])
    elif isinstance(last, str) and last in _PLACEHOLDERS:
        inner[last] = copy.copy(_PLACEHOLDERS[last])
    else:
        inner.pop(last, None)


def _problem(error: ErrorDetails, text: str | None) -> Problem:
    location = [str(part) for part in error["loc"] if not _is_union_tag(part)]
    kind, message, context = error["type"], error["msg"], error.get("ctx", {})
    if kind == "extra_forbidden":
        message = f"there is no such key{nearest(location[-1], _fields_at(location[:-1]))}"
    elif kind == "literal_error":
        message = f"must be {context.get('expected')}, got {error['input']!r}"
        message += nearest(str(error["input"]), _quoted(str(context.get("expected")))).split("; allowed")[0]
    elif kind == "missing":
        message = "is missing"
    elif kind == "value_error":
        message = str(context.get("error", message))
        if not location and (named := _NAMED.match(message)):  # a check of several keys that names the one to change
            location, message = named[1].split("."), message[named.end() :]
    elif kind == "too_short":
        message = f"must have at least {context.get('min_length')} of them, got {error['input']!r}"
    elif kind in _BOUNDS:
        message = f"must be {_BOUNDS[kind]} {next(iter(context.values()))}, got {error['input']!r}"
    elif kind == "string_pattern_mismatch":
        message = f"must be letters, digits, '.', '_' and '-', got {error['input']!r}"
    else:
        message = f"{message[:1].lower()}{message[1:]}, got {error['input']!r}"
    return Problem(".".join(location), message, line_of(text, location))


_NAMED = re.compile(r"([a-z]+(?:\.\w+)+): ")
_BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "above",
    "less_than_equal": "at most",
    "less_than": "below",
}


def _is_union_tag(part: int | str) -> bool:
    return isinstance(part, str) and ("[" in part or part in ("int", "str"))


def _quoted(text: str) -> list[str]:
    return text.replace(" or ", ", ").replace("'", "").split(", ")


def _fields_at(location: list[str]) -> list[str]:
    model: type[BaseModel] | None = StudyConfig
    for part in location:
        if model is None:
            return []
        if part.isdigit():
            continue
        annotation = model.model_fields[part].annotation
        model = next(
            (a for a in [annotation, *get_args(annotation)] if isinstance(a, type) and issubclass(a, BaseModel)), None
        )
    return [] if model is None else list(model.model_fields)


def _resolve_paths(raw: dict[str, object], folder: Path | None) -> None:
    if folder is None:
        return
    data, model = raw.get("data"), raw.get("model")
    if isinstance(data, dict) and isinstance(data.get("root"), str):
        data["root"] = str((folder / Path(data["root"]).expanduser()).resolve())
    elif isinstance(data, dict) and (isinstance(data.get("train"), str) or isinstance(data.get("path"), str)):
        data["root"] = str(folder)
    if isinstance(model, dict) and isinstance(model.get("weights"), str):
        model["weights"] = str((folder / Path(model["weights"]).expanduser()).resolve())

    def absolute(text: object) -> object:
        if not isinstance(text, str) or not is_stored(text):
            return text
        path, squared = text.removeprefix(PREFIX).removesuffix("^2"), "^2" if text.endswith("^2") else ""
        return f"{PREFIX}{(folder / Path(path).expanduser()).resolve()}{squared}"

    blocks, entries = raw.get("grid"), raw.get("estimators")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict) and isinstance(block.get("estimators"), list):
            block["estimators"] = [absolute(text) for text in block["estimators"]]
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            entry["object"] = absolute(entry.get("object"))
