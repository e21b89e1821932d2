"""
A ROAR study, from TOML to report
=================================

A study is one config file: data, model, recipe, and a grid of protocols, estimators, post-processings and drop rates. This
one is tiny: generated images, a small net, seconds. The same commands run the papers' grids.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from roarfast.study import Study

folder = Path(tempfile.mkdtemp())
config = folder / "study.toml"
config.write_text(
    """
name = "tutorial"
trials = 1

[data]
name = "shapes"                         # generated: nothing to download
classes = ["disk", "ring", "bar", "plus"]
train_size = 400
test_size = 200

[model]
name = "convnet"
options = { widths = [8, 16, 32, 64] }

[train]
recipe = "quick"
epochs = 4
batch_size = 50
lr = 0.04

[[grid]]
protocols = ["roar", "road"]
orders = ["morf"]
estimators = ["grad^2", "rand"]
postprocess = ["plain", "gaussian(1)"]
drops = [0.3, 0.7]

[run]
examples = 2
"""
)

# %%
# From the shell this is ``roarfast run study.toml``; a killed run resumes with the same command and loses no finished
# cell. In Python:

study = Study.from_toml(config, out=folder / "run")
study.run(workers=1, progress=False)
frame = study.results.to_dataframe()
columns = ["protocol", "estimator", "postprocess", "drop", "accuracy", "tv_mask"]
print(frame[columns].to_string(index=False, float_format=lambda v: f"{v:.3f}"))

# %%
# Accuracy beside the total variation of the masks: where a filter that sees only the map moves a point down and to the
# left, the score rewards blur, not knowledge of the model. A study of this size shows the idea, not a result.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, constrained_layout=True)
for axis, protocol in zip(axes, ("roar", "road")):
    rows = frame[(frame.protocol == protocol) & (frame["drop"] == 0.3)]
    for estimator, group in rows.groupby("estimator"):
        group = group.sort_values("postprocess", ascending=False)  # plain first
        axis.plot(group.tv_mask, 100 * group.accuracy, "o-", label=estimator)
    axis.set(title=f"{protocol}, t = 0.3", xlabel="total variation of the masks")
axes[0].set_ylabel("accuracy, %")
axes[0].legend()
plt.show()

# %%
# The report is one HTML file with these figures, an audit of post-processings, examples and tables. ``roarfast run``
# ends with it; ``roarfast report RUN`` makes it again. Its summary, and one of its figures:

from roarfast.report import build, summary

page = build(folder / "run")
print(summary(study.results, page).replace(str(folder), "…"))

# %%

drawn = next((page.parent / "figures").glob("*-roar-morf-curves.png"))
figure, axis = plt.subplots(figsize=(9, 5), constrained_layout=True)
axis.imshow(plt.imread(drawn))
axis.axis("off")
plt.show()
