"""Which passes over the model a set of estimators needs: each distinct pass once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roarfast.explain.estimators import find
from roarfast.explain.names import Name
from roarfast.explain.options import Options
from roarfast.explain.record import Estimator


@dataclass(frozen=True)
class Pass:
    """Gradients at one family of points.

    Attributes:
        noisy: At noisy copies of the image rather than at the image.
        path: At the steps of the path from the baseline (integrated gradients).
        guided: With the guided-backprop rule at ReLUs.
        bases: The base maps that come out of it.
    """

    noisy: bool
    path: bool
    guided: bool
    bases: tuple[str, ...]

    @property
    def label(self) -> str:
        """What it is, in two or three words."""
        where = "noisy" if self.noisy else "clean"
        return where + (" path" if self.path else "") + (" guided" if self.guided else "")

    def points(self, options: Options) -> int:
        """Points per image at which the model is evaluated."""
        return (options.noise_samples if self.noisy else 1) * (options.ig_steps if self.path else 1)


class Plan:
    """The passes that serve all of the estimators.

    `grad`, `gi` and `gc` come from one backward pass; `sg`, `sg-sq` and `vg` of a base, squared or not, from one set
    of noisy gradients.

    Args:
        names: The estimators.
        options: Their parameters.
        predict: Whether the predicted class is the target, which takes a forward pass if no clean pass is there.
        own: The user's estimators by name.

    Example:
        >>> from roarfast.explain.names import PAPER, parse_all
        >>> Plan(parse_all(PAPER), Options(), predict=True).forwards
        41
    """

    def __init__(
        self, names: Sequence[Name], options: Options, predict: bool, own: Mapping[str, Estimator] | None = None
    ) -> None:
        self.names = tuple(names)
        self.options = options
        self.records = {name.base: find(name.base, own) for name in self.names}
        groups: dict[tuple[bool, bool, bool], set[str]] = {}
        for name in self.names:
            record = self.records[name.base]
            if record.of_pass is not None:
                key = (name.ensemble is not None, record.path, record.guided)
                groups.setdefault(key, set()).add(name.base)
        self.passes = tuple(Pass(*key, tuple(sorted(groups[key]))) for key in sorted(groups))
        self.model_free = tuple(name for name in self.names if self.records[name.base].of_image is not None)
        self.alone = tuple(name for name in self.names if self.records[name.base].function is not None)
        needs_target = bool(self.passes or self.alone)
        # The forward pass of a clean pass, guided or not, already gives the predicted class.
        self.predict_alone = predict and needs_target and not any(not p.noisy and not p.path for p in self.passes)

    @property
    def forwards(self) -> int:
        """Forward passes per image; those inside estimators with passes of their own are not counted."""
        return sum(p.points(self.options) for p in self.passes) + self.predict_alone

    @property
    def backwards(self) -> int:
        """Backward passes per image; those inside estimators with passes of their own are not counted."""
        return sum(p.points(self.options) for p in self.passes)

    @property
    def backwards_one_by_one(self) -> int:
        """Backward passes per image if every estimator were computed alone."""
        return sum(Plan([name], self.options, False, self.records).backwards for name in self.names)

    def second_moment(self, base: str) -> bool:
        """Whether an ensemble over `base` needs more than the mean."""
        return any(name.base == base and name.ensemble in ("sg-sq", "vg") for name in self.names)

    def served(self, p: Pass) -> tuple[Name, ...]:
        """The estimators that a pass serves."""
        return tuple(n for n in self.names if n.base in p.bases and (n.ensemble is not None) == p.noisy)

    def accumulators(self) -> int:
        """Tensors of the size of a batch that live beside the model's own.

        These are the inputs of a pass, its gradient, the maps and moments of every base, and the temporaries of an
        update.
        """
        maps = sum(len(p.bases) for p in self.passes if not p.noisy)
        moments = sum(1 + self.second_moment(base) for p in self.passes if p.noisy for base in p.bases)
        return maps + moments + len(self.names) + 8

    def extra_bytes(self, batch_size: int, shape: Sequence[int], itemsize: int = 4) -> int:
        """Bound on the memory beside model, images and result, and beyond one gradient pass over `batch_size` rows.

        Args:
            batch_size: Rows that go through the model at a time.
            shape: `(C, H, W)` of an image.
            itemsize: Bytes per value.
        """
        size = itemsize * batch_size
        for extent in shape:
            size *= extent
        return self.accumulators() * size

    def describe(self) -> str:
        """A table of the passes, with counts per image."""
        count = len(self.passes) + self.predict_alone
        head = (
            f"{len(self.names)} estimator{'s' * (len(self.names) != 1)}, {count} pass{'es' * (count != 1)}: "
            f"{self.forwards} forward and {self.backwards} backward per image"
        )
        alone = self.backwards_one_by_one
        if alone > self.backwards:
            head += f" (one estimator at a time: {alone} backward)"
        lines = [head]

        def add(label: str, forward: int, backward: int, names: str) -> None:
            cost = f"{forward:4d} forward {backward:4d} backward" if forward else " " * 26
            lines.append(f"  {label:<18}{cost}  {names}")

        if self.predict_alone:
            add("predict", 1, 0, "the target class")
        for p in self.passes:
            n = p.points(self.options)
            add(p.label, n, n, " ".join(map(str, self.served(p))))
        if self.model_free:
            add("without the model", 0, 0, " ".join(map(str, self.model_free)))
        if self.alone:
            add("passes of its own", 0, 0, " ".join(map(str, self.alone)))
        return "\n".join(lines)
