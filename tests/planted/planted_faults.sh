#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the compiler with planted faults and runs the families' tests under each: README.md.   planted_faults.sh [--chosen] [<first> <last>]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seed=51
work=build/planted
mkdir -p $work/tree
python3 tests/planted/plant.py draw . $seed >$work/faults.txt
# The files that are other than the copy's, so that a second run builds what has changed since.
git ls-files | tar -c -T - | tar -x -C $work/tree
python3 tests/planted/plant.py write $work/tree $work/faults.txt
[[ -f $work/tree/build/dev/build.ninja ]] || (cd $work/tree && cmake --preset dev >../configure.log)
ninja -C $work/tree/build/dev wavejit wavejit_codegen
# The dev preset's programs and libraries, but for the compiler and the library that knows its generators by their ids.
rm -rf $work/run
mkdir $work/run
cp -rl build/dev/bin build/dev/lib $work/run/
rm $work/run/lib/libwavejit.so* $work/run/lib/libwavejit_codegen.so
cp -a $work/tree/build/dev/lib/libwavejit.so* $work/tree/build/dev/lib/libwavejit_codegen.so $work/run/lib/
# Which tests reach which faults is kept for the same sources, lists and changes.
key=$(git rev-parse HEAD; git diff HEAD; cat $work/faults.txt)
key=$(sha256sum <<<"$key" | cut -c1-12)
mkdir -p $work/reached/$key
ln -sfn ../reached/$key $work/run/reached
python3 tests/planted/run.py $work/run $work/faults.txt tests/planted/seen.txt "$@"
