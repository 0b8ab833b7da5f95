#!/usr/bin/env bash
# wavejit beside Triton (bench/peers.py).   bench_peers.sh <build dir> [repetitions]
#
# Triton comes from PyPI into build/peers-venv, once: about 290 MB to fetch. It needs no GPU to compile.
set -euo pipefail
build=$1
shift
triton=3.9.0
environment=build/peers-venv
python=$environment/bin/python3
if [[ $("$python" -c 'import importlib.metadata as m; print(m.version("triton"))' 2>/dev/null) != "$triton" ]]; then
  printf '[peers] installing Triton %s into %s\n' "$triton" "$environment"
  # Without pip inside: Debian's own pip serves every environment.
  /usr/bin/python3 -m venv --clear --without-pip "$environment"
  /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input "triton==$triton"
fi
exec /usr/bin/python3 bench/peers.py "$build/bin/wavejit_peer_probe" "$python" "$@"
