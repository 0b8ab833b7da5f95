#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A test that cannot run here.   missing.sh <WORD> <what is missing> [command…]
#
# With a command: the test itself, with something of a version that is not known; a failure is one. Either is left out
# when the user says so.
switch=WAVEJIT_WITHOUT_$1
what=$2
shift 2
if [[ ${!switch:-0} == 1 ]]; then
  echo "left out: $what ($switch=1)"
  exit 77
fi
if [[ $# -gt 0 ]]; then exec "$@"; fi
echo "$what: './dev install' tries to get it. $switch=1 leaves this test out."
exit 1
