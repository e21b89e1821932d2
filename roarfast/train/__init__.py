"""Models, recipes and the training loop."""

from roarfast.train.models import MODELS, build_model, load_weights

__all__ = ["MODELS", "build_model", "load_weights"]
