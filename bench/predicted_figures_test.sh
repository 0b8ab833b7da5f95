#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What a column's head may say, which cells are figures, and that --check sees each of them.
#   predicted_figures_test.sh <wavejit_predicted_figures> <folder>
set -euo pipefail
program=$1
page=$2/figures.md
wrong=$2/wrong_columns.md
lists='sparse_indexer bf16 b1 q1 k512 h64 top=64'
merge='attention_merge bf16 b1 q1 h8 d128 parts=2'

fail() { echo "$*" >&2; cat "$page" >&2; exit 1; }

cat >"$page" <<PAGE
<!-- predicted on gfx950 -->
| cycles | a call | \`launch=sparse_select\`: lists | on \`gfx942\` | bytes |
|---|---|---|---|---|
| \`$lists\` | 0 | 0 | 0 | 3.2 MB |
| \`$merge\` | 0 | | – | 12 |
PAGE
sed 's/ 12 |/ 0 |/; s/launch=sparse_select/launch=of_no_call/' "$page" >"$wrong"
if "$program" "$wrong" --only "top=64"; then fail "a launch that no call has was predicted"; fi
sed -i 's/ 12 |/ 12 rows |/' "$page"
"$program" "$page"

row() { grep -F "| \`$1\`" "$page"; }
cell() { row "$1" | cut -d '|' -f "$(($2 + 2))" | tr -d ' ,'; }
(($(cell "$lists" 2) > 0 && $(cell "$lists" 2) < $(cell "$lists" 1))) || fail "the lists' launch is not a part of its call"
(($(cell "$lists" 3) != $(cell "$lists" 1))) || fail "gfx942 has the cycles of gfx950"
[[ $(row "$lists") == *' | 3.2 MB |' ]] || fail "a cell of the writer's was changed"
[[ $(row "$merge") == *' | | – | 12 rows |' ]] || fail "cells of the writer's were changed"

"$program" --check "$page" || fail "what was just written is not current"
for column in 1 2 3; do
  awk -F '|' -v OFS='|' -v row="$lists" -v column=$((column + 2)) 'index($0, row) { $column = " 1 " } 1' "$page" >"$wrong"
  if "$program" --check "$wrong"; then fail "a wrong figure in column $column was not seen"; fi
  "$program" --check "$wrong" --only parts=2 || fail "a row that nobody asked for was compared"
  if "$program" --check "$wrong" --only parts=2 --only top=64 k512; then fail "a row of the second --only was not compared"; fi
done
