"""The numbers that Python passes for names are those of csrc/include/roarfast.h."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roarfast import _philox
from roarfast.ops import _arrays, _border, _fills, _selection

CSRC = Path(__file__).resolve().parents[2] / "csrc"
HEADER = re.sub(r"//[^\n]*", "", (CSRC / "include" / "roarfast.h").read_text())


def enum(name: str, prefix: str = "RF_") -> dict[str, int]:
    """The values of an enum of the header, by their names without prefix, in lower case."""
    body = re.search(rf"typedef enum {name} \{{(.*?)\}}", HEADER, re.DOTALL)
    assert body is not None, name
    return {key.lower(): int(value) for key, value in re.findall(rf"{prefix}(\w+) = (\d+)", body[1])}


def module(name: str):  # the package has functions of these names
    import importlib

    return importlib.import_module(f"roarfast.ops.{name}")


MIRRORS = {
    "rf_dtype": ("RF_", _arrays.DTYPE_CODES),
    "rf_layout": ("RF_", {name.lower(): code for name, code in _arrays.LAYOUT_CODES.items()}),
    "rf_border": ("RF_", _border.MODES),
    "rf_tv_kind": ("RF_TV_", module("total_variation")._KINDS),
    "rf_tv_norm": ("RF_TV_", module("total_variation")._NORMALIZE),
    "rf_rule": ("RF_", _selection.RULES),
    "rf_order": ("RF_", _selection.ORDERS),
    "rf_fill_kind": ("RF_FILL_", _fills.KINDS),
    "rf_impute_noise": ("RF_IMPUTE_", module("impute_linear").NOISE_KINDS),
    "rf_impute_status": (
        "RF_IMPUTE_",
        {
            "converged": module("impute_linear")._CONVERGED,
            "not_converged": module("impute_linear")._NOT_CONVERGED,
            "non_finite": module("impute_linear")._NON_FINITE,
        },
    ),
}


@pytest.mark.parametrize("name", MIRRORS)
def test_names_have_the_values_of_the_header(name: str) -> None:
    prefix, mirror = MIRRORS[name]
    assert mirror == enum(name, prefix)


def test_every_enum_of_the_header_is_compared() -> None:
    assert set(re.findall(r"typedef enum (\w+)", HEADER)) - {"rf_status"} == set(MIRRORS)


def test_most_rates() -> None:
    value = re.search(r"RF_MAX_RATES = (\d+)", HEADER)
    assert value is not None and int(value[1]) == _selection.MAX_RATES


def test_domains_of_random_numbers() -> None:
    text = (CSRC / "common" / "philox.h").read_text()
    domains = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper(): int(value)
        for name, value in re.findall(r"kDomain(\w+) = (\d+)", text)
    }
    assert domains == {name: getattr(_philox, name) for name in domains}
    assert len(set(domains.values())) == len(domains)
    mirror = module("philox_normal")._DOMAINS
    assert mirror == {name: domains[name.upper()] for name in mirror}


def test_philox_gives_the_published_numbers() -> None:
    """Known answers of Random123 (Salmon et al., 2011): counter and key of zeros, and of the digits of pi."""
    zeros = _philox.blocks(0, 0, [0], 0)[0]
    assert [f"{word:08x}" for word in zeros] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    # counter = (block low, domain << 16 | block high, sample low, sample high), key = seed
    block, domain = 0x243F6A88 | (0x08D3 << 32), 0x85A3
    pi = _philox.blocks(0x299F31D0_A4093822, 0x03707344_13198A2E, [block], domain)[0]
    assert [f"{word:08x}" for word in pi] == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]
