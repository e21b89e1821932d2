"""Names that configs used before: an error that says the new one, except in the `study.toml` of a run folder.

Keys of cells go on hashing the old spelling (`hashed_removal`, `Recipe.as_hashed`, `Options.as_dict`), so that results of
old run folders are found under the new names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_FILLS = {"mean": "dataset_mean", "image-mean": "image_mean"}


@dataclass(frozen=True)
class Renamed:
    """One old name found in a config: where (key path), what stood there, and what to write."""

    path: tuple[str, ...]
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old} is called {self.new} now"


def translate(raw: dict[str, Any]) -> list[Renamed]:
    """Replaces old names in a parsed config, in place; returns what it found."""
    found = []
    removal, train, explain = (_table(raw, name) for name in ("removal", "train", "explain"))
    options = _table(explain, "options")
    for table, path in ((removal, ("removal", "fill")), (options, ("explain", "options", "ig_baseline"))):
        value = table.get(path[-1])
        if isinstance(value, str) and value in _FILLS and (table is removal or value == "image-mean"):
            table[path[-1]] = _FILLS[value]
            found.append(Renamed(path, f'{path[-1]} = "{value}"', f'"{_FILLS[value]}"'))
    if isinstance(value := train.get("channels_last"), bool):
        del train["channels_last"]
        train["layout"] = "NHWC" if value else "NCHW"
        found.append(
            Renamed(
                ("train", "channels_last"), f"channels_last = {str(value).lower()}", f'layout = "{train["layout"]}"'
            )
        )
    return found


def hashed_removal(removal: dict[str, Any]) -> dict[str, Any]:
    """The `[removal]` section as keys hash it: fills by their first names."""
    first = {new: old for old, new in _FILLS.items()}
    fill = removal["fill"]
    return removal | {"fill": first.get(fill, fill) if isinstance(fill, str) else fill}


def _table(raw: dict[str, Any], name: str) -> dict[str, Any]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}
