"""The grid of a study: its cells, parts of it (`--only`), and shards."""

from __future__ import annotations

import itertools
import re
from dataclasses import fields

from roarfast.study import names
from roarfast.study.errors import StudyError, nearest
from roarfast.study.null_names import ALL_MODELS, is_model_null, model_null, model_number
from roarfast.study.protocols import find
from roarfast.study.records import NO_ESTIMATOR, Cell
from roarfast.study.schema import GridConfig, StudyConfig


def explained_trial(trial: int, null: str) -> int:
    """The trial whose base model makes the masks of a cell: its own, or another one for the nulls `model`, `model-2`, ….

    `model` is the trial before (the second for the first), `model-2` the first of the others, and so on: together all
    other trials. None of them depends on how many trials there are, so a study can get more of them.

    Example:
        >>> [[explained_trial(t, null) for null in ("swap", "model", "model-2", "model-3")] for t in range(4)]
        [[0, 1, 2, 3], [1, 0, 2, 3], [2, 1, 0, 3], [3, 2, 0, 1]]
    """
    if not is_model_null(null):
        return trial
    before, number = (trial - 1 if trial else 1), model_number(null)
    if number == 1:
        return before
    others = (other for other in itertools.count() if other not in (trial, before))
    return next(itertools.islice(others, number - 2, None))


def nulls_of(block: GridConfig, trials: int) -> list[str]:
    """The nulls of a block; `models` is every other trial's base model."""
    found: dict[str, None] = {}
    for null in block.null:
        every = [model_null(number) for number in range(1, trials)] if null == ALL_MODELS else [null]
        found |= dict.fromkeys(every)
    return list(found)


def grid_cells(config: StudyConfig) -> list[Cell]:
    """All cells of a study, each once: base models first, then block by block, trials innermost."""
    trials = max(block.trials or config.trials for block in config.grid)
    cells: dict[Cell, None] = {}
    for trial in range(trials):
        cells[Cell("base", NO_ESTIMATOR, "plain", "morf", 0.0, trial)] = None
    for block in config.grid:
        nulls = nulls_of(block, block.trials or config.trials)
        for protocol in block.protocols:
            for estimator in block.estimators_of(config.explain):
                for postprocess in block.postprocess:
                    if not block.has(protocol, estimator, postprocess):
                        continue
                    for order in block.orders_of(protocol):
                        for drop, null in itertools.product(block.drops_of(protocol), nulls):
                            for trial in range(block.trials or config.trials):
                                cells[Cell(protocol, estimator, postprocess, order, drop, trial, null)] = None
    return list(cells)


def filter_cells(cells: list[Cell], only: str) -> list[Cell]:
    """The cells that match `"estimator=sg-sq,drop=0.3"`; a field given twice means either value.

    Raises:
        StudyError: If a field does not exist or no cell has the value.
    """
    wanted: dict[str, list[str]] = {}
    names = tuple(field.name for field in fields(Cell))
    for part in _split_conditions(only):
        name, separator, value = (text.strip() for text in part.partition("="))
        if not separator or not value:
            raise StudyError(f"--only takes field=value pairs such as 'estimator=sg-sq,drop=0.3', got {part!r}")
        if name not in names:
            raise StudyError(f"--only: a cell has no field {name!r}{nearest(name, names)}")
        present = list(dict.fromkeys(_shown(getattr(cell, name)) for cell in cells if cell.protocol != "base"))
        value = value if value in present else _normal(name, value)
        if value not in present:
            raise StudyError(f"--only: no cell of this study has {name}={value}{nearest(value, present)}")
        wanted.setdefault(name, []).append(value)
    chosen = [c for c in cells if all(_shown(getattr(c, name)) in values for name, values in wanted.items())]
    if not chosen:
        raise StudyError(f"--only: no cell of this study matches {only!r} as a whole")
    return chosen


def shard_cells(cells: list[Cell], index: int, count: int) -> list[Cell]:
    """Part `index` (from 1) of `count`: neighbouring (trial, estimator) groups stay together, so that shards share little work.

    Groups are cut where the number of trainings splits evenly; base cells go with the shards that need them.
    """
    if not 1 <= index <= count:
        raise StudyError(f"--shard i/n needs 1 <= i <= n, got {index}/{count}")
    groups: dict[tuple[int, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.protocol != "base":
            groups.setdefault((cell.trial, cell.estimator, cell.postprocess), []).append(cell)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    weights = [sum(10 if find(c.protocol).trains else 1 for c in members) for _, members in ordered]
    total, before, mine = sum(weights), 0, []
    for (_, members), weight in zip(ordered, weights):
        if min(int((before + weight / 2) * count / total), count - 1) == index - 1:
            mine += members
        before += weight
    trials = {trial for cell in mine for trial in (cell.trial, explained_trial(cell.trial, cell.null))}
    return [c for c in cells if c.protocol == "base" and c.trial in trials] + mine


def parse_shard(text: str) -> tuple[int, int]:
    """`"2/4"` → (2, 4)."""
    left, separator, right = text.partition("/")
    if not separator or not left.strip().isdigit() or not right.strip().isdigit():
        raise StudyError(f"--shard takes i/n such as 2/4, got {text!r}")
    index, count = int(left), int(right)
    if not 1 <= index <= count:
        raise StudyError(f"--shard i/n needs 1 <= i <= n, got {text!r}")
    return index, count


def _split_conditions(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _normal(name: str, value: str) -> str:
    try:
        if name == "estimator":
            return names.canonical_estimator(value)
        if name == "postprocess":
            return names.canonical_postprocess(value)
        if name == "drop" and not re.fullmatch(r"\s*[0-9.]+(e-?[0-9]+)?\s*", value):
            raise ValueError("a rate is a number such as 0.3")
        return f"{float(value):g}" if name == "drop" else value
    except ValueError as error:
        raise StudyError(f"--only: {name}={value}: {error}") from None
