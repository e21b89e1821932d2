"""What a reader of docs/training.md has in the working folder: a script that trains as always."""

from pathlib import Path

Path("my_training.py").write_text(
    """
from roarfast.data import Dataset, load
from roarfast.train import get_recipe, train

whole = load("shapes", "train")
few = Dataset(whole.images[:64], whole.labels[:64], whole.class_names)
recipe = get_recipe("quick", epochs=1, batch_size=32)
train("convnet", few, few, recipe=recipe, seed=0, checkpoint="run.pt")
"""
)
