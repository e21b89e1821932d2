"""What a reader of docs/imputation.md brings: images, masks, codes."""

import numpy as np

import roarfast as rf

x = np.random.default_rng(0).random((2, 3, 16, 16), np.float32)
drops = [0.1, 0.5]
codes = rf.rank_codes(x.mean(1), drops)
mask = codes <= 1
images = np.rint(255 * x).astype(np.uint8)
