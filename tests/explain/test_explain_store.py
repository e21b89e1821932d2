"""Maps on disk: what they are made from, damage, and kills at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.explain_nets import images, nn, one_thread, seeded, small_net, torch  # noqa: F401

import roarfast as rf
from roarfast.explain import (
    AttributionStore,
    Explainer,
    External,
    Options,
    PostProcess,
    StoreCorrupt,
    StoreMismatch,
    data_hash,
    generate,
    model_hash,
)
from roarfast.explain.files import Journal

NAMES = ["grad", "grad^2", "sg-sq"]
FEW = Options(noise_samples=3)


def explainer(model=None, names=NAMES, **settings):
    return Explainer(model or seeded(small_net), names, options=settings.pop("options", FEW), batch_size=4, **settings)


@pytest.fixture
def store(tmp_path):
    return AttributionStore(tmp_path / "maps")


X = images(10)


def test_maps_come_back_as_computed(store):
    e = explainer()
    stored = generate(store, e, X, chunk=4)
    direct = e(X)
    assert store.names() == NAMES and "sg-sq" in store and "vg" not in store
    for name in NAMES:
        np.testing.assert_allclose(stored[name][:], direct[name].numpy(), rtol=1e-5, atol=1e-9)
        np.testing.assert_array_equal(stored[name][3], stored[name][:][3])
        np.testing.assert_array_equal(stored[name][[7, 2]], stored[name][:][[7, 2]])
        assert stored[name].shape == (10, 8, 8) and len(stored[name]) == 10
        assert isinstance(np.load(store.folder(name) / "maps.npy", mmap_mode="r"), np.memmap)


def test_total_variation_on_the_way(store):
    stored = generate(store, explainer(), X, postprocess=["plain", "gaussian(1)|max(3)"], chunk=4)["grad"]
    maps = stored[:]
    for k in ("plain", "gaussian(1)|max(3)"):
        expected = rf.total_variation(PostProcess.parse(k)(maps), normalize="minmax")
        np.testing.assert_allclose(stored.tv[k], expected)
        assert stored.meta["total_variation"][k]["mean"] == pytest.approx(expected.mean())
    assert stored.tv["gaussian(1)|max(3)"].mean() < stored.tv["plain"].mean()


def test_metadata_says_what_the_maps_are(store):
    model = seeded(small_net)
    stored = generate(store, explainer(model, seed=7), X)["sg-sq"]
    identity = stored.meta["identity"]
    assert identity["estimator"] == "sg-sq" and identity["seed"] == 7 and identity["target"] == "predicted"
    assert identity["model"] == model_hash(model) and identity["data"] == data_hash(X, np.arange(10))
    assert identity["options"]["noise_samples"] == 3 and "ig_steps" not in identity["options"]
    assert set(stored.meta["versions"]) == {"roarfast", "torch", "numpy", "python"}


def test_half_precision_keeps_small_gradients(store):
    tiny = External("tiny", lambda m, x, t: x.mean(1) * 1e-20 * (10.0 ** -torch.arange(len(x)).reshape(-1, 1, 1)))
    e = explainer(names=[tiny], options=Options())
    half, full = (generate(AttributionStore(store.root / d), e, X, dtype=d)["tiny"] for d in ("float16", "float32"))
    assert half.raw.dtype == np.float16 and os.path.getsize(half.folder / "maps.npy") < 10 * 8 * 8 * 2 + 200
    np.testing.assert_allclose(half[:], full[:], rtol=2**-10, atol=0)
    np.testing.assert_allclose(half[4], full[4], rtol=2**-10, atol=0)
    np.testing.assert_allclose(half[3:5, 2], full[3:5, 2], rtol=2**-10, atol=0)


def test_per_channel_maps(store):
    stored = generate(store, explainer(names=["grad", "gc"], aggregate="none(raw)"), X)
    assert stored["grad"].shape == (10, 3, 8, 8) and stored["gc"].shape == (10, 1, 8, 8)


def test_uint8_images_in_either_layout(store):
    image = (X * 255).to(torch.uint8)
    a = generate(AttributionStore(store.root / "a"), explainer(), image)["grad"]
    b = generate(AttributionStore(store.root / "b"), explainer(), image.permute(0, 2, 3, 1).numpy())["grad"]
    np.testing.assert_allclose(a[:], b[:], rtol=1e-5)


def test_complete_maps_are_not_computed_again(store):
    generate(store, explainer(), X)
    calls = []
    model = seeded(small_net)
    model.register_forward_hook(lambda *_: calls.append(1))
    generate(store, explainer(model), X)
    assert not calls
    generate(store, explainer(model, [*NAMES, "gi"]), X)  # only the new one
    assert len(calls) == 3 and "gi" in store


def other_model():
    return {"model": seeded(small_net, seed=5)}


@pytest.mark.parametrize(
    "change, names, message",
    [
        (other_model, ["grad"], "model: stored"),
        (lambda: {"seed": 1}, ["sg-sq"], "seed: stored 0, asked for 1"),
        (lambda: {"target": 1}, ["grad"], "target: stored 'predicted', asked for 1"),
        (lambda: {"aggregate": "sum(raw)"}, ["grad"], "aggregation"),
        (lambda: {"options": Options(noise_samples=2)}, ["sg-sq"], "options"),
    ],
)
def test_maps_of_something_else_are_an_error(store, change, names, message):
    generate(store, explainer(), X)
    before = store.open(names[0])[:]
    with pytest.raises(StoreMismatch, match=message):
        generate(store, explainer(names=names, **change()), X)
    np.testing.assert_array_equal(store.open(names[0])[:], before)
    replaced = generate(store, explainer(names=names, **change()), X, overwrite=True)[names[0]]
    assert not np.array_equal(replaced[:], before)


def test_other_data_is_an_error_and_unused_settings_are_not(store):
    generate(store, explainer(), X)
    with pytest.raises(StoreMismatch, match="data: stored"):
        generate(store, explainer(), X + 0.001)
    with pytest.raises(StoreMismatch, match="data: stored"):
        generate(store, explainer(), X, index=np.arange(1, 11))
    generate(store, explainer(names=["grad"], seed=9, options=Options(ig_steps=3)), X)  # grad uses neither
    with pytest.raises(StoreMismatch, match="model: stored"):
        store.open("grad", {"model": "another"})


def test_model_free_maps_serve_every_model(store):
    generate(store, explainer(names=["sobel"]), X)
    generate(store, explainer(seeded(small_net, seed=5), names=["sobel"]), X)


@pytest.mark.parametrize("file", ["maps.npy", "scales.npy", "tv.npy", "meta.json"])
def test_damage_is_noticed(store, file):
    generate(store, explainer(names=["grad"]), X)
    path = store.folder("grad") / file
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged if file != "meta.json" else damaged[:50])
    with pytest.raises(StoreCorrupt, match=r"damaged"):
        store.open("grad")


def test_missing_maps(store):
    with pytest.raises(FileNotFoundError, match=r"no maps of 'vg' in .*there are: \[\]"):
        store.open("vg")


def test_maps_that_are_not_finite_are_refused(store):
    bad = External("bad", lambda m, x, t: x.mean(1) / (torch.arange(len(x)) != 2).float().reshape(-1, 1, 1))
    with pytest.raises(ValueError, match=r"'bad' are not finite for images \[2, 6\]"):
        generate(store, explainer(names=[bad]), X, chunk=8)


class Interrupt(Exception):
    pass


def interrupted(store, after, **settings):
    """Runs until a model call number, where an exception stops it."""
    model, calls = seeded(small_net), []

    def count(*_):
        calls.append(1)
        if len(calls) > after:
            raise Interrupt

    model.register_forward_hook(count)
    with pytest.raises(Interrupt):
        generate(store, explainer(model), X, chunk=2, **settings)


def test_an_interrupted_run_goes_on(store):
    clean = generate(AttributionStore(store.root / "clean"), explainer(), X, chunk=2)
    interrupted(store, after=9)
    assert store.names() == []
    with pytest.raises(FileNotFoundError, match="only a part"):
        store.open("grad")
    model, rows = seeded(small_net), []
    model.register_forward_pre_hook(lambda m, inputs: rows.append(len(inputs[0])))
    stored = generate(store, explainer(model), X, chunk=2)
    assert 0 < sum(rows) < 10 * 4  # 4 rows per image, some images were done
    for name in NAMES:
        np.testing.assert_array_equal(stored[name][:], clean[name][:])
        assert stored[name].meta["checksums"] == clean[name].meta["checksums"]


def test_a_partial_run_of_something_else_is_an_error(store):
    interrupted(store, after=9)
    with pytest.raises(StoreMismatch, match="seed"):
        generate(store, explainer(seed=3, names=["sg-sq"]), X, chunk=2)
    with pytest.raises(StoreMismatch, match="chunk"):
        generate(store, explainer(), X, chunk=5)
    generate(store, explainer(seed=3, names=["sg-sq"]), X, chunk=2, overwrite=True)


def test_a_damaged_part_is_computed_again(store):
    clean = generate(AttributionStore(store.root / "clean"), explainer(), X, chunk=2)
    interrupted(store, after=9)
    partial = store.root / "grad.partial" / "maps.npy"
    maps = np.lib.format.open_memmap(partial, mode="r+")
    maps[0] = 5
    maps.flush()
    stored = generate(store, explainer(), X, chunk=2)
    np.testing.assert_array_equal(stored["grad"][:], clean["grad"][:])


def test_a_journal_line_that_was_cut_is_dropped(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.add(0, 2, "aa")
    journal.add(2, 4, "bb")
    journal.close()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        journal = Journal(path)
        assert len(journal.done) == whole[:cut].count(b"\n")
        journal.add(4, 6, "cc")
        journal.close()
        again = Journal(path)
        assert again.done[4, 6] == "cc" and len(again.done) == whole[:cut].count(b"\n") + 1
        again.close()


SCRIPT = """
import sys, time
sys.path[:0] = [{tests!r}, {root!r}]
from helpers.explain_nets import images, seeded, small_net, torch
from roarfast.explain import AttributionStore, Explainer, Options, generate
torch.set_num_threads(1)
model = seeded(small_net)
model.register_forward_hook(lambda *_: time.sleep(0.05))
explainer = Explainer(model, {names!r}, options=Options(noise_samples={samples}), batch_size=4)
print("started", flush=True)
generate(AttributionStore({store!r}), explainer, images(10), chunk=1)
"""


def test_kill_9_and_resume(store):
    clean = generate(AttributionStore(store.root / "clean"), explainer(), X, chunk=1)
    tests = Path(__file__).resolve().parents[1]
    code = SCRIPT.format(
        tests=str(tests), root=str(tests.parent), store=str(store.root), names=NAMES, samples=FEW.noise_samples
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    journal = store.root / "sg-sq.partial" / "journal.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(RuntimeError, match="another process is writing the maps of 'grad'"):
        generate(store, explainer(), X, chunk=1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    process.stderr.close()
    assert store.names() == []
    done = [json.loads(line) for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
    model, rows = seeded(small_net), []
    model.register_forward_pre_hook(lambda m, inputs: rows.append(len(inputs[0])))
    stored = generate(store, explainer(model), X, chunk=1)
    assert sum(rows) <= 4 * (10 - len(done))
    for name in NAMES:
        np.testing.assert_array_equal(stored[name][:], clean[name][:])
        store.open(name, verify=True)


def test_hashes():
    a, b = seeded(small_net), seeded(small_net)
    assert model_hash(a) == model_hash(b)
    b.train()
    assert model_hash(a) == model_hash(b)  # the mode is no part of the model
    with torch.no_grad():
        b[1].running_mean[0] += 1e-6
    assert model_hash(a) != model_hash(b)
    swapped = nn.Sequential(*[nn.Tanh() if isinstance(m, nn.ReLU) else m for m in a])
    assert model_hash(a) != model_hash(swapped)
    values = np.arange(3000, dtype=np.float32)
    assert data_hash(values) == data_hash(torch.from_numpy(values)) == data_hash(values[::-1][::-1])
    assert len({data_hash(v) for v in (values, values[:-1], values.astype(int), values[::-1], values[:, None])}) == 5


def test_labels_are_part_of_the_data_where_they_are_used(store):
    labels = np.arange(10) % 4
    generate(store, explainer(names=["grad"], target="label"), X, labels=labels)
    with pytest.raises(StoreMismatch, match="data"):
        generate(store, explainer(names=["grad"], target="label"), X, labels=labels[::-1])
    with pytest.raises(ValueError, match="labels must be given"):
        generate(store, explainer(names=["gi"], target="label"), X)


def test_no_images(store):
    assert len(generate(store, explainer(), X[:0])["grad"]) == 0


def test_aggregations_of_one_estimator_are_stored_apart(store):
    e = explainer(names=["grad", "grad@mean(raw)"])
    stored = generate(store, e, X, chunk=4)
    assert {path.name for path in store.root.iterdir() if path.is_dir()} == {"grad", "grad.mean.raw"}
    found = {name: maps.meta["identity"]["aggregation"] for name, maps in stored.items()}
    assert found == {"grad": "mean(abs)", "grad@mean(raw)": "mean(raw)"}
    assert (stored["grad@mean(raw)"][:] < 0).any() and "grad@mean(raw)" in store
    np.testing.assert_array_equal(store.open("grad")[:], stored["grad"][:])
