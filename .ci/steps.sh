# step NAME COMMAND...: runs a command in a shell of its own, notes minutes and outcome. summary: a table, and failure if any
# step failed. With FAIL_FAST=1 the first failure ends the run.
names=() outcomes=() minutes=()

step() {
  local name=$1 began=$SECONDS outcome=passed
  shift
  printf '\n==> %s\n' "$name"
  ("$@") || outcome=FAILED
  names+=("$name") outcomes+=("$outcome") minutes+=("$(awk -v s=$((SECONDS - began)) 'BEGIN { printf "%.1f", s / 60 }')")
  if [ "$outcome" = FAILED ] && [ "${FAIL_FAST:-0}" = 1 ]; then summary; fi
}

skip() { # NAME REASON
  printf '\n==> %s: skipped, %s\n' "$1" "$2"
  names+=("$1") outcomes+=("skipped: $2") minutes+=("")
}

summary() {
  local i failed=0
  printf '\n%-52s %8s  %s\n' step minutes outcome
  for i in "${!names[@]}"; do
    printf '%-52s %8s  %s\n' "${names[$i]}" "${minutes[$i]}" "${outcomes[$i]}"
    if [ "${outcomes[$i]}" = FAILED ]; then failed=1; fi
  done
  printf '%-52s %8s\n' total "$(awk -v s=$SECONDS 'BEGIN { printf "%.1f", s / 60 }')"
  exit $failed
}
