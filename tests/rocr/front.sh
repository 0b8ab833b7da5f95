#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Tests of this project's HIP front that AMD's HIP passes as well.   front.sh <wavejit> <hip_front_test>
set -euo pipefail
wavejit=$1 program=$2
here=$(dirname "${BASH_SOURCE[0]}")
filter=$(grep -v '^#' "$here/front_alike.txt" | paste -sd:)
"$wavejit" sim --target gfx950x2 -- env WAVEJIT_TEST_DEVICE=hip LD_PRELOAD="libdtif.so libamdhip64.so.7" "$program" --gtest_brief=1 "--gtest_filter=$filter"
