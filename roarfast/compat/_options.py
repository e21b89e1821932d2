"""How a drop-in behaves: the options of `patch`, `enable` and the import swaps."""

from __future__ import annotations

from dataclasses import dataclass

from roarfast.ops import _check as check

MODES = ("faithful", "fixed")
NOISES = ("peer", "philox")


class CompatWarning(UserWarning):
    """A peer of an unknown version, or a number of a peer that is known to be wrong and was kept."""


@dataclass(frozen=True)
class Options:
    """How a drop-in behaves.

    Attributes:
        mode: `"faithful"` gives the installed peer's numbers, also where they are wrong (with one `CompatWarning`);
            `"fixed"` gives the evident ones. docs/compat lists the differences, peer by peer.
        noise: `"peer"` draws noise as the peer does, in its order and from its random generator, which is left in the
            state that the peer leaves it in; `"philox"` draws from ours: faster, and of other values.
        tol: Largest error of an imputed value, as a fraction of the range of the known pixels; None: 1e-5, and 1e-8
            for float64 images.
        seed: For `noise="philox"`.
    """

    mode: str = "faithful"
    noise: str = "peer"
    tol: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check.one_of("mode", self.mode, MODES)
        check.one_of("noise", self.noise, NOISES)
        check.integer("seed", self.seed, 0, 2**63 - 1)
        if self.tol is not None:
            check.number("tol", self.tol, 1e-10, 0.1)

    @property
    def fixed(self) -> bool:
        """Whether faults of the peer are mended."""
        return self.mode == "fixed"

    def tol_for(self, dtype: str) -> float:
        """The tolerance for images of this dtype."""
        if self.tol is not None:
            return self.tol
        return 1e-8 if dtype == "float64" else 1e-5
