"""torch-cam's metrics themselves against the presets and `average_drop`. Run by `make compat`."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from helpers import peer_cases as cases

torch = pytest.importorskip("torch")

from roarfast._torchvision import import_torchvision  # noqa: E402

import_torchvision()
torchcam = pytest.importorskip("torchcam.metrics")

from roarfast import metrics  # noqa: E402


class Given:
    """Stands for a CAM extractor: the maps are given."""

    def __init__(self, model, cams):
        self.model, self.cams = model, cams

    def __call__(self, *args, **kwargs):
        return [self.cams]

    def fuse_cams(self, cams):
        return cams[0]

    @contextlib.contextmanager
    def _hooks_off(self):
        yield

    def disable_hooks(self):
        pass

    enable_hooks = disable_hooks


@pytest.mark.parametrize("steps", [20, 7])
@pytest.mark.parametrize("baseline", [None, 0.1])
@pytest.mark.parametrize("softmax", [False, True])
def test_deletion_and_insertion(steps, baseline, softmax):
    images = np.random.default_rng(3).random((6, 3, 16, 18)).astype(np.float32)
    maps = np.random.default_rng(8).permuted(np.tile(np.arange(288) / 288, (6, 1)), axis=1).reshape(6, 16, 18)
    maps, model = maps.astype(np.float32), cases.small_model(3)
    theirs = torchcam.DeletionInsertionMetric(
        Given(model, torch.from_numpy(maps)),
        (lambda x: torch.softmax(x, -1)) if softmax else None,
        steps=steps,
        baseline=None if baseline is None else torch.tensor(baseline),
    )
    theirs.update(torch.from_numpy(images))
    expected = theirs.summary()
    options = f"steps={steps}, baseline={baseline or 0.0}, indicator={'probability' if softmax else 'logit'}"
    for name in ("deletion", "insertion"):
        score = metrics.get_score(f"roarfast.compat.presets:torchcam_{name}({options})")
        problem = metrics.Problem(
            model, metrics.read_inputs(images, layout="NCHW"), torch.zeros(6, dtype=torch.int64), 0, torch.arange(6)
        )
        found = score(problem, torch.from_numpy(maps)).per_image.mean()
        (key,) = (k for k in expected if name in k)
        np.testing.assert_allclose(found, expected[key], rtol=0, atol=3e-5)


def test_average_drop():
    images, maps = (
        np.random.default_rng(k).random(shape, np.float32) for k, shape in ((3, (6, 3, 16, 18)), (8, (6, 16, 18)))
    )
    model = cases.small_model(3)
    theirs = torchcam.ClassificationMetric(Given(model, torch.from_numpy(maps)), lambda x: torch.softmax(x, -1))
    theirs.update(torch.from_numpy(images))
    expected = theirs.summary()
    problem = metrics.Problem(
        model, metrics.read_inputs(images, layout="NCHW"), torch.zeros(6, dtype=torch.int64), 0, torch.arange(6)
    )
    found = metrics.get_score("average_drop(scale=raw)")(problem, torch.from_numpy(maps))
    np.testing.assert_allclose(found.per_image.mean(), expected["avg_drop"], rtol=0, atol=1e-6)
    assert found.details["increase"] == pytest.approx(expected["conf_increase"])
