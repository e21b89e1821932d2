#!/usr/bin/env bash
# Builds the CPU kernels with another compiler into a copy of the package, and runs the tests of the ops on it.
#   CXX=clang++-19 tests/backends/run_compiler.sh                          every op
#   CXX=clang++-19 tests/backends/run_compiler.sh ops/test_fill.py -k nan  pytest arguments instead, from the folder of the tests
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python}
: "${CXX:?set CXX to the compiler to try}"
compiler=$CXX
unset CXX  # torch.compile, which a test uses, would take it for its own code

build=$PWD/build/compiler-$(basename "$compiler")
copy=$build/package
mkdir -p "$copy"
cp -r roarfast "$copy/"
rm -f "$copy"/roarfast/*.so
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DROARFAST_CUDA=off -DROARFAST_SIMD_LEVELS=v3 \
  -DROARFAST_OUTPUT_DIR="$copy/roarfast" \
  -DPython_EXECUTABLE="$(command -v "$PYTHON")" >"$build.log" || { cat "$build.log"; exit 1; }
cmake --build "$build" -- --quiet

export PYTHONPATH=$copy
cd tests
if [ $# -eq 0 ]; then set -- ops data/test_impute_dataset.py; fi
for level in base v3; do
  ROARFAST_SIMD=$level "$PYTHON" -m pytest -q -n "${TEST_PROCESSES:-auto}" --rootdir=.. -c ../pyproject.toml "$@" -k "not simt"
done
