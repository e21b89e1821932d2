"""Numbers as text, the same on the page, in figures, in files and in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(value: float, digits: int = 1) -> str:
    """A fraction as percent without the sign, or a dash."""
    if math.isnan(value):
        return "–"
    return f"{100 * value:.{digits}f}".replace("-", "−" if abs(value) >= 0.5 / 10 ** (digits + 2) else "")


def number(value: float, digits: int = 3) -> str:
    """A number with a few significant digits, or a dash for NaN."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.{digits}g}".replace("-", "−")
    return str(value)


def signed(difference: float, digits: int = 1) -> str:
    """Percentage points with a sign: "+1.2", "−0.3", "0.0" when it rounds to zero, a dash for NaN."""
    if math.isnan(difference):
        return "–"
    text = f"{100 * difference:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def bounds(low: float, high: float) -> str:
    """An interval of differences in points: "−1.2 to +0.3"; a dash if there is none."""
    return "–" if math.isnan(low) else f"{signed(low)} to {signed(high)}"


def p_text(p: float) -> str:
    """A p-value in words: "p = 0.03", "p < 0.001", "no p"."""
    if math.isnan(p):
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.1 else f"p = {p:.2f}"


def duration(seconds: float) -> str:
    """As in "1 h 42 min" or "48 s"."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 or seconds == 0 else f"{seconds:.2f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def rates(drops: Sequence[float]) -> str:
    """Drop rates, separated by commas."""
    return ", ".join(f"{t:g}" for t in drops)


def counted(count: int, noun: str) -> str:
    """As in "1 trial" or "1,200 images"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Names separated by commas, at most so many of them."""
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
