"""The config of a study: its sections, and what each value may be."""

from __future__ import annotations

import copy
import itertools
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from roarfast.explain.aggregate import Aggregation
from roarfast.explain.options import Options
from roarfast.explain.oracles import ORACLES
from roarfast.explain.record import Estimator as EstimatorRecord
from roarfast.metrics.nulls import NULLS
from roarfast.study import fills, names
from roarfast.study.errors import nearest
from roarfast.study.null_names import ALL_MODELS, is_model_null, model_number
from roarfast.study.outside import OutsideConfig, Section, code_of, name_references, record_of
from roarfast.study.protocols import find
from roarfast.study.schema_training import DataConfig, ModelConfig, TrainConfig
from roarfast.train.recipe import Recipe, get_recipe

T = TypeVar("T")
Order = Literal["morf", "lerf"]


def _null(name: str) -> str:
    known = ("own", *NULLS, "model", ALL_MODELS)
    if name not in known and not is_model_null(name):
        raise ValueError(
            f"must be one of {', '.join(known)}, or model-2, model-3, …; got {name!r}{nearest(name, known)}"
        )
    return name


Null = Annotated[str, AfterValidator(_null)]
"""Whose masks are removed: `own`, one of `roarfast.metrics.NULLS`, or those of other trials' base models."""
BASELINES = ("rand", "block")
"""Estimators that look at neither image nor model; post-processing them is not part of the papers' grids."""
MODEL_FREE = (*BASELINES, *ORACLES)
"""Masks that are made without maps of a model: of the baselines, and of the oracles, which see the label instead."""


def _drop(value: float) -> float:
    if not 0 <= value <= 1:
        hint = f": rates are fractions, so {value:g} % is {value / 100:g}" if 1 < value <= 100 else ""
        raise ValueError(f"must be in [0, 1], got {value:g}{hint}")
    return float(value)


def _protocol(name: str) -> str:
    find(name)
    return name


ProtocolName = Annotated[str, AfterValidator(_protocol)]


def _estimator(text: str, info: ValidationInfo) -> str:
    objects = (info.context or {}).get("estimators", {})
    return names.canonical_estimator(text, {name: record_of(reference) for name, reference in objects.items()})


def _postprocess(text: str, info: ValidationInfo) -> str:
    return names.canonical_postprocess(text, (info.context or {}).get("postprocessings", ()))


def _aggregate(text: str) -> str:
    found = Aggregation.parse(text)
    if found.reduce == "none":
        raise ValueError(names.KEPT_APART)
    return str(found)


def _fill(value: str | tuple[int, ...]) -> str | tuple[int, ...]:
    fills.find(value)
    return value


Estimator = Annotated[str, AfterValidator(_estimator)]
Postprocess = Annotated[str, AfterValidator(_postprocess)]
Drop = Annotated[float, AfterValidator(_drop)]


MAX_RATES = 254
MAX_TRIALS = 10_000


class ExplainConfig(Section):
    """How maps are computed."""

    conventions: Literal["standard", "paper"] = "standard"
    aggregate: str = "mean(abs)"
    target: Literal["predicted", "label"] = "predicted"
    batch_size: int = Field(256, ge=1)
    dtype: Literal["float32", "float16"] = "float32"
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def canonical_aggregate(self) -> str:
        """As `Aggregation` spells it; what is wrong with it is told elsewhere."""
        try:
            return str(Aggregation.parse(self.aggregate))
        except ValueError:
            return self.aggregate

    @property
    def ranks_features(self) -> bool:
        """Whether a pixel's channels are ranked, and removed, apart."""
        return self.canonical_aggregate.startswith("none(")

    def ranks_features_of(self, estimator: str) -> bool:
        """The same of one estimator: not of rectangles and oracles, nor of one with an aggregation of its own."""
        return self.ranks_features and "@" not in estimator and (estimator == "rand" or estimator not in MODEL_FREE)


class RemovalConfig(Section):
    """Which pixels count as the top t, and what takes their place."""

    rule: Literal["exact", "percentile", "strict"] = "exact"
    fill: Annotated[str | tuple[Annotated[int, Field(ge=0, le=255)], ...], AfterValidator(_fill)] = "dataset_mean"
    noise: float = Field(0.01, ge=0)
    tolerance: float = Field(1e-5, gt=0, lt=1)


class GridConfig(Section):
    """A block of cells: every combination of the lists. A study is the union of its blocks."""

    protocols: list[ProtocolName] = Field(min_length=1)
    estimators: list[Estimator] = Field(min_length=1)
    postprocess: list[Postprocess] = Field(["plain"], min_length=1)
    drops: list[Drop] = Field(default_factory=list)
    orders: list[Order] | None = Field(None, min_length=1)
    trials: int | None = Field(None, ge=1, le=MAX_TRIALS)
    aggregate: Annotated[str, AfterValidator(_aggregate)] | None = None
    null: list[Null] = Field(["own"], min_length=1)

    @field_validator("protocols", "estimators", "postprocess", "drops", "orders", "null")
    @classmethod
    def _distinct(cls, values: list[T] | None) -> list[T] | None:
        for i, value in enumerate(values or []):
            if value in (values or [])[:i]:
                raise ValueError(f"{value!r} is there twice")
        return values

    @model_validator(mode="after")
    def _possible(self) -> GridConfig:
        if not any(self.orders_of(protocol) for protocol in self.protocols):
            names = " and ".join(self.protocols)
            raise ValueError(f"{names} cannot run in the orders {self.orders}, so this block has no cells")
        for name in self.protocols:
            if not self.drops_of(name):
                raise ValueError(f"drops is missing: {name} has no rates of its own")
        if self.estimators == ["block"] and all(find(name).values for name in self.protocols):
            raise ValueError(f"{' and '.join(self.protocols)} need the values of maps, and block has none")
        if "plain" not in self.postprocess and all(e in MODEL_FREE for e in self.estimators):
            names = " and ".join(self.estimators)
            raise ValueError(f"{names} take no post-processing, so this block has no cells: add 'plain'")
        return self

    def estimators_of(self, explain: ExplainConfig) -> list[str]:
        """Estimators as cells name them: with the `aggregate` of this block, where it is not that of the study."""
        if self.aggregate is None or self.aggregate == explain.canonical_aggregate:
            return self.estimators
        return [e if e in MODEL_FREE or "@" in e else f"{e}@{self.aggregate}" for e in self.estimators]

    def drops_of(self, protocol: str) -> list[float]:
        """The rates a protocol runs at: those of `drops`, or its own."""
        return sorted(self.drops) or list(find(protocol).rates)

    def has(self, protocol: str, estimator: str, postprocess: str) -> bool:
        """Whether a combination makes sense: baselines and oracles are not post-processed, and `block` has no values."""
        return not (estimator in MODEL_FREE and postprocess != "plain") and not (
            estimator == "block" and find(protocol).values
        )

    def orders_of(self, protocol: str) -> list[str]:
        """The orders a protocol runs in: those of `orders` that it allows, or its own."""
        record = find(protocol)
        if len(record.allowed_orders) == 1 and self.orders != ["lerf"]:
            return list(record.allowed_orders)
        return [order for order in self.orders or record.orders if order in record.allowed_orders]


class RunConfig(Section):
    """How the work is done; of these only `threads` and the kind of device can change results (in the last bits).

    `ray` is the address of a cluster, or `"auto"`. There, `memory` is what a worker takes, in GB; `artefacts` says whether models,
    maps and codes lie in a folder that all nodes see (`"shared"`), travel between them (`"transfer"`), or whichever each node can
    (`"auto"`); `scratch` is where nodes keep their copies. With `gpus_per_training` above 1 a training is spread over so many GPUs of
    a node (on clusters without any: processes), which changes its batch normalisation, so results too.
    """

    device: str = "auto"
    workers: int | Literal["auto"] = "auto"
    threads: int = Field(1, ge=1, le=1024)
    examples: int = Field(6, ge=0, le=64)
    keep_models: bool = False
    keep_codes: bool = False
    ray: str | None = Field(None, min_length=1)
    memory: float | None = Field(None, gt=0)
    artefacts: Literal["auto", "shared", "transfer"] = "auto"
    scratch: str | None = Field(None, min_length=1)
    gpus_per_training: int = Field(1, ge=1, le=64)

    @field_validator("workers")
    @classmethod
    def _positive(cls, value: int | str) -> int | str:
        if isinstance(value, int) and value < 1:
            raise ValueError(f"must be 'auto' or at least 1, got {value}")
        if isinstance(value, int) and value > 1024:
            raise ValueError(f"must be 'auto' or at most 1024, got {value}")
        return value


class StudyConfig(Section):
    """A whole study.

    Example:
        >>> config = StudyConfig.model_validate({
        ...     "name": "tiny", "data": {"name": "shapes"},
        ...     "grid": [{"protocols": ["roar"], "estimators": ["Grad²"], "drops": [0.3]}]})
        >>> config.grid[0].estimators
        ['grad^2']
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    seed: int = Field(0, ge=0, lt=2**31)
    trials: int = Field(1, ge=1, le=MAX_TRIALS)
    data: DataConfig
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    explain: ExplainConfig = ExplainConfig()
    removal: RemovalConfig = RemovalConfig()
    estimators: list[OutsideConfig] = Field(default_factory=list)
    postprocessings: list[OutsideConfig] = Field(default_factory=list)
    grid: list[GridConfig] = Field(min_length=1)
    run: RunConfig = RunConfig()

    @classmethod
    def of(cls, raw: dict[str, object]) -> StudyConfig:
        """Checks a parsed config; objects named in the grid itself become entries of `estimators`, `postprocessings`."""
        raw = copy.deepcopy(raw)
        name_references(raw)
        names = {
            kind: {
                e["name"]: e.get("object")
                for e in (entries if isinstance(entries, list | tuple) else ())
                if isinstance(e, dict) and isinstance(e.get("name"), str)
            }
            for kind, entries in ((kind, raw.get(kind)) for kind in ("estimators", "postprocessings"))
        }
        return cls.model_validate(raw, context=names)

    @field_validator("estimators", "postprocessings")
    @classmethod
    def _distinct_names(cls, values: list[OutsideConfig]) -> list[OutsideConfig]:
        names = [value.name for value in values]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice!r} is there twice: give each a name of its own")
        return values

    def own_estimators(self) -> dict[str, EstimatorRecord]:
        """The estimators from outside by name."""
        return {entry.name: entry.estimator() for entry in self.estimators}

    def outside(self) -> dict[str, dict[str, dict[str, object]]]:
        """What keys hash of estimators and post-processings from outside: name → object, options, and version or files."""
        return {
            kind: {
                e.name: {"object": e.object, "options": e.options} | code_of(e.object, e.version)
                for e in getattr(self, kind)
            }
            for kind in ("estimators", "postprocessings")
        }

    @model_validator(mode="after")
    def _nothing_trained(self) -> StudyConfig:
        if self.data.test_only and not self.model.trained:
            raise ValueError(
                "data.train is missing: train and test come together, unless model.trained = true says that nothing is trained"
            )
        for i, block in enumerate(self.grid if self.model.trained else ()):
            if training := [name for name in block.protocols if find(name).trains]:
                raise ValueError(
                    f"grid.{i}.protocols: {training[0]!r} trains a model per cell, but model.trained = true says that the "
                    "model is done: leave out one of them"
                )
            if other := [null for null in block.null if null == ALL_MODELS or is_model_null(null)]:
                raise ValueError(
                    f"grid.{i}.null: {other[0]!r} removes the masks of another trial's base model, and with model.trained = "
                    "true all trials have the same one"
                )
        return self

    @model_validator(mode="after")
    def _features_or_pixels(self) -> StudyConfig:
        for i, block in enumerate(self.grid if self.explain.ranks_features else ()):
            ranked = [e for e in block.estimators_of(self.explain) if self.explain.ranks_features_of(e)]
            if ranked and (whole := [name for name in block.protocols if not find(name).features]):
                raise ValueError(
                    f"grid.{i}.protocols: {whole[0]!r} removes whole pixels, but explain.aggregate = {self.explain.aggregate!r} "
                    f"ranks the channels of a pixel apart, those of {ranked[0]!r} too. Give this block an aggregate of its own, such as "
                    "'mean(abs)', without rand"
                )
        return self

    @model_validator(mode="after")
    def _other_models(self) -> StudyConfig:
        for i, block in enumerate(self.grid):
            trials = block.trials or self.trials
            for null in block.null:
                needed = 2 if null == ALL_MODELS else model_number(null) + 1 if is_model_null(null) else 1
                if trials < needed:
                    raise ValueError(
                        f"grid.{i}.null: {null!r} removes the masks of another trial's base model, so it needs trials = "
                        f"{needed} or more, got {trials}"
                    )
        return self

    @model_validator(mode="after")
    def _one_byte_per_rate(self) -> StudyConfig:
        rates: dict[tuple[str, str], set[float]] = {}
        for block in self.grid:
            for estimator, name in itertools.product(block.estimators_of(self.explain), block.protocols):
                rule = find(name).rule or self.removal.rule
                rates.setdefault((estimator, rule), set()).update(block.drops_of(name))
        for (estimator, _), drops in rates.items():
            if len(drops) > MAX_RATES:
                raise ValueError(
                    f"{estimator!r} has {len(drops)} drop rates, and at most {MAX_RATES} fit the byte that a pixel has"
                )
        return self

    def resolved_recipe(self) -> Recipe:
        """The recipe with the fields that `[train]` sets."""
        return get_recipe(self.train.recipe, self.model.name, **self.train.overrides)

    def explain_options(self) -> Options:
        """The options of the estimators."""
        make = Options.paper if self.explain.conventions == "paper" else Options
        return make(**self.explain.options)

    def with_mask_only(self) -> StudyConfig:
        """The same study with a net trained on masks alone beside every `roar` cell: do the masks give the class away?"""
        grid = [
            block.model_copy(update={"protocols": [*block.protocols, "mask-only"]})
            if "roar" in block.protocols and "mask-only" not in block.protocols
            else block
            for block in self.grid
        ]
        return self.model_copy(update={"grid": grid})
