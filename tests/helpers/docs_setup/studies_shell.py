"""What a reader of docs/studies.md has in the working folder: photos of two classes."""

from pathlib import Path

import numpy as np
from PIL import Image

_rng = np.random.default_rng(0)
for _label in ("cats", "dogs"):
    Path("photos", _label).mkdir(parents=True)
    for _i in range(12):
        Image.fromarray(_rng.integers(0, 256, (40, 40, 3), np.uint8)).save(Path("photos", _label, f"{_i}.png"))
