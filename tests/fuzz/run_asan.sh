#!/usr/bin/env bash
# The standing attack on the CPU kernels under AddressSanitizer and UBSan; minutes of compiling the first time.
#   tests/fuzz/run_asan.sh --minutes 30 --seed 1
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export ROARFAST_ASAN_COMMAND="$here/fuzz_run.py"
exec bash "$here/../backends/run_cpu_asan.sh" "$@"
