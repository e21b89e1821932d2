"""`Identity`: everything besides a cell that defines its result, and the keys made of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roarfast._objects import is_reference
from roarfast._version import RESULT_VERSION
from roarfast.data import Dataset
from roarfast.explain.estimators import known
from roarfast.explain.hashing import file_checksum, model_hash
from roarfast.explain.names import split_name
from roarfast.study.errors import StudyError
from roarfast.study.keys import digest
from roarfast.study.migrations import hashed_removal
from roarfast.study.outside import code_of
from roarfast.study.protocols import find
from roarfast.study.records import Cell
from roarfast.study.schema import MODEL_FREE, StudyConfig
from roarfast.study.stored_maps import is_stored
from roarfast.study.usercode import source_files, source_of
from roarfast.train import build_model


@dataclass(frozen=True)
class Identity:
    """Everything outside a cell that defines its result.

    Attributes:
        data: Fingerprint of the images and labels, and their number.
        model: Name, options and hash of the initial weights file.
        recipe: All fields of the resolved recipe.
        explain: All options of the estimators.
        removal: Rule, fill and imputation.
        seed: Of the study.
        outside: Estimators and post-processings that are not ours, by name.
        numerics: What decides the last bits: kind of device, threads per worker, processes per training.
        protocols: Files of protocols that are not ours.
        start: What retrained models start from; `"fresh"`, which keys do not mention, or `"base"`.
    """

    data: dict[str, Any]
    model: dict[str, object]
    recipe: dict[str, object]
    explain: dict[str, object]
    removal: dict[str, Any]
    seed: int
    numerics: dict[str, object]
    outside: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    protocols: dict[str, dict[str, object]] = field(default_factory=dict)
    start: str = "fresh"

    def base(self, trial: int) -> dict[str, object]:
        """What defines the base model of a trial."""
        return {
            "version": RESULT_VERSION,
            "data": self.data,
            "model": self.model,
            "recipe": self.recipe,
            "seed": self.seed,
            "trial": trial,
            "numerics": self.numerics,
        }

    def maps(self, estimator: str, trial: int) -> dict[str, object]:
        """What defines the maps of an estimator; baselines and oracles do not depend on the model."""
        if estimator in MODEL_FREE:
            found = {"version": RESULT_VERSION, "data": self.data, "seed": self.seed, "trial": trial, "of": estimator}
            features = estimator == "rand" and str(self.explain.get("aggregate", "")).startswith("none")
            return found | _only("features", features)
        base = split_name(estimator).base
        foreign = self.outside.get("estimators", {}).get(base)
        ours = None if foreign or base not in known() or known()[base].version == 1 else known()[base].version
        maps = {"base": self.base(trial), "explain": self.explain, "of": estimator}
        return maps | _only("outside", foreign) | _only("estimator_version", ours)

    def codes(self, estimator: str, postprocess: str, trial: int, rule: str = "") -> dict[str, object]:
        """What defines which pixels go; `rule` where it is not that of the study."""
        known = self.outside.get("postprocessings", {})
        foreign = {step: known[step] for step in postprocess.split("|") if step in known}
        codes = {"maps": self.maps(estimator, trial), "k": postprocess, "rule": rule or self.removal["rule"]}
        return codes | _only("outside", foreign)

    def cell(self, cell: Cell) -> dict[str, object]:
        """What defines the result of a cell, as a JSON value."""
        base = {"protocol": cell.protocol} | self.base(cell.trial)
        if cell.protocol == "base":
            return base
        protocol = find(cell.protocol)
        used = {name: self.removal[name] for name in protocol.removal}
        if protocol.version != 1:
            used["protocol_version"] = protocol.version
        used |= _only("source", self.protocols.get(cell.protocol))
        used |= _only("start", self.start if protocol.trains and self.start != "fresh" else None)
        return (
            base
            | {
                "codes": self.codes(cell.estimator, cell.postprocess, cell.trial, protocol.rule),
                "order": cell.order,
                "drop": cell.drop,
            }
            | used
            | (
                {"null": cell.null} if cell.null != "own" else {}
            )  # of `model`, the trial says which: `grid.explained_trial`
        )

    def key(self, cell: Cell) -> str:
        """The key of a cell in the store."""
        return digest(self.cell(cell))


def _only(name: str, value: object) -> dict[str, object]:
    """An entry of a definition that is absent where there is nothing to say, so that older keys stay."""
    return {name: value} if value else {}


def _removal(config: StudyConfig) -> dict[str, object]:
    """The section `[removal]`; a fill from outside with its files."""
    removal = hashed_removal(config.removal.model_dump(mode="json"))
    fill = removal.get("fill")
    code = code_of(fill, None) if isinstance(fill, str) else {}
    return removal | ({"fill": [fill, code]} if code else {})


def identify(config: StudyConfig, train: Dataset, test: Dataset, device: str) -> Identity:
    """Everything that defines results besides the cells."""
    model = config.model.model_dump(
        mode="json", exclude={"version"} if config.model.trained else {"trained", "version"}
    )
    model |= code_of(config.model.name, config.model.version)
    if config.model.trained and config.model.weights is None:  # the factory loads them: only they tell what they are
        model["weights"] = model_hash(
            build_model(config.model.name, train.num_classes, train.image_shape[2], seed=0, **config.model.options)
        )
    elif config.model.weights is not None:
        path = Path(config.model.weights)
        if not path.is_file():
            raise StudyError(f"model.weights: {path} does not exist")
        model["weights"] = file_checksum(path)
    explain = config.explain.model_dump(mode="json")
    return Identity(
        data={
            "train": train.data_hash,
            "test": test.data_hash,
            "images": [len(train), len(test)],
            "shape": list(train.image_shape),
        }
        | _only("normalised by", [config.data.mean, config.data.std] if config.data.mean else None),
        model=model,
        recipe=config.resolved_recipe().as_hashed() | _only("function", config.train.as_hashed()),
        explain=explain | {"options": config.explain_options().as_dict()},
        removal=_removal(config),
        seed=config.seed,
        numerics={"device": device.split(":")[0], "threads": config.run.threads if device == "cpu" else 0}
        | _only("processes", config.run.gpus_per_training if config.run.gpus_per_training > 1 else 0),
        outside=config.outside(),
        protocols={name: code_of(name, None) for block in config.grid for name in block.protocols},
        start=config.train.start,
    )


def user_code(config: StudyConfig) -> dict[str, str]:
    """Every file of the user's that results depend on: module → hash. A run keeps it, to say what changed."""
    found: dict[str, str] = {}
    for reference in _references(config):
        found |= source_of(reference)
    return found


def module_files(config: StudyConfig) -> dict[str, str]:
    """The same files, for machines that do not have them: relative path → text."""
    found: dict[str, str] = {}
    for reference in [*_references(config), *([config.data.name] if is_reference(config.data.name) else [])]:
        found |= source_files(reference)
    return found


def _references(config: StudyConfig) -> list[str]:
    names = [config.model.name, *(name for block in config.grid for name in block.protocols)]
    names += [entry.object for entry in (*config.estimators, *config.postprocessings)]
    names += [name for name in (config.removal.fill, config.train.function) if isinstance(name, str)]
    return [name for name in names if is_reference(name) and not is_stored(name)]
