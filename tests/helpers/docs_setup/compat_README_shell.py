"""What a reader of docs/compat/README.md has in the working folder: a script and tests that use the peers."""

from pathlib import Path

_SCRIPT = """
import numpy as np
from quantus.functions.perturb_func import noisy_linear_imputation

image = np.random.default_rng(0).random((3, 8, 8)).reshape(-1)
noisy_linear_imputation(arr=image.reshape(3, 8, 8), indices=np.arange(0, 64, 5))
"""
Path("script.py").write_text("import pytorch_grad_cam\n" + _SCRIPT)
Path("tests").mkdir()
Path("tests", "test_mine.py").write_text("def test_mine():\n    import quantus\n\n    assert quantus.ROAD\n")
