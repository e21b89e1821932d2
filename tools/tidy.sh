#!/usr/bin/env bash
# clang-tidy (.clang-tidy) over the CPU kernels, at the SIMD level of this package that has intrinsics, and the bindings.
#   tools/tidy.sh [FILES]
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/tidy
mkdir -p "$build"
cmake -S . -B "$build" -G Ninja -DROARFAST_CUDA=off -DROARFAST_SIMD_LEVELS=v3 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DPython_EXECUTABLE="$(command -v python)" >"$build.log" || { cat "$build.log"; exit 1; }
# A file is compiled once per level: the last command of each is that of v3. Flags that only GCC knows go.
python - "$build/compile_commands.json" <<'END'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
commands = {entry["file"]: entry for entry in json.loads(path.read_text())}
for entry in commands.values():
    entry["command"] = entry["command"].replace(" -fno-gnu-unique", "")
path.write_text(json.dumps(list(commands.values())))
END
if [ $# -eq 0 ]; then mapfile -t files < <(git ls-files 'csrc/cpu/*.cpp' 'csrc/python/*.cpp'); set -- "${files[@]}"; fi
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet
