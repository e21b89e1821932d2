"""`Problem`: the model is asked once about what several scores and maps share."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402
from roarfast.metrics.inputs import read_inputs  # noqa: E402

RATES = (0.2, 0.5)


def make(n=6):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 3))
    asked = []
    net.register_forward_hook(lambda module, x, y: asked.append(len(y)))
    images = rng.integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)
    inputs = read_inputs(images, layout="NHWC")
    labels = torch.from_numpy(rng.integers(0, 3, n))
    problem = metrics.Problem(net, inputs, labels, 0, torch.arange(n), None, {"progress": False})
    return problem, asked, [torch.from_numpy(rng.random((n, 8, 8))) for _ in range(2)]


@pytest.mark.parametrize("fill", ["zero", "linear", "noise"])
@pytest.mark.parametrize("scored", ["label", "predicted"])
def test_ends_are_asked_about_once(fill, scored) -> None:
    problem, asked, maps = make()
    how = metrics.Perturbation(fill=fill)
    kinds = (how, metrics.Perturbation(fill=fill, keep=True), metrics.Perturbation(fill=fill, order="lerf"))
    first = problem.respond(maps[0], RATES, how, scored=scored)
    before = sum(asked)
    found = [problem.respond(maps[1], RATES, kind, scored=scored) for kind in kinds]
    counted = 3 if scored == "predicted" else 0  # one image each, to know how many classes there are
    assert sum(asked) - before == 3 * len(RATES) * len(problem) + counted
    for kind, responses in zip(kinds, found):
        alone = make()[0].respond(maps[1], RATES, kind, scored=scored)
        np.testing.assert_array_equal(responses.correct, alone.correct)
        for end in ("whole", "empty"):
            a, b, c = (getattr(r, end) for r in (responses, alone, first))
            np.testing.assert_array_equal(a.prediction, b.prediction)
            np.testing.assert_allclose(a.probability, b.probability, rtol=1e-5)
            np.testing.assert_array_equal(a.logit, c.logit)


def test_equal_questions_are_asked_once() -> None:
    problem, asked, maps = make()
    how = metrics.Perturbation(fill="zero")
    for scored in ("label", "predicted"):
        problem.respond(maps[0], RATES, how, scored=scored)
        before = sum(asked)
        problem.respond(maps[0] ** 2, RATES, how, scored=scored)  # the same order
        assert sum(asked) == before


def test_random_subsets_are_asked_about_once_for_all_maps() -> None:
    problem, asked, maps = make()
    score = metrics.get_score("sensitivity_n", sizes=(0.2, 0.5), draws=3)
    one = score(problem, maps[0])
    before = sum(asked)
    other = score(problem, maps[1])
    assert sum(asked) == before
    alone = score(make()[0], maps[1])
    np.testing.assert_array_equal(other.per_image, alone.per_image)
    assert (one.per_image != other.per_image).any()
    other_fill = metrics.get_score("sensitivity_n", sizes=(0.2, 0.5), draws=3, fill="zero")
    np.testing.assert_array_equal(other_fill(problem, maps[0]).per_image, other_fill(make()[0], maps[0]).per_image)


def test_soundness_out_of_reach() -> None:
    problem, _, maps = make(20)
    score = metrics.get_score("soundness", step=0.1, level=1.0)
    undefined = score(problem, maps[0])
    highest = undefined.details["highest accuracy"]
    assert highest < 1
    ones = np.ones((1, 20))
    assert np.isnan(undefined.resample()(ones)).all() and "undefined" in undefined.notes[-1]
    taken = score.with_options(unreached="highest")(problem, maps[0])
    there = score.with_options(level=highest)(problem, maps[0])
    assert taken.resample()(ones) == there.resample()(ones) and "taken at its highest" in taken.notes[-1]
    with pytest.raises(ValueError, match="unreached must be one of nan, highest, got 'last'"):
        score.with_options(unreached="last")(problem, maps[0])
