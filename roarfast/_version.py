__version__ = "0.1.0"

RESULT_VERSION = 1
"""Raised when a stored result would come out differently: part of every key, see docs/design/results.md."""
