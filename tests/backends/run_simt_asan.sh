#!/usr/bin/env bash
# Builds the CUDA kernels for the host under AddressSanitizer and UBSan, and runs the tests of backend "simt" on them.
#   tests/backends/run_simt_asan.sh                               everything that runs on simt
#   tests/backends/run_simt_asan.sh tests/backends/test_simt.py   pytest arguments instead
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python}
export CXX=${CXX:-g++}

mkdir -p build
cmake -S . -B build/asan -G Ninja -DROARFAST_OUTPUT_DIR="$PWD/roarfast" -DROARFAST_CUDA=off -DROARFAST_SIMT_ASAN=ON \
  -DPython_EXECUTABLE="$(command -v "$PYTHON")" >build/asan.log || { cat build/asan.log; exit 1; }
cmake --build build/asan --target _simt_asan -- --quiet

# The interpreter is not instrumented, so the runtime has to be there first; libstdc++ so that it can wrap throw.
# Python keeps its memory to the end: leaks are not looked for.
export LD_PRELOAD="$("$CXX" -print-file-name=libasan.so) $("$CXX" -print-file-name=libstdc++.so)${LD_PRELOAD:+ $LD_PRELOAD}"
export ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export ROARFAST_SIMT_MODULE=_simt_asan
# NumPy's own allocator would hide small overruns between its arrays.
export PYTHONMALLOC=malloc
if [ $# -eq 0 ]; then set -- -n "${TEST_PROCESSES:-auto}" --dist loadfile -k "simt" tests; fi
exec "$PYTHON" -m pytest "$@"
