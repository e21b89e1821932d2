"""What a reader of docs/studies.md has in the working folder: photos of two classes, in two splits."""

from pathlib import Path

import numpy as np
from PIL import Image

_rng = np.random.default_rng(0)
for _split, _count in (("train", 12), ("test", 6)):
    for _label in ("cats", "dogs"):
        Path("photos", _split, _label).mkdir(parents=True)
        for _i in range(_count):
            _image = Image.fromarray(_rng.integers(0, 256, (40, 40, 3), np.uint8))
            _image.save(Path("photos", _split, _label, f"{_i}.png"))
