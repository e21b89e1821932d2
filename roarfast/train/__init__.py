"""Models, recipes and the training loop."""

from roarfast.train.batch_norm import GhostBatchNorm2d, use_ghost_batch_norm
from roarfast.train.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from roarfast.train.evaluate import Evaluation, evaluate
from roarfast.train.loop import DivergenceError, train
from roarfast.train.models import MODELS, build_model, load_weights
from roarfast.train.recipe import PRESETS, Recipe, get_recipe
from roarfast.train.records import Removal, TrainResult

__all__ = [
    "CheckpointError",
    "DivergenceError",
    "Evaluation",
    "GhostBatchNorm2d",
    "MODELS",
    "PRESETS",
    "Recipe",
    "Removal",
    "TrainResult",
    "build_model",
    "evaluate",
    "get_recipe",
    "load_checkpoint",
    "load_weights",
    "save_checkpoint",
    "train",
    "use_ghost_batch_norm",
]
