#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit beside Triton (bench/peers.py).   bench_peers.sh <build dir> [repetitions]
set -euo pipefail
build=$1
shift
python=$(scripts/python_environment.py triton)
exec /usr/bin/python3 bench/peers.py "$build/bin/wavejit_peer_probe" "$python" "$@"
