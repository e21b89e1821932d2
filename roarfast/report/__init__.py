"""The report of a study: `build(folder)` writes HTML, figures and CSV; `summary(results)` is ten lines of text."""

from roarfast.report.build import build, export, image_figures
from roarfast.report.summary import summary

__all__ = ["build", "export", "image_figures", "summary"]
