"""Claims of the papers that have a known answer, checked without data and without training: `roarfast validate`.

One file per group; importing it registers its checks. To add a claim, decorate a function with `check`.
"""

from roarfast.validate import flipping, localisation, soundness, theorems, votes  # noqa: F401  (registers their checks)
from roarfast.validate.check import CHECKS, Check, Outcome, Result, UnknownCheck, check, run, select

__all__ = ["CHECKS", "Check", "Outcome", "Result", "UnknownCheck", "check", "run", "select"]
