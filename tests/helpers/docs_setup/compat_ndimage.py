"""What a reader of docs/compat/ndimage.md brings: an array."""

import numpy as np

a = np.random.default_rng(0).random((12, 3, 10))
