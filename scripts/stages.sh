#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Stages of a run of ./dev: how long each took, how much processor time, whether it failed; and the closing table. Sourced.
#
# A run keeps its report in build/report: stages.tsv, and ctest's own JUnit files. scripts/test_report.py reads them. A ./dev that
# ./dev soak starts has a report of its own (scripts/every_command.sh).
report=${WAVEJIT_DEV_REPORT:-build/report}
unset WAVEJIT_DEV_REPORT  # for this ./dev, not for what it tests
stage_failed=0

# processor_seconds: sets `seconds` to the user and system time of everything that this shell has waited for.
# Not in a subshell, which would have waited for nothing.
processor_seconds() {
  local user system file
  file=$(mktemp)
  times >"$file"
  { read -r user system; read -r user system; } <"$file"  # the second line is the children's: 1m2.345s 0m1.000s
  rm -f "$file"
  user=${user//,/.} system=${system//,/.}
  seconds=$(awk -v in_user="$user" -v in_system="$system" '
    function seconds(text, parts) { split(text, parts, /[ms]/); return parts[1] * 60 + parts[2] }
    BEGIN { printf "%.2f", seconds(in_user) + seconds(in_system) }')
}

begin_report() {
  rm -rf "$report"
  mkdir -p "$report"
  : >"$report/stages.tsv"
  if [[ -n ${WAVEJIT_DEV_INSTALL:-} ]]; then
    # shellcheck disable=SC2086  # two figures
    record install $WAVEJIT_DEV_INSTALL 0
  fi
  trap end_report EXIT
}

# record <name> <wall seconds> <processor seconds> <exit code>
record() { printf '%s\t%s\t%s\t%s\n' "$@" >>"$report/stages.tsv"; }

# stage <name> <command…>: runs it in a subshell that ends at the first failure; sets `status`, and stage_failed for good.
# Never call it in a condition: there, the subshell would go on behind a failure.
stage() {
  local name=$1 begun=$SECONDS before
  shift
  processor_seconds
  before=$seconds
  set +e
  (set -e; "$@")
  status=$?
  set -e
  processor_seconds
  record "$name" "$((SECONDS - begun))" "$(awk "BEGIN { print $seconds - $before }")" "$status"
  if [[ $status != 0 ]]; then
    stage_failed=1
    say "$name failed"
  fi
}

# The stages behind need what this one makes.
needed_stage() {
  stage "$@"
  if [[ $status != 0 ]]; then exit 1; fi
}

# install_is_done: how long the work before the first stage took, also for the ./dev that goes on in the Debian 13.
install_is_done() {
  if ! inside_root; then
    processor_seconds
    export WAVEJIT_DEV_INSTALL="$((SECONDS - started)) $seconds"
  fi
}

# The closing table is printed however the run ends; its last line counts tests.
end_report() {
  local status=$?
  trap - EXIT
  /usr/bin/python3 scripts/test_report.py "$report" || status=1
  if [[ $status == 0 ]]; then status=$stage_failed; fi
  exit "$status"
}
