"""Shared passes: their number, their bound on memory, independence of the batch, and the model left as it was."""

from __future__ import annotations

import warnings

import pytest
from helpers.explain_nets import F, images, nn, one_thread, seeded, small_net, torch  # noqa: F401

from roarfast.explain import PAPER, Explainer, Options, Plan, explain, parse
from roarfast.explain.names import parse_all

RAW = "none(raw)"
EVERYTHING = ["grad", "gi^2", "ig", "gb", "gc", "sg^2", "sg-sq", "vg", "sg(ig)", "vg(gb)", "sg-sq(gi)", "vg(gc)"]
FEW = Options(ig_steps=5, noise_samples=4)


class Counting(nn.Module):
    """Counts the rows of every forward pass."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.batches = []

    def forward(self, x):
        self.batches.append(len(x))
        return self.model(x)


def test_the_papers_ten_estimators_take_three_passes():
    plan = Plan(parse_all(PAPER), Options(), predict=True)
    assert [p.label for p in plan.passes] == ["clean", "clean path", "noisy"]
    assert (plan.forwards, plan.backwards, plan.backwards_one_by_one) == (41, 41, 74)
    text = plan.describe()
    assert text.startswith("10 estimators, 3 passes: 41 forward and 41 backward per image (one estimator at a time: 74")
    assert "sg^2 sg-sq vg" in text and "sobel^2 rand" in text


@pytest.mark.parametrize(
    "names, predict, forwards, backwards",
    [
        (["grad", "gi", "gc", "grad^2"], True, 1, 1),
        (["grad", "gb"], True, 2, 2),
        (["sg", "sg^2", "sg-sq", "vg", "sg-sq^2", "sg(gi)", "vg(gc)"], False, 15, 15),
        (["sg"], True, 16, 15),  # the predicted class takes a forward pass
        (["ig", "gb"], True, 26, 26),  # and is free beside a clean pass
        (["sg(ig)", "vg(ig)"], False, 375, 375),
        (["rand", "sobel"], True, 0, 0),
    ],
)
def test_cost_is_that_of_the_distinct_passes(names, predict, forwards, backwards):
    plan = Plan(parse_all(names), Options(), predict)
    assert (plan.forwards, plan.backwards) == (forwards, backwards)


@pytest.mark.parametrize("batch_size", [1, 3, 7, 64])
@pytest.mark.parametrize("n", [1, 5, 9])
def test_rows_in_the_model_are_bounded_and_counted(batch_size, n):
    model = Counting(seeded(small_net))
    explainer = Explainer(model, EVERYTHING, options=FEW, batch_size=batch_size)
    explainer._layer = ("model.4", model.model[4])  # finding it by itself would run one row more
    explainer(images(n))
    assert max(model.batches) <= batch_size
    assert sum(model.batches) == n * explainer.plan.forwards


def test_few_images_share_a_pass():
    model = Counting(seeded(small_net))
    explain(model, images(1), "ig", options=Options(ig_steps=25), target=0, batch_size=25)
    assert model.batches == [25]


def test_a_map_does_not_depend_on_batch_size_or_order():
    model = seeded(small_net)
    x, ids = images(64), torch.arange(100, 164)
    together = explain(model, x, EVERYTHING, options=FEW, index=ids, batch_size=64, aggregate=RAW)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    shuffled = explain(model, x[order], EVERYTHING, options=FEW, index=ids[order], batch_size=9, aggregate=RAW)
    for i in (0, 17, 63):
        alone = explain(model, x[i : i + 1], EVERYTHING, options=FEW, index=ids[i : i + 1], batch_size=1, aggregate=RAW)
        for name, a in together.items():
            tolerance = {"rtol": 1e-4, "atol": 1e-5 * a[i].abs().max().item()}
            torch.testing.assert_close(alone[name][0], a[i], **tolerance)
            torch.testing.assert_close(shuffled[name][order.tolist().index(i)], a[i], **tolerance)


def test_together_equals_one_at_a_time():
    model, x = seeded(small_net), images(5)
    together = explain(model, x, EVERYTHING, options=FEW, aggregate=RAW)
    for name in EVERYTHING:
        alone = explain(model, x, name, options=FEW, aggregate=RAW)[name]
        torch.testing.assert_close(alone, together[name], rtol=1e-4, atol=1e-5 * alone.abs().max().item())


@pytest.mark.parametrize("base", ["grad", "gi", "ig", "gb", "gc"])
def test_ensembles_equal_a_slow_loop_with_the_same_noise(base):
    from roarfast.explain.noise import noise_level, noisy_copies

    model, x = seeded(small_net), images(3)
    ids = torch.tensor([4, 9, 2])
    target = model(x).argmax(1)
    options = Options(ig_steps=5, noise_samples=6, noise=0.2)
    names = [f"{e}({base})" for e in ("sg", "sg-sq", "vg")]
    maps = explain(model, x, names, options=options, index=ids, seed=11, aggregate=RAW, batch_size=7)
    loop = []
    for j in range(6):
        copy = noisy_copies(x, noise_level(x, options), ids, 11, j, 1)[0]
        loop.append(explain(model, copy, base, options=options, target="label", labels=target, aggregate=RAW)[base])
    loop = torch.stack(loop).double()
    for name, expected in zip(names, (loop.mean(0), loop.square().mean(0), loop.var(0, unbiased=False))):
        got = maps[str(parse(name))].double()
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5 * expected.abs().max().item())


@pytest.mark.parametrize("options", [Options(noise=0.5, input_range=(0, 4)), Options(noise=2.0, noise_absolute=True)])
def test_noise_levels(options):
    from roarfast.explain.noise import noise_level, noisy_copies

    x = images(2, size=32)
    level = noise_level(x, options)
    assert level.flatten().tolist() == [2.0, 2.0]
    e = noisy_copies(x, level, torch.arange(2), 0, 0, 3) - x
    assert e.std().item() == pytest.approx(2, rel=0.03)
    relative = noise_level(x, Options(noise=0.1)).flatten()
    torch.testing.assert_close(relative, 0.1 * (x.flatten(1).amax(1) - x.flatten(1).amin(1)))


class OutOfMemoryAbove(nn.Module):
    """Runs out of memory for batches of more than `limit` rows."""

    def __init__(self, limit):
        super().__init__()
        self.model, self.limit, self.batches = seeded(small_net), limit, []

    def forward(self, x):
        if len(x) > self.limit:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory (a test says so)")
        self.batches.append(len(x))
        return self.model(x)


def test_out_of_memory_halves_the_batch_and_says_so():
    model, x = OutOfMemoryAbove(3), images(7)
    expected = explain(model.model, x, EVERYTHING, options=FEW)
    explainer = Explainer(
        model, EVERYTHING, options=Options(ig_steps=5, noise_samples=4, gc_layer="model.4"), batch_size=16
    )
    with pytest.warns(ResourceWarning, match="going on with batch_size=") as caught:
        maps = explainer(x)
    assert [str(w.message).split("=")[1] for w in caught if w.category is ResourceWarning] == ["8", "4", "2"]
    assert explainer.batch_size == 2 and max(model.batches) <= 3
    for name, a in expected.items():
        torch.testing.assert_close(maps[name], a, rtol=1e-4, atol=1e-5 * a.abs().max().item())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer(x)  # it remembers


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_out_of_memory_with_one_row_is_an_error():
    with pytest.raises(torch.cuda.OutOfMemoryError):
        explain(OutOfMemoryAbove(0), images(2), "grad", batch_size=4)


def state_of(model):
    return {
        "training": [m.training for m in model.modules()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "grad": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "values": [v.clone() for v in model.state_dict().values()],
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()],
    }


def assert_same_state(before, after):
    for key in ("training", "requires_grad", "hooks"):
        assert before[key] == after[key], key
    for key in ("grad", "values"):
        for a, b in zip(before[key], after[key]):
            assert (a is None and b is None) or torch.equal(a, b), key


def peculiar():
    """A model in a mixed state: training, one batch norm not; some frozen weights; gradients; a user's hook."""
    model = seeded(lambda: small_net(in_place=True))
    model.train()
    model[1].eval()
    model[0].weight.requires_grad_(False)
    model[4].weight.grad = torch.ones_like(model[4].weight)
    calls = []
    model[4].register_forward_hook(lambda *_: calls.append(1))
    return model, calls


def test_the_model_is_left_as_it_was():
    model, calls = peculiar()
    x = images(3)
    before, copy = state_of(model), x.clone()
    explain(model, x, EVERYTHING, options=FEW)
    assert_same_state(before, state_of(model))
    assert calls and torch.equal(x, copy) and not x.requires_grad


@pytest.mark.parametrize("names", [["grad"], ["gb"], ["gc"], ["sg(gb)"], ["ig", "gc", "vg"]])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_the_model_is_left_as_it_was_after_an_exception(names, after):
    model, _ = peculiar()
    calls = []

    def fail(*_):
        calls.append(1)
        if len(calls) > after:
            raise KeyError("a failing layer")

    model[7].register_forward_hook(fail)
    before = state_of(model)
    with pytest.raises(KeyError, match="a failing layer"):
        explain(model, images(6), names, options=FEW, batch_size=2)
    assert_same_state(before, state_of(model))
    assert F.relu(torch.tensor([-1.0, 1.0], requires_grad=True)).grad_fn.name() == "ReluBackward0"


def test_memory_beside_the_model_is_within_the_stated_bound():
    from helpers.live_bytes import LiveBytes

    model, x = seeded(small_net), images(16)
    batch_size = 8
    with LiveBytes() as one_pass:
        rows = x[:batch_size].clone().requires_grad_()
        torch.autograd.grad(model(rows).sum(), rows)
    explainer = Explainer(model, EVERYTHING, options=Options(ig_steps=6, noise_samples=5), batch_size=batch_size)
    with LiveBytes() as everything:
        maps = explainer(x)
    result = 2 * sum(a.numel() * a.element_size() for a in maps.values())  # the batches' maps, then put together
    bound = one_pass.peak + explainer.plan.extra_bytes(batch_size, x.shape[1:]) + result
    assert everything.peak <= bound
    # The bound means something: without chunks, the copies of the noisy paths alone would exceed it.
    assert x.numel() * 4 * 5 * 6 > explainer.plan.extra_bytes(batch_size, x.shape[1:])


def test_two_aggregations_of_one_estimator_share_its_passes():
    listed = ["grad", "grad@mean(raw)", "sg-sq(ig)", "sg-sq(ig)@max(raw)", "rand@sum(raw)"]
    alone = Plan(parse_all([name.split("@")[0] for name in listed if "@" not in name]), FEW, predict=True)
    assert Plan(parse_all(listed), FEW, predict=True).backwards == alone.backwards
    model, x = seeded(small_net), images(5)
    together = explain(model, x, listed, options=FEW)
    for name in listed:
        base, _, aggregation = name.partition("@")
        single = explain(model, x, base, options=FEW, aggregate=aggregation or "mean(abs)")[base]
        assert torch.equal(together[name], single), name
    assert (together["grad@mean(raw)"] < 0).any() and (together["grad"] >= 0).all()
    assert not torch.equal(together["grad"], together["grad@mean(raw)"])


def test_an_aggregation_of_its_own_beside_maps_per_channel():
    explainer = Explainer(seeded(small_net), ["grad", "grad@mean(raw)", "sobel"], aggregate=RAW)
    for n in (0, 2):
        maps = explainer(images(n) if n else images(1)[:0])
        assert [tuple(m.shape[1:]) for m in maps.values()] == [(3, 8, 8), (8, 8), (1, 8, 8)]
