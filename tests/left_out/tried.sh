#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A test with a version of something that is not known here: a failure leaves it out.   tried.sh <what was tried> <command…>
what=$1
shift
if "$@"; then exit 0; fi
echo "left out: $what was tried, and it does not do"
exit 77
