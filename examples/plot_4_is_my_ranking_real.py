"""
Is my ranking real?
===================

A removal score falls for three reasons: the *shape* of the masks, what any model knows of the *image*, and what the map knows of
*this model*. Only the last is what an explanation is for. ``metrics.parts`` takes the score apart with two nulls: masks of
other images, and masks of the same image by another model.

Two linear classifiers on scikit-learn's digits stand for two trained models; their maps are weight times input.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import roarfast as rf
from roarfast import metrics

digits = load_digits()
images = np.repeat(np.repeat(digits.images / 16, 2, 1), 2, 2).astype(np.float32)  # 16x16, so that blur has room
labels = digits.target
train, test = np.arange(0, 1200), np.arange(1200, 1797)


def trained(seed):
    """A classifier on a random half of the training images, as a torch module, and its weights ``[classes, H, W]``."""
    half = np.random.default_rng(seed).permutation(train)[:300]
    fit = LogisticRegression(C=0.05, max_iter=500).fit(images[half].reshape(len(half), -1), labels[half])
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 10))
    model[1].weight.data = torch.from_numpy(fit.coef_).float()
    model[1].bias.data = torch.from_numpy(fit.intercept_).float()
    return model, fit.coef_.reshape(10, 16, 16).astype(np.float32)


(model, weights), (_, other_weights) = trained(0), trained(1)
x, y = images[test], labels[test]
own, other = np.abs(weights[y] * x), np.abs(other_weights[y] * x)

# %%
# The same maps, plain and blurred. Blur cannot add knowledge of the model; it can change what removing a mask of that kind costs,
# whoever made it.

maps = {"plain": own, "blurred": rf.gaussian_filter(own, sigma=1.5)}
others = {"plain": other, "blurred": rf.gaussian_filter(other, sigma=1.5)}
table = metrics.parts(model, x[:, None], maps, other_maps=others, labels=y)
print(table)

# %%
# Grey is shape, blue is image, orange is model. Nearly all of the damage is grey and blue: masks of other digits, or those of another
# classifier, hurt almost as much. A ranking by the raw score ranks mostly these. An interval of the model part that holds 0 says that
# this map showed nothing about this classifier that the other one's map does not show too.
#
# The blurred maps may have the larger model part. That is no contradiction: a filter cannot add to what a *map* knows of a model, but a
# mask keeps only the top of the map, and a filter can bring knowledge there that the plain mask left out (the remark after Theorem 3.1;
# ``roarfast validate --only theorems`` has the smallest example). On photos and trained nets blur did not raise this part beyond its interval,
# in the mean over estimators: :doc:`../results/parts/README`.

table.plot()
plt.show()

# %%
# Another way to doubt a ranking is to ask each score what it thinks of changes that add no knowledge. ``metrics.audit`` filters the maps,
# raises them to a power, plants one outlier and shifts them; every "better" in its table is a score that can be bought. A power keeps the
# order of pixels, so scores that only rank them must not move. (A power also merges values that float32 cannot tell apart; maps of
# 4,096 levels keep theirs.)

levels = np.round(own / own.max((1, 2), keepdims=True) * 4095).astype(np.float32) + 1
audit = metrics.audit(
    model,
    x[:200, None],
    {"weight x input": levels[:200]},
    labels=y[:200],
    scores={"road": ("linear",), "deletion": ("zero",), "infidelity": ("zero",)},
    postprocess=("gaussian(1.5)", "power(2)", "roll"),
    progress=False,
)
print(audit)
