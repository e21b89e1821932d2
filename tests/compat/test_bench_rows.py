"""What bench/peers_dropins.py times gives equal results on both sides: rows whose rivals are SciPy or restated peers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.peer_cases import seed_everything

pytest.importorskip("torch")
pytest.importorskip("scipy")
BENCH = Path(__file__).resolve().parents[2] / "bench"


def test_rows_give_equal_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    import peers_dropins

    ops = []
    for op, case, _, ours, theirs, floor, tol in peers_dropins.rows(quick=True):
        seed_everything(0)
        mine = np.asarray(ours())
        seed_everything(0)
        other = np.asarray(theirs())
        if tol is None:
            assert (mine == other).mean() > 0.999, case
        else:
            np.testing.assert_allclose(mine, other, rtol=0, atol=tol, err_msg=case)
        assert floor >= 1
        ops.append(op)
    assert set(ops) == {f"compat {name}" for name in ("ndimage", "road", "soco", "roar", "captum")}
