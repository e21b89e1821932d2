"""What the record of a score says beside its number: which way is better, of what kind it is, what it asks for."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402


def problem(n: int = 9, size: int = 8):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, size, size), dtype=np.uint8)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * size**2, 3))
    return net, images, rng.random((n, size, size)).astype(np.float32), rng.integers(0, 3, n)


def test_options_turn_the_direction() -> None:
    """The area under a curve with the most relevant pixels first is better when it is low, and the winner is the lower."""
    net, images, maps, y = problem(30)
    names = ["road", "road(order=morf)", "road(order=lerf)", "deletion", "deletion(order=lerf)"]
    scores = metrics.evaluate(net, images, {"a": maps, "b": 1 - maps}, labels=y, metrics=names)
    assert [scores[name]["a"].better for name in names] == ["higher", "lower", "higher", "lower", "higher"]
    for pair in scores.comparisons():
        won, lost = (scores[pair.score][name] for name in (pair.winner, pair.loser))
        assert (won.value <= lost.value) == (won.better == "lower") or won.value == lost.value
    record = metrics.get_score("road", order="morf")
    assert record.with_options(order="both").better == "higher" and record.with_options(noise=0.0).better == "lower"


def test_what_a_score_measures_is_shown() -> None:
    """Goal and kind stand beside the numbers; sensitivities judged as contributions get a note (the goals of Wang and Wang)."""
    net, images, maps, y = problem()
    seen = metrics.Score("sharpness", lambda p, a: a.flatten(1).amax(1).numpy(), kind="plausibility", measures="peaks")
    named = dict.fromkeys(("grad", "VG(ig)", "ig", "grad-cam", "my map (2)"), maps)
    scores = metrics.evaluate(net, images, named, labels=y, metrics=["infidelity", "deletion", seen], resamples=20)
    rows = {(row["score"], row["map"]): row["kind"] for row in scores.rows()}
    assert rows["sharpness", "ig"] == "plausibility" and rows["deletion", "ig"] == "performance"
    assert "plausibility" in str(scores) and "peaks" in scores._repr_html_()
    noted = [note.split(":")[0] for note in scores.notes() if "two goals, which Wang and Wang keep apart" in note]
    assert noted == ["infidelity, grad", "infidelity, VG(ig)"]
