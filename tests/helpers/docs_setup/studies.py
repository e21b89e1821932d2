"""What a reader of docs/studies.md has in the working folder: a config."""

from pathlib import Path

Path("study.toml").write_text(
    """
name = "mine"
[data]
name = "shapes"
classes = ["disk", "ring"]
train_size = 60
test_size = 20
[model]
options = { widths = [4, 4, 8, 8] }
[train]
epochs = 1
batch_size = 20
[[grid]]
protocols = ["roar"]
estimators = ["grad^2"]
drops = [0.3]
[run]
examples = 0
device = "cpu"
"""
)
