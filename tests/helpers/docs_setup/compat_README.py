"""What a reader of docs/compat/README.md brings: a project with a vendored copy of road_evaluation's class."""

from helpers import vendored_imputer as my_project

__all__ = ["my_project"]
