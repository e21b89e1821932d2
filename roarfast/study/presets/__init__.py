"""Configs to start from, as commented TOML files beside this one: the settings of the papers, and the demo."""

from __future__ import annotations

from importlib.resources import files

PRESETS: dict[str, str] = {
    entry.name.removesuffix(".toml"): entry.read_text(encoding="utf-8")
    for entry in sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    if entry.name.endswith(".toml")
}
"""Name → text."""
