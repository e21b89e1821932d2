"""Configs to start from, as commented TOML: the settings of the papers, and the demo."""

from __future__ import annotations

_HEADER = """\
# A remove-and-retrain study: {what}
# Run it:      roarfast run {file}
# Look ahead:  roarfast run {file} --dry-run
# A killed run goes on with the same command. Every key is explained in docs/studies.md.

name = "{name}"     # the run folder is runs/<name> unless --out says otherwise
seed = 0
trials = {trials}            # each trial has its own base model, maps and retrained models
"""

_EXPLAIN = """
[explain]
conventions = "{conventions}"  # "standard": as the methods were published; "paper": as in the seed paper's code
aggregate = "mean(abs)"     # channels to one value per pixel: mean, sum, max, l2 of abs, raw or squared values
target = "predicted"        # or "label"
batch_size = {batch}
dtype = "{dtype}"           # of the stored maps; "float16" halves the disk space

[removal]
rule = "{rule}"       # "exact": floor(t*H*W) pixels; "percentile": >= the percentile; "strict": > it
fill = "dataset_mean" # of the train images, per channel; or "zero", [r, g, b] in 0..255, "image_mean", "blur", "noise"
noise = 0.01          # of the linear imputation (road)
"""

_RUN = """
[run]
device = "auto"       # "cpu", "cuda", "cuda:1"
workers = "auto"      # one process per GPU, or one per core
threads = 1           # per worker on CPUs; part of what defines a result, as sums depend on it in the last bits
examples = 6          # images per estimator in the report
"""

_PAPER_ESTIMATORS = '["grad", "grad^2", "gi^2", "ig^2", "sg^2", "sg-sq", "vg", "gc^2", "sobel^2"]'
_THREE = '["plain", "max(3)", "gaussian(1)"]'


def _paper_grid(protocols: str, drops: str) -> str:
    return f"""
# A study is the union of its [[grid]] blocks; each is every combination of its lists.
[[grid]]
protocols = {protocols}  # also: "kar", "road-retrain", "no-retrain", "mask-only"
estimators = {_PAPER_ESTIMATORS}
postprocess = {_THREE}
drops = {drops}

[[grid]]              # baselines that look at neither model nor image
protocols = {protocols}
estimators = ["rand", "block"]
drops = {drops}
"""


def _paper(name: str, what: str, data: str, model: str, recipe: str, batch: int, dtype: str = "float32") -> str:
    return "".join(
        [
            _HEADER.format(what=what, file="study.toml", name=name, trials=5),
            f"\n[data]\n{data}\n\n[model]\n{model}\n\n[train]\n{recipe}\n",
            _EXPLAIN.format(conventions="paper", batch=batch, dtype=dtype, rule="percentile"),
            _paper_grid('["roar", "road"]', "[0.1, 0.3, 0.5]"),
            _RUN,
        ]
    )


_DEMO = (
    _HEADER.format(
        what="generated images, a small net, a few minutes on two cores", file="study.toml", name="demo", trials=1
    )
    + """
[data]
name = "shapes"       # generated, nothing to download
classes = ["disk", "ring", "bar", "plus"]  # four of its ten classes: learnt in seconds
train_size = 2000
test_size = 500

[model]
name = "convnet"
options = { widths = [8, 24, 48, 96] }

[train]
recipe = "quick"      # every field of the recipe can be overridden here
epochs = 7
batch_size = 50
lr = 0.04
pad = 0
random_crop = false
"""
    + _EXPLAIN.format(conventions="standard", batch=256, dtype="float32", rule="exact")
    + f"""
# A study is the union of its [[grid]] blocks; each is every combination of its lists.
[[grid]]
protocols = ["roar", "road"]  # also: "kar", "road-retrain", "no-retrain", "mask-only"
estimators = ["grad^2", "ig^2", "sg-sq", "gc^2"]
postprocess = {_THREE}
drops = [0.1, 0.3, 0.5]

[[grid]]              # baselines that look at neither model nor image
protocols = ["roar", "road"]
estimators = ["rand", "block"]
drops = [0.1, 0.3, 0.5]
"""
    + _RUN
)

_IMAGENET = (
    _HEADER.format(what="the original ROAR on ImageNet", file="study.toml", name="roar-imagenet", trials=3)
    + """
[data]
name = "imagenet"     # roarfast data pack IMAGENET/train train.pack --size 224
root = "imagenet"
train = "train.pack"
test = "val.pack"

[model]
name = "resnet50"

[train]
recipe = "imagenet-roar"  # 90 epochs, 5 of warm-up, large batches, batch norm over 128
"""
    + _EXPLAIN.format(conventions="standard", batch=128, dtype="float16", rule="exact")
    + """
[[grid]]
protocols = ["roar", "kar"]
estimators = ["grad", "ig", "gb", "sg", "sg-sq", "vg", "sg-sq(ig)", "vg(ig)", "sg-sq(gb)", "vg(gb)", "sobel"]
drops = [0.1, 0.3, 0.5, 0.7, 0.9]

[[grid]]              # baselines that look at neither model nor image
protocols = ["roar", "kar"]
estimators = ["rand"]
drops = [0.1, 0.3, 0.5, 0.7, 0.9]
"""
    + _RUN
)

PRESETS: dict[str, str] = {
    "demo": _DEMO,
    "paper-cifar10": _paper(
        "paper-cifar10", "the seed paper on CIFAR-10", 'name = "cifar10"\nroot = "data"         # where the files are\n'
        "download = false      # true: fetch them if they are not there", 'name = "resnet18"     # with the CIFAR stem',
        'recipe = "cifar10"    # 50 epochs, batch 128, SGD 0.9, cosine from 0.1, weight decay 5e-4', 256,
    ),
    "paper-svhn": _paper(
        "paper-svhn", "the seed paper on SVHN", 'name = "svhn"\nroot = "data"         # where the files are\n'
        "download = false      # true: fetch them if they are not there", 'name = "resnet18"     # with the CIFAR stem',
        'recipe = "svhn"       # 50 epochs, batch 128, SGD 0.9, cosine from 0.1, weight decay 1e-4', 256,
    ),
    "paper-cub200": _paper(
        "paper-cub200", "the seed paper on CUB-200", 'name = "cub200"\nroot = "CUB_200_2011" # with images.txt, train_test_split.txt, …',
        'name = "resnet50"\n# weights = "resnet50.pt"  # ImageNet weights, a state dict saved with torch.save: the paper starts from them',
        'recipe = "cub200"     # 50 epochs, batch 32, SGD 0.9, cosine from 0.01', 64, "float16",
    ),
    "roar-imagenet": _IMAGENET,
}  # fmt: skip
"""Name → TOML text."""
