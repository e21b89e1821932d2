#!/usr/bin/env bash
# Builds the CPU kernels for aarch64 by a cross-compiler, calls every op under qemu-user (digest.cpp), and compares with the
# same program built for this machine: the bits must be equal. Needs g++-aarch64-linux-gnu and qemu-user.
#   tests/backends/run_aarch64.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
cross=${CROSS_CXX:-aarch64-linux-gnu-g++}
build=$PWD/build/aarch64
mkdir -p "$build"

# The flags of CMakeLists.txt, but for -O3: this is about results.
compile() {  # compiler, folder, source
  ${CMAKE_CXX_COMPILER_LAUNCHER:-} "$1" -std=c++17 -O2 -Wall -Wextra -Wno-psabi -fno-math-errno -ffp-contract=off \
    -fno-trapping-math -Icsrc '-DRF_BACKEND_NAME="cpu-base"' '-DRF_COMPILER="digest"' -c "$3" -o "$2/$(basename "$3").o"
}
export -f compile
link() {  # compiler, folder, more arguments of the last step
  local compiler=$1 folder=$build/$2
  shift 2
  mkdir -p "$folder"
  { git ls-files 'csrc/cpu/*.cpp'; echo tests/backends/digest.cpp; } |
    xargs -P "$(nproc)" -I{} bash -c "compile '$compiler' '$folder' {}"
  "$compiler" "$folder"/*.o -o "$folder/digest" -pthread "$@"
}
link "${CXX:-g++}" native
link "$cross" cross -static

"$build/native/digest" >"$build/native.txt"
"$build/native/digest" 3 | diff "$build/native.txt" -
qemu-aarch64 "$build/cross/digest" >"$build/cross.txt"
qemu-aarch64 "$build/cross/digest" 3 | diff "$build/cross.txt" -
diff "$build/native.txt" "$build/cross.txt"
echo "aarch64 and this machine agree: $(wc -l <"$build/native.txt") results, one and three threads"
