# step NAME COMMAND...: runs a command in a shell of its own, notes minutes and outcome. summary: a table, and failure if any
# step failed or was left out. With FAIL_FAST=1 the first failure ends the run.
#
# Hours of steps may be run in pieces. A step that passes leaves a note in build/steps: a hash of the files it depends on
# (`inputs`, git pathspecs, set before the step; everything by default) and of the compilers. With RESUME=1 a step whose hash is
# still the one noted is not run again, and with ONLY=REGEX only steps whose names match are.
names=() outcomes=() minutes=()
inputs=(.)

step_hash() { # COMMAND...
  {
    printf '%s\n' "$*"
    git ls-files -s -- "${inputs[@]}"
    git diff -- "${inputs[@]}"
    git ls-files -o --exclude-standard -z -- "${inputs[@]}" | xargs -0 -r cat
    "${CXX:-c++}" --version
    if command -v nvcc >/dev/null; then nvcc --version; fi
    uname -m
  } | sha256sum | cut -c1-16
}

step() {
  local name=$1 began=$SECONDS outcome=passed chosen=1 hash note noted="" took="" at=""
  shift
  hash=$(step_hash "$@")
  note=build/steps/$(printf %s "$name" | tr -c 'A-Za-z0-9+' '-')
  if [ -f "$note" ]; then read -r noted took at <"$note"; fi
  if [ -n "${ONLY:-}" ] && ! [[ $name =~ $ONLY ]]; then chosen=0; fi
  if [ "$noted" = "$hash" ] && { [ "${RESUME:-0}" = 1 ] || [ $chosen = 0 ]; }; then
    names+=("$name") outcomes+=("passed, $at, same files") minutes+=("$took")
    return
  elif [ $chosen = 0 ]; then
    names+=("$name") outcomes+=("not run") minutes+=("")
    return
  fi
  printf '\n==> %s\n' "$name"
  rm -f "$note"
  ("$@") || outcome=FAILED
  took=$(awk -v s=$((SECONDS - began)) 'BEGIN { printf "%.1f", s / 60 }')
  names+=("$name") outcomes+=("$outcome") minutes+=("$took")
  mkdir -p build/steps
  if [ "$outcome" = passed ]; then echo "$hash $took $(date '+%F %H:%M')" >"$note"; fi
  if [ "$outcome" = FAILED ] && [ "${FAIL_FAST:-0}" = 1 ]; then summary; fi
}

skip() { # NAME REASON
  printf '\n==> %s: skipped, %s\n' "$1" "$2"
  names+=("$1") outcomes+=("skipped: $2") minutes+=("")
}

summary() {
  local i failed=0
  printf '\n%-64s %8s  %s\n' step minutes outcome
  for i in "${!names[@]}"; do
    printf '%-64s %8s  %s\n' "${names[$i]}" "${minutes[$i]}" "${outcomes[$i]}"
    case "${outcomes[$i]}" in FAILED | "not run") failed=1 ;; esac
  done
  printf '%-64s %8s\n' "this run" "$(awk -v s=$SECONDS 'BEGIN { printf "%.1f", s / 60 }')"
  exit $failed
}
