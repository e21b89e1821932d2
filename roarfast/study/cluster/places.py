"""`Places`: where in a cluster the artefacts of a run are, and how large they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FOLDER = ""
"""Where the run folder is, as a place of artefacts; the other places are nodes with copies."""


class Places:
    """Which places have which artefacts, by their paths below the run folder.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, set[str]] = {}
        self._sizes: dict[str, int] = {}

    def of(self, path: str) -> set[str]:
        """The places that have an artefact; of one that no task of this run made, the run folder may."""
        if path not in self._held:
            there = any(self._folder.glob(path)) if "*" in path else (self._folder / path).exists()
            self._held[path] = {FOLDER} if there else set()
        return self._held[path]

    def size(self, path: str) -> int:
        """Bytes of an artefact in the run folder; 1 if only a copy has it, as nobody has asked how large that is."""
        if path not in self._sizes:
            if FOLDER not in self.of(path):
                return 1
            found = list(self._folder.glob(path)) if "*" in path else [self._folder / path]
            files = [file for one in found for file in (one.iterdir() if one.is_dir() else [one]) if file.is_file()]
            if not files:
                return 1
            self._sizes[path] = sum(file.stat().st_size for file in files)
        return self._sizes[path]

    def made(self, paths: Iterable[str], place: str) -> None:
        """Artefacts were made anew, so only this place has them."""
        for path in paths:
            self._held[path] = {place}
            self._sizes.pop(path, None)

    def came(self, paths: Iterable[str], place: str) -> None:
        """A place has artefacts, too."""
        for path in paths:
            self._held.setdefault(path, set()).add(place)

    def deleted(self, paths: Iterable[str], place: str) -> None:
        """A place has artefacts no more."""
        for path in paths:
            self._held.get(path, set()).discard(place)

    def lose(self, place: str) -> None:
        """A place is gone, with all that it had."""
        for places in self._held.values():
            places.discard(place)

    def forget(self, path: str) -> set[str]:
        """Knows nothing of an artefact any more; returns the places that had it."""
        return self._held.pop(path, set())
