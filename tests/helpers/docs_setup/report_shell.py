"""What a reader of docs/report.md has in the working folder: two finished studies."""

import shutil
import subprocess
from pathlib import Path

from helpers.study_helpers import write_tiny

_config = write_tiny(Path("."), drops="[0.3]", estimators='["grad^2", "rand"]', postprocess='["plain", "gaussian(1)"]')
subprocess.run(["roarfast", "run", str(_config), "--out", "runs/mine"], check=True, capture_output=True)
shutil.copytree("runs/mine", "runs/cifar10-subset")
