#!/usr/bin/env bash
# Builds the CPU kernels under AddressSanitizer and UBSan into a copy of the package, and runs the tests of the ops on
# it. Minutes of compiling, so by hand after a change of csrc/cpu, not in CI.
#   tests/backends/run_cpu_asan.sh                           every op
#   tests/backends/run_cpu_asan.sh ops/test_fill.py -k nan   pytest arguments instead, from the folder of the tests
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python}
export CXX=${CXX:-g++}

copy=$PWD/build/cpu-asan/package
mkdir -p "$copy"
cp -r roarfast "$copy/"
rm -f "$copy"/roarfast/*.so
cmake -S . -B build/cpu-asan -G Ninja -DCMAKE_BUILD_TYPE=None -DROARFAST_CUDA=off -DROARFAST_SIMD_LEVELS=v3 \
  -DCMAKE_CXX_FLAGS="-O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer" -DROARFAST_OUTPUT_DIR="$copy/roarfast" \
  -DPython_EXECUTABLE="$(command -v "$PYTHON")" >build/cpu-asan.log || { cat build/cpu-asan.log; exit 1; }
cmake --build build/cpu-asan -- --quiet

# As in run_simt_asan.sh.
export LD_PRELOAD="$("$CXX" -print-file-name=libasan.so) $("$CXX" -print-file-name=libubsan.so) $("$CXX" -print-file-name=libstdc++.so)"
export ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export PYTHONPATH=$copy PYTHONMALLOC=malloc
# tests/fuzz/run_asan.sh runs a script instead; it asks for memory that nobody has.
if [ -n "${ROARFAST_ASAN_COMMAND:-}" ]; then
  export ASAN_OPTIONS="$ASAN_OPTIONS:allocator_may_return_null=1"
  exec "$PYTHON" "$ROARFAST_ASAN_COMMAND" "$@"
fi
cd tests
if [ $# -eq 0 ]; then
  set -- ops data/test_impute_dataset.py
fi
exec "$PYTHON" -m pytest -q -n "${TEST_PROCESSES:-auto}" --rootdir=.. -c ../pyproject.toml "$@" -k "not simt"
