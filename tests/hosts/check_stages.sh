#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Stages of ./dev: what they took, what failed, where a run stops.   check_stages.sh <source dir>
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$1/scripts" "$work/"
cd "$work"
failed=0
complain() { echo "FAIL: $*"; failed=1; }

# run <script>: with the stages of ./dev, as ./dev runs them
run() {
  status=0
  bash -c 'set -euo pipefail; started=0; say() { echo "$*"; }; . scripts/host/settings.sh; . scripts/stages.sh; begin_report; '"$1" >out 2>&1 || status=$?
}
# One passed test, as ctest writes it.
passed='echo "<testsuite><testcase name=\"a\" status=\"run\" time=\"0\"/></testsuite>" >build/report/dev.xml'

run "$passed; stage work bash -c 'for ((i = 0; i < 200000; ++i)); do :; done'"
[[ $status == 0 ]] || complain "a good run ends with $status: $(cat out)"
[[ $(tail -n 1 out) == "1 passed, 0 failed" ]] || complain "last line: $(tail -n 1 out)"
awk -F '\t' '$1 == "work" && $3 > 0.05 { found = 1 } END { exit !found }' build/report/stages.tsv ||
  complain "the time of a stage's children is not there: $(cat build/report/stages.tsv)"

run "$passed; stage one false; stage two true; stage three bash -c 'exit 3'"
[[ $status == 1 ]] || complain "a run with failed stages ends with $status"
[[ $(tail -n 1 out) == "1 passed, 2 failed" ]] || complain "last line: $(tail -n 1 out)"
grep -q '^two' build/report/stages.tsv || complain "a failed stage kept the next from running"

run "$passed; stage one false; needed_stage two true; needed_stage three false; stage four touch ran"
[[ $status == 1 ]] || complain "a run that stopped ends with $status"
grep -q '^three' build/report/stages.tsv || complain "an earlier failure stopped the run at a stage that was well"
[[ ! -e ran ]] || complain "the run went on behind a stage that was needed"
[[ $(tail -n 1 out) == "1 passed, 2 failed" ]] || complain "last line: $(tail -n 1 out)"

# In a stage the first failure ends it.
run "$passed; steps() { false; touch went_on; }; stage steps steps"
[[ ! -e went_on && $status == 1 ]] || complain "a stage goes on behind a failure"

run "true"
[[ $status == 1 ]] || complain "a run without tests ends with $status"
[[ $failed == 0 ]] && echo "stages are counted and stop where they should"
exit "$failed"
