"""The time of the model's passes is measured apart from the rest of making maps."""

from __future__ import annotations

import time

from helpers.explain_nets import nn, torch

from roarfast import _stopwatch
from roarfast.explain import Explainer, External


class Slow(nn.Module):
    """Sleeps in the forward pass."""

    seconds = 0.02

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))

    def forward(self, x):
        time.sleep(self.seconds)
        return self.net(x)


def test_passes_are_counted_and_nothing_else(monkeypatch):
    from roarfast.explain import passes

    honest = passes.noisy_copies

    def slow_noise(*arguments):
        time.sleep(0.05)
        return honest(*arguments)

    monkeypatch.setattr(passes, "noisy_copies", slow_noise)
    explainer = Explainer(Slow(), ["grad", "sg"], batch_size=2)
    assert explainer.pass_seconds == 0
    began = time.perf_counter()
    explainer(torch.rand(2, 3, 2, 2))
    wall = time.perf_counter() - began
    samples = explainer.options.noise_samples
    assert explainer.pass_seconds >= (1 + samples) * Slow.seconds
    assert wall - explainer.pass_seconds >= samples * 0.05 * 0.99  # the noise is none of it


def test_subsets_and_calls_add_up():
    explainer = Explainer(Slow(), ["grad", "rand"])
    explainer(torch.rand(1, 3, 2, 2))
    first = explainer.pass_seconds
    explainer.subset(["grad"])(torch.rand(1, 3, 2, 2))
    assert explainer.pass_seconds >= first + Slow.seconds > first > 0
    before = explainer.pass_seconds
    explainer.subset(["rand"])(torch.rand(1, 3, 2, 2))
    assert explainer.pass_seconds == before  # no pass


def test_the_prediction_and_a_users_estimator_are_passes():
    def mine(model, x, target):
        time.sleep(0.05)
        return x

    explainer = Explainer(Slow(), [External("mine", mine)])
    explainer(torch.rand(1, 3, 2, 2))
    assert explainer.pass_seconds >= 0.05 + Slow.seconds


def test_stopwatch(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_stopwatch.time, "perf_counter", lambda: now[0])
    watch = _stopwatch.Stopwatch(torch.device("cpu"), ("a", "b"))
    for seconds, phase in ((1, "a"), (2, None), (4, "b"), (8, "a")):
        now[0] += seconds
        watch.lap(phase) if phase else watch.start()
    watch.collect()
    assert watch.seconds == {"a": 9.0, "b": 4.0}
