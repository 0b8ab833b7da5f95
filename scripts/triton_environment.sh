#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Triton from PyPI in an environment of its own, build/peers-venv, for ./dev bench peers and tests/triton; prints its Python.
#
# Installed once: about 290 MB to fetch. Triton needs no GPU to compile. Whoever comes while another installs, waits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
triton=3.9.0
environment=build/peers-venv
python=$PWD/$environment/bin/python3
mkdir -p build
exec 9>build/peers-venv.lock
flock 9
if [[ $("$python" -c 'import importlib.metadata as m; print(m.version("triton"))' 2>/dev/null) != "$triton" ]]; then
  printf '[triton] installing Triton %s into %s\n' "$triton" "$environment" >&2
  # Without pip inside: Debian's own pip serves every environment.
  /usr/bin/python3 -m venv --clear --without-pip "$environment"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input "triton==$triton" >&2; then
    printf '[triton] Triton %s could not be installed: it comes from PyPI (https://pypi.org, or the index that pip is set up for), which must be reachable\n' \
      "$triton" >&2
    exit 1
  fi
fi
printf '%s\n' "$python"
