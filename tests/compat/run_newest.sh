#!/usr/bin/env bash
# The drop-ins on another Python with the newest NumPy, where road_evaluation itself fails: an environment of its own, the package
# installed into it, and the tests of the imputers, scores and data sets against golden files.
#   tests/compat/run_newest.sh [PYTHON [NUMPY]]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3.13}
numpy=${2:-"numpy>=2.5,<2.6"}
folder=$PWD/build/newest
"$python" -m venv "$folder"
ROARFAST_CUDA=off ROARFAST_SIMT=OFF "$folder/bin/pip" install --quiet --disable-pip-version-check \
  "$numpy" torch torchvision scipy pytest pytest-xdist hypothesis .
"$folder/bin/python" -c 'import sys, numpy, scipy, torch; print(sys.version.split()[0], numpy.__version__, scipy.__version__, torch.__version__)'
# Not `python -m pytest`, which would find the package of the source tree.
"$folder/bin/pytest" tests/compat/test_compat_golden.py tests/compat/test_compat_imputers.py
