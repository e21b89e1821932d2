"""What a reader of docs/training.md brings: splits, codes, a recipe. Few images and one epoch, so that it takes seconds."""

from dataclasses import replace

import numpy as np

import roarfast as rf
import roarfast.data
import roarfast.train
from roarfast.data import Dataset

_load, _get_recipe = roarfast.data.load, roarfast.train.get_recipe


def _few(*args, **kwargs):
    whole = _load(*args, **kwargs)
    return Dataset(whole.images[:64], whole.labels[:64], whole.class_names)


def _short(*args, **kwargs):
    return replace(_get_recipe(*args, **kwargs), epochs=1, warmup_epochs=0, batch_size=32)


PATCHES = {"roarfast.data.load": _few, "roarfast.train.get_recipe": _short}
device = "cpu"
splits = [_few("shapes", "train"), _few("shapes", "test")]
drops = [0.1, 0.3, 0.5, 0.7]
codes = [rf.rank_codes(np.random.default_rng(0).random(s.images.shape[:3], np.float32), drops) for s in splits]
recipe = _short("quick", model="resnet18")
