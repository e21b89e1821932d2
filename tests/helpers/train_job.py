"""A small training in a process of its own, for the tests that kill it, interrupt it or run it under torchrun."""

from __future__ import annotations

import json
import os
import sys
import time

import torch

from roarfast.data import load
from roarfast.train import Recipe, build_model, train


class Slow(torch.nn.Module):
    """Gives a test time to kill the process in the middle of an epoch."""

    def __init__(self, model):
        super().__init__()
        self.model, self.seconds = model, 0.0

    def forward(self, x):
        time.sleep(self.seconds)
        return self.model(x)


def run_job(options):
    torch.set_num_threads(1)
    data = [load("shapes", split, n=n) for split, n in (("train", options.get("n", 200)), ("test", 50))]
    recipe = Recipe(
        epochs=options.get("epochs", 3),
        batch_size=20,
        lr=0.02,
        pad=2,
        random_crop=True,
        flip=True,
        drop_last=True,
        ghost_batch=options.get("ghost_batch"),
    )
    model = Slow(build_model("convnet", 10, seed=1, widths=(4, 8), dropout=options.get("dropout", 0.0)))
    model.seconds = options.get("slow", 0.0)
    return train(
        model, *data, recipe, seed=1, checkpoint=options.get("checkpoint"), checkpoint_seconds=0, progress="none"
    )


def main() -> None:
    options = json.loads(sys.argv[1])
    result = run_job(options)
    if os.environ.get("RANK", "0") == "0":
        torch.save(result.model.state_dict(), options["out"] + ".pt")
        with open(options["out"] + ".json", "w") as file:
            json.dump({"losses": result.step_losses, "accuracy": result.accuracy}, file)


if __name__ == "__main__":
    main()
