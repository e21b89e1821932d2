"""
A study on a cluster with Ray
=============================

``roarfast run study.toml --ray auto`` runs a study on every machine of a `Ray <https://docs.ray.io>`_ cluster, with the
same results as on one. Here two nodes of one CPU are started on this machine; where yours come from (two workstations,
Slurm, a cloud) is in :doc:`../cluster`.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from ray.cluster_utils import Cluster

from roarfast.study import Study

folder = Path(tempfile.mkdtemp())
config = folder / "study.toml"
_ = config.write_text(
    """
name = "cluster"
trials = 2

[data]
name = "shapes"
classes = ["disk", "ring", "bar", "plus"]
train_size = 400
test_size = 100

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
drops = [0.3, 0.7]

[run]
examples = 0
"""
)

# %%
# In one process first, to compare with.

here = Study.from_toml(config, out=folder / "here")
outcome = here.run(workers=1)

# %%
# The same study on the cluster: one worker per CPU or GPU that Ray has. Only this process writes results, so neither a node
# that goes nor Ctrl-C loses a finished cell, and the same call resumes.

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
cluster.add_node(num_cpus=1)
there = Study.from_toml(config, out=folder / "there")
outcome = there.run(ray=cluster.address)
cluster.shutdown()
print(f"{outcome.done} tasks done, {len(outcome.failed)} failed")

# %%
# Every accuracy is the same: weights, batches and masks depend on seeds, not on the machine that drew them.


def accuracies(study):
    """By protocol, estimator, rate and trial."""
    frame = study.results.to_dataframe()
    return frame.set_index(["protocol", "estimator", "drop", "trial"]).accuracy.sort_index()


one, many = accuracies(here), accuracies(there)
assert (one == many).all()
print(many.groupby(["protocol", "estimator", "drop"]).mean().round(3).to_string())

# %%
# How long would it take on more machines? The schedule of a run can be simulated; from the shell with
# ``roarfast run study.toml --dry-run --nodes 8 --gpus 4``. Few cells, as here, leave most workers idle: the longest chain of
# tasks (base model, maps, one retraining) bounds what a cluster can gain.

from roarfast.study.simulate import Machines, simulate

tasks = there.setup(workers=1).plan.tasks
cost = {"base": 60.0, "maps": 5.0, "roar": 60.0, "road": 3.0}  # seconds, of a study that is worth a cluster
nodes = [1, 2, 4, 8, 16]
found = [simulate(tasks, tasks, lambda task: cost.get(task.cost_class, 1.0), Machines(n, 1)) for n in nodes]
figure, axis = plt.subplots(figsize=(5, 3.2), constrained_layout=True)
axis.plot(nodes, [f.makespan / 60 for f in found], "o-", label="simulated")
axis.plot(nodes, [f.bound / 60 for f in found], "k:", label="no order can beat this")
axis.set(xscale="log", xticks=nodes, xticklabels=nodes, xlabel="nodes", ylabel="minutes", ylim=(0, None))
axis.minorticks_off()
axis.legend()
plt.show()
