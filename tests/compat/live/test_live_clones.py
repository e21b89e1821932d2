"""road_evaluation, where a copy is: `ROARFAST_PEERS=folder make compat`, with `folder/road_evaluation/road`.

soco and roar need packages that do not install beside ours; their golden files stand for them.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import peer_cases as cases

torch = pytest.importorskip("torch")
FOLDER = Path(os.environ.get("ROARFAST_PEERS", "/nowhere")) / "road_evaluation"
if not (FOLDER / "road").is_dir():
    pytest.skip("no copy of road_evaluation in ROARFAST_PEERS", allow_module_level=True)

from roarfast._torchvision import import_torchvision  # noqa: E402

import_torchvision()
sys.path.insert(0, str(FOLDER))
import road  # noqa: E402
import road.road as road_module  # noqa: E402
from road.imputations import ChannelMeanImputer, NoisyLinearImputer, ZeroImputer  # noqa: E402

from roarfast import compat  # noqa: E402
from roarfast.compat import road as ours  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    compat.reset_status()


def inputs():
    images = torch.from_numpy(np.random.default_rng(3).random((6, 3, 16, 18)).astype(np.float32))
    maps = np.stack([cases.maps(6, 16, 18)] * 3, -1).astype(np.float64)
    return images, maps


def test_restored_exactly():
    owners = [NoisyLinearImputer, road.ImputedDataset, road, road_module]
    before = [dict(vars(owner)) for owner in owners]
    with compat.patch("road"):
        assert road.run_road is not before[2]["run_road"]
    for owner, attributes in zip(owners, before):
        assert all(vars(owner)[name] is value for name, value in attributes.items())
    assert compat.status()["road"].tested


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (NoisyLinearImputer, ours.NoisyLinearImputer),
        (ChannelMeanImputer, ours.ChannelMeanImputer),
        (ZeroImputer, ours.ZeroImputer),
    ],
)
@pytest.mark.parametrize("remove", [True, False])
def test_data_sets(theirs, mine, remove):
    images, maps = inputs()
    for share in (0.0, 0.1, 0.5, 0.9):
        results = []
        for how in ("theirs", "patched", "swapped"):
            items = [(x.clone(), i) for i, x in enumerate(images)]
            cases.seed_everything(11)
            with compat.patch("road") if how == "patched" else warnings.catch_warnings():
                cls, imputer = (ours.ImputedDataset, mine()) if how == "swapped" else (road.ImputedDataset, theirs())
                data = cls(items, maps, share, remove, imputer)
                results.append((torch.stack([data[i][0] for i in range(6)]), cases.state_digest()))
        for got, state in results[1:]:
            torch.testing.assert_close(got, results[0][0], rtol=0, atol=1e-5)
            assert state == results[0][1]


def test_batches_of_the_imputer():
    images, _ = inputs()
    masks = (torch.from_numpy(cases.maps(6, 16, 18)) > 0.3).float()
    cases.seed_everything(11)
    theirs, state = NoisyLinearImputer().batched_call(images, masks), cases.state_digest()
    cases.seed_everything(11)
    with compat.patch("road"):
        got = NoisyLinearImputer().batched_call(images, masks)
    torch.testing.assert_close(got, theirs, rtol=0, atol=1e-5)
    assert cases.state_digest() == state


def test_fault_mean_imputer_overwrites_its_input():
    images, _ = inputs()
    mask = torch.zeros(16, 18)
    before = images.clone()
    ours.ChannelMeanImputer()(images[0], mask)
    assert torch.equal(images, before)
    ChannelMeanImputer()(images[0], mask)
    assert not torch.equal(images, before)


def test_faults_of_run_road():
    images, maps = inputs()
    model = cases.small_model(3)
    data = [(x, 2) for x in images]
    arguments = (model, data, maps, None, [0.3], True, 6)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception):  # noqa: B017 - the name is compared, not assigned
            road.run_road(*arguments, "linear")
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            with pytest.raises((TypeError, RuntimeError)):
                road.run_road(*arguments)
        results = {}
        for mode in ("faithful", "fixed"):
            cases.seed_everything(11)
            with compat.patch("road", mode=mode):
                results[mode] = road.run_road(*arguments, imputation="zero")
            cases.seed_everything(11)
            swapped = ours.run_road(*arguments, imputation="zero", mode=mode)
            torch.testing.assert_close(torch.stack(swapped), torch.stack(results[mode]))
    assert results["faithful"][1] != results["fixed"][1]
