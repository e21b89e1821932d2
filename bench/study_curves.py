"""ROAD and no-retrain cells of a study: the way they were evaluated before they were curves, beside the way of today.

Before: every test image modified at one rate, then evaluated in planes, with torch's pooling. Today: all rates in one pass of
`roarfast.metrics.respond`, channels-last. Same codes, same noise, same model, one thread, alternating, best of some
turns, processor time.
`python bench/study_curves.py [CONFIG]` takes the data and model of a study; default: 2,000 shapes, `convnet`.
"""

from __future__ import annotations

import copy
import sys
import tempfile
import time

import numpy as np
from torch import nn

from roarfast.data.device import Transform
from roarfast.study.cells import fill_split, fill_value, impute_split
from roarfast.study.config import load_config, parse_config
from roarfast.study.curves import CurveWork
from roarfast.study.make import do_task
from roarfast.study.protocols.accuracy import no_retrain, road
from roarfast.study.runfolder import RunFolder
from roarfast.study.study import Study
from roarfast.study.tasks import BaseTask, CellsTask, CodesTask
from roarfast.study.work import Clock, Work
from roarfast.train import evaluate

TURNS = 5
CONFIG = """\
name = "curves"
data = { name = "shapes", train_size = 1000, test_size = 2000 }
train = { recipe = "quick", epochs = 2 }
[[grid]]
protocols = ["road", "no-retrain"]
estimators = ["rand"]
drops = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
orders = ["morf"]
"""


def with_torchs_pooling(model: nn.Module) -> nn.Module:
    """A copy of the net that pools as it did before `_halve`."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if isinstance(module, nn.MaxPool2d):
            vars(module).pop("forward", None)
    return model


def before(cell: CurveWork, memory: str) -> list[float]:
    """Accuracies by rate, image set by image set; `memory` is the order of the batches."""
    model = with_torchs_pooling(cell.base_model)
    w, imputes = cell.work, cell.protocol.imputes
    found = []
    for one in cell.task.cells.values():
        codes, index = w.codes(cell.task, one, "test")
        if imputes:
            other = impute_split(w, one, cell.task.codes.drops, "test", codes, index, cell.clock, cell.on_update)
        else:
            other = fill_split(w, "test", cell.clock)
        data = w.trainer.whole.test.with_codes(codes, other)
        fill = None if imputes else fill_value(w)
        transform = Transform(mean=w.train.mean, std=w.train.std, rate_index=index, fill=fill, out_layout=memory)
        found.append(evaluate(model, data, transform).accuracy)
    return found


def main() -> None:
    config = load_config(sys.argv[1]) if len(sys.argv) > 1 else parse_config(CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        study = Study(config, folder)
        files = RunFolder(folder)
        plan = study.setup("cpu", 1).plan
        work = Work(config, files, "cpu", 1)
        files.prepare(None)
        for kind in (BaseTask, CodesTask):
            for task in plan.tasks.values():
                if isinstance(task, kind) and getattr(task, "estimator", "rand") == "rand":
                    do_task(work, task, lambda text: None)
        curves = [t for t in plan.tasks.values() if isinstance(t, CellsTask) and t.cell.estimator == "rand"]
        for task in [t for t in curves if t.cell.order == "morf" and t.cell.trial == 0]:
            cell = CurveWork(work, task, Clock(), lambda text: None)
            run = road if cell.protocol.imputes else no_retrain
            best = dict.fromkeys(("planes", "channels-last", "curve"), np.inf)
            for _ in range(TURNS):
                for name, memory in (("planes", "NCHW"), ("channels-last", "NHWC")):
                    start = time.process_time()
                    old = before(cell, memory)
                    best[name] = min(best[name], time.process_time() - start)
                path = files.responses(task.key)
                path.unlink(missing_ok=True)
                start = time.process_time()
                new = [scores["accuracy"] for scores in run(cell).rates.values()]
                best["curve"] = min(best["curve"], time.process_time() - start)
                assert new == old, (new, old)
            shown = ", ".join(f"{name} {1e3 * seconds / len(new):.0f} ms" for name, seconds in best.items())
            print(
                f"{cell.protocol.name}: {len(work.test)} images, {len(new)} rates, equal accuracies; per rate {shown}; "
                f"{best['planes'] / best['curve']:.2f} times as fast as in planes"
            )


if __name__ == "__main__":
    main()
