#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Whether aiter_anchors.json, aiter_backward.json and triton_anchors.json say what the clock predicts today for those kernels, which come from PyPI.
#
#   check_outside_kernels.sh <libwavejit_simgpu.so>
set -euo pipefail
library=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
today=$(mktemp -d)
trap 'rm -rf "$today"' EXIT
/usr/bin/python3 bench/aiter_clock.py "$library" "$(scripts/aiter_package.sh)" "$today/aiter_anchors.json" >/dev/null
/usr/bin/python3 bench/aiter_clock.py "$library" "$(scripts/aiter_package.sh)" --backward "$today/aiter_backward.json" >/dev/null
"$(scripts/python_environment.py triton)" bench/triton_clock.py "$library" "$today/triton_anchors.json" >/dev/null
for file in aiter_anchors.json aiter_backward.json triton_anchors.json; do
  if ! diff "bench/$file" "$today/$file"; then
    printf 'bench/%s is not what the clock predicts today; ./dev bench timing-model writes it anew\n' "$file" >&2
    exit 1
  fi
done
