"""The sections of a config that say what is trained on what: `[data]`, `[model]` and `[train]`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from roarfast.data.load import SOURCES
from roarfast.study.outside import Section, code_of, importable


class DataConfig(Section):
    """Which images: a known set by `name`; or files, and then `name` is only what the report calls them.

    `path` is a folder, pack or npz file that holds both splits; `train` and `test` are one of each. Relative to `root`. A model
    that is trained already needs `test` alone. With `shuffle` the images of each split are dealt by `seed` before sizes cut them:
    the first of a file that is sorted by class are of few classes. `mean` and `std` per channel, in units of 0..1, normalise what
    models get; default those of the training images.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z_][A-Za-z0-9_.]*)?$")
    root: str | None = None
    path: str | None = None
    train: str | None = None
    test: str | None = None
    download: bool = False
    classes: tuple[str, ...] | None = Field(None, min_length=2)
    image_size: int | None = Field(None, ge=1, le=16384)
    layout: Literal["NHWC", "NCHW"] | None = None
    mean: tuple[float, ...] | None = Field(None, min_length=1)
    std: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(None, min_length=1)
    train_size: int | None = Field(None, ge=1, lt=2**31)
    test_size: int | None = Field(None, ge=1, lt=2**31)
    seed: int = Field(0, ge=0, lt=2**63)
    shuffle: bool = False
    session: str | None = None
    """Of images that were given in Python (`Study(…, data=…)`): where this process keeps them."""

    @model_validator(mode="after")
    def _one_source(self) -> DataConfig:
        if self.train is not None and self.test is None:
            raise ValueError("train and test come together: give both, or neither")
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std come together: give both, or neither")
        if self.path is not None and self.test is not None:
            raise ValueError("give path (which holds both splits), or train and test, not all three")
        if self.session is not None and (self.has_files or self.image_size is not None or self.layout is not None):
            raise ValueError("images given in Python are taken as they are: no path, train, test, image_size or layout")
        own = self.has_files or self.session is not None
        most = SOURCES[self.name].most if self.name in SOURCES and not own else None
        for size in (self.train_size, self.test_size):
            if most is not None and size is not None and size > most:
                raise ValueError(f"at most {most} {self.name} are generated, got {size}")
        return self

    @property
    def has_files(self) -> bool:
        """Whether the images come from files named here rather than from a known set."""
        return self.path is not None or self.test is not None

    @property
    def test_only(self) -> bool:
        """Whether there are no images to train on: those of the test split then give the mean colour and the classes."""
        return self.test is not None and self.train is None


class ModelConfig(Section):
    """Which network; `options` go to its factory.

    `weights` is a state dict to start from. With `trained` the network is done: its weights are those of the file, or those
    its factory loads, and no protocol may train. Keys of results hash the files of a factory of the user's; with `version`
    they hash that number instead.
    """

    name: str = "convnet"
    weights: str | None = None
    trained: bool = False
    options: dict[str, Any] = Field(default_factory=dict)
    version: int | None = Field(None, ge=1)


class TrainConfig(BaseModel):
    """A recipe by name; every other key overrides one of its fields.

    `function` trains instead of our loop: `f(model, batches, seed)` → state dict, see `roarfast.study.own_training`. The keys
    of results hash its files, or `version` if that is given.

    `start = "base"`: retrained models start from the weights of their trial's base model, as the code of Song et al. for
    CUB-200 does. They have then seen what was removed; the report says so. `"fresh"`: as base models do.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    recipe: str = "quick"
    function: Annotated[str, AfterValidator(importable)] | None = None
    version: int | None = Field(None, ge=1)
    start: Literal["fresh", "base"] = "fresh"

    def as_hashed(self) -> dict[str, object]:
        """What keys hash of a training function."""
        return {} if self.function is None else {"object": self.function} | code_of(self.function, self.version)

    @property
    def overrides(self) -> dict[str, object]:
        """The fields of the recipe that are set here."""
        return dict(self.__pydantic_extra__ or {})
