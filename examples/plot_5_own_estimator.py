"""
Your own estimator and post-processing
======================================

An estimator is a function from a model, a batch and targets to one value per pixel. A post-processing sees the map only.
Neither has to be registered: a study names them as ``package.module:function``, and in Python they are just functions.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import roarfast as rf
from roarfast import metrics
from roarfast.explain import External, explain

torch.manual_seed(0)
digits = load_digits()
x = torch.from_numpy(digits.images[:, None] / 16).float()
y = torch.from_numpy(digits.target)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 64, 10),
)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for _ in range(60):
    rows = torch.randint(0, 1200, (128,))
    loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()

# %%
# Occlusion of single pixels, in a few lines. ``External`` gives it a name; shared passes of the built-in estimators are
# kept apart from it.


def occlusion(model, x, target):
    """How much the target's logit falls when a pixel goes."""
    with torch.no_grad():
        rows = torch.arange(len(x))
        full = model(x)[rows, target]
        out = torch.empty(len(x), *x.shape[2:])
        for i in range(x.shape[2]):
            for j in range(x.shape[3]):
                without = x.clone()
                without[:, :, i, j] = 0
                out[:, i, j] = full - model(without)[rows, target]
    return out[:, None]


test = slice(1500, 1700)
maps = explain(model, x[test], [External("occlusion", occlusion), "grad^2", "ig^2"], labels=y[test], target="label")

# %%
# A post-processing is any function of the map. Here: rank instead of value.


def ranks(a):
    """Ranks in [0, 1], map by map."""
    flat = np.asarray(a).reshape(len(a), -1)
    return (flat.argsort(1).argsort(1) / (flat.shape[1] - 1)).reshape(np.asarray(a).shape).astype(np.float32)


maps = {name: np.asarray(a) for name, a in maps.items()}
maps["occlusion, ranks"] = ranks(maps["occlusion"])
scores = metrics.evaluate(model, x[test], maps, labels=y[test], metrics=["deletion(fill=zero)"], baselines=["random"])
print(scores)

# %%
# Scores by order see ranks only: occlusion and its ranks are equal to the bit.

assert scores["deletion(fill=zero)"]["occlusion"].value == scores["deletion(fill=zero)"]["occlusion, ranks"].value
figure, axes = plt.subplots(2, 4, figsize=(8, 4), constrained_layout=True)
for row, axis_row in enumerate(axes):
    axis_row[0].imshow(x[test][row, 0], cmap="gray")
    for axis, name in zip(axis_row[1:], ("occlusion", "grad^2", "ig^2")):
        axis.imshow(maps[name][row], cmap="magma")
        axis.set_title(name)
for axis in axes.flat:
    axis.axis("off")
plt.show()
print(
    "total variation:",
    {name: round(float(rf.total_variation(a, normalize="minmax").mean()), 1) for name, a in maps.items()},
)
