"""What a reader of docs/data.md has in the working folder: a folder of photos, one subfolder per split and class."""

from pathlib import Path

import numpy as np
from PIL import Image

_rng = np.random.default_rng(0)
for _split in ("train", "val"):
    for _label in ("n01440764", "n01443537"):
        _folder = Path("imagenet", _split, _label)
        _folder.mkdir(parents=True)
        for _i in range(2):
            Image.fromarray(_rng.integers(0, 256, (300, 400, 3), np.uint8)).save(_folder / f"{_i}.jpeg")
