"""What a study was made with, in a few words; and what makes it doubtful."""

from __future__ import annotations

import math
from collections import Counter

from roarfast._types import Json
from roarfast.report.grid import base_cell
from roarfast.report.text import counted, percent
from roarfast.study.records import StudyResults

_KEPT_NOTES = ("data_warnings", "warnings", "notes")
"""Facts of a run under which doubts are stored."""

STARTED_FROM_BASE = (
    'Retrained models started from the weights of the base model (train.start = "base"), which has seen the pixels that were removed: '
    "their accuracy mixes what can be learnt without these pixels with what was remembered. Retraining from fresh weights is what ROAR means."
)

RANKS_FEATURES = (
    "Features were ranked, not pixels: a rate counts the channels of all pixels, which are removed apart, also at random. Random blocks, and maps "
    "without channels, lose whole pixels, which hurts more at the same rate."
)


def coverage(results: StudyResults) -> str:
    """How many cells there are, by status."""
    counts = Counter(r.status for r in results.records)
    text = f"{counts['done']} of {len(results.records)} cells done"
    others = [f"{counts[s]} {s}" for s in ("failed", "running", "pending") if counts[s]]
    return ", ".join([text, *others])


def study_name(results: StudyResults) -> str:
    """The name in the config, or the datasets."""
    name = (results.meta.get("config") or {}).get("name")
    return str(name or ", ".join(datasets(results)) or "empty study")


def datasets(results: StudyResults) -> list[str]:
    """In the order of the study."""
    return list(dict.fromkeys(r.dataset for r in results.records))


def _section(results: StudyResults, name: str) -> dict[str, Json]:
    """A section of the config; empty where it was not recorded."""
    return (results.meta.get("config") or {}).get(name) or {}


def data_text(results: StudyResults) -> str:
    """As in "cifar10, 10,000 train and 2,000 test images of 32 × 32 × 3, 10 classes"."""
    meta = results.meta
    text = ", ".join(datasets(results)) or "none"
    images, shape = (meta.get("data") or {}).get("images"), (meta.get("data") or {}).get("shape")
    if images:
        text += f", {images[0]:,} train and {images[1]:,} test images"
    if shape:
        text += " of " + " × ".join(map(str, shape))
    return text + (f", {meta['classes']} classes" if meta.get("classes") else "")


def model_text(results: StudyResults) -> str:
    """The network and how it was trained."""
    model, train = _section(results, "model"), _section(results, "train")
    name = model.get("name") or train.get("model") or "not recorded"
    if model.get("trained"):
        told = ["as given"]
    elif train.get("function"):
        told = [f"trained by {train['function']}"]
    else:
        told = [f"recipe {train['recipe']}"] if train.get("recipe") else []
        told += [f"{train['epochs']} epochs"] if train.get("epochs") else []
    return ", ".join([str(name), *told])


def base_text(results: StudyResults) -> str:
    """Accuracy of the base models, nothing removed."""
    found = []
    for dataset in datasets(results):
        base = base_cell(results, dataset).accuracy()
        if base.n:
            half = "" if math.isnan(base.half_width) else f" ± {percent(base.half_width)}"
            name = f"{dataset}: " if len(datasets(results)) > 1 else ""
            found.append(f"{name}{percent(base.mean)}{half} % ({counted(base.n, 'base model')})")
    return "; ".join(found) or "not known yet"


def doubts(results: StudyResults) -> list[str]:
    """What the run noted about itself, and base models that learned nothing."""
    found = []
    for name in _KEPT_NOTES:
        stored = results.meta.get(name) or ()
        found += [stored] if isinstance(stored, str) else [str(doubt) for doubt in stored]
    found += _mixed_versions(results)
    if _section(results, "train").get("start") == "base":
        found.append(STARTED_FROM_BASE)
    aggregate = str(_section(results, "explain").get("aggregate") or "")
    if aggregate.startswith("none"):
        found.append(RANKS_FEATURES)
    classes = results.meta.get("classes")
    tests = ((results.meta.get("data") or {}).get("images") or (0, 0))[1]
    for dataset in datasets(results):
        base = base_cell(results, dataset).accuracy()
        if not classes or not base.n or any("chance" in doubt for doubt in found):
            continue
        chance = 1 / classes
        noise = 2 * math.sqrt(chance * (1 - chance) / tests) if tests else 0.02
        if base.mean <= chance + noise:
            found.append(
                f"The base models on {dataset} are at chance: {percent(base.mean)} % of {classes} classes. Nothing they are asked to "
                "explain means anything; train them longer or better first."
            )
    return list(dict.fromkeys(found))


def _mixed_versions(results: StudyResults) -> list[str]:
    """A sentence if some cells were computed by another torch than others: differences may then be those of versions."""
    counts = Counter(r.torch for r in results.records if r.status == "done")
    if len(counts) < 2:
        return []
    named = [
        f"{counted(n, 'cell')} with {f'torch {torch}' if torch else 'one that was not recorded'}"
        for torch, n in counts.most_common()
    ]
    return [
        f"Not all cells were computed by the same version of torch: {', '.join(named)}. A difference between such cells may be one "
        "of the versions; only a run in a new folder tells."
    ]
