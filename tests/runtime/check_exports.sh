#!/usr/bin/env bash
# libwavejit.so exports wavejit_* and nothing else, and exactly what wavejit.h declares.   check_exports.sh <library> <header> <nm>
set -euo pipefail
exported=$("$3" -D --defined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' | sort -u)
declared=$(grep -oE 'WAVEJIT_API [^;(]*\(' "$2" | grep -oE 'wavejit_[a-z_]+\($' | tr -d '(' | sort -u)
[[ -n $declared ]] || { echo "no declarations found in $2"; exit 1; }
diff <(echo "$declared") <(echo "$exported") || { echo "FAIL: left declared, right exported"; exit 1; }
echo "exports are the header's $(wc -l <<<"$declared") functions"
