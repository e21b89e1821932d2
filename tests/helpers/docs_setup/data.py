"""What a reader of docs/data.md brings: codes for the training images, of which few are enough here."""

import numpy as np

import roarfast as rf
from roarfast.data import Dataset, load

_some = load("shapes", "train")
train = Dataset(_some.images[:256], _some.labels[:256], _some.class_names)
codes = rf.rank_codes(np.random.default_rng(0).random(train.images.shape[:3], np.float32), [0.1, 0.3, 0.5])
