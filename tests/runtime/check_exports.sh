#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# libwavejit.so exports wavejit_* and nothing else, and exactly what its headers declare.
#   check_exports.sh <library> <nm> <header…>
set -euo pipefail
library=$1 nm=$2
shift 2
exported=$("$nm" -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u)
# A declaration may go on on the next line.
declared=$(cat "$@" | tr '\n' ' ' | grep -oE 'WAVEJIT_API [^;(]*\(' | grep -oE 'wavejit_[a-z_]+\($' | tr -d '(' | sort -u)
[[ -n $declared ]] || { echo "no declarations found in $*"; exit 1; }
diff <(echo "$declared") <(echo "$exported") || { echo "FAIL: left declared, right exported"; exit 1; }
echo "exports are the headers' $(wc -l <<<"$declared") functions"
