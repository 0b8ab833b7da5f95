#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tinygrad from PyPI in an environment of its own, build/tinygrad-venv, for tests/rocr/python; prints its Python.
#
# Installed once: 3 MB to fetch; it needs nothing else. Debian's numpy is seen from inside. Whoever comes while another installs, waits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tinygrad=0.14.0
environment=build/tinygrad-venv
python=$PWD/$environment/bin/python3
mkdir -p build
exec 9>build/tinygrad-venv.lock
flock 9
if [[ $("$python" -c 'import importlib.metadata as m; print(m.version("tinygrad"))' 2>/dev/null) != "$tinygrad" ]]; then
  printf '[tinygrad] installing tinygrad %s into %s\n' "$tinygrad" "$environment" >&2
  # Without pip inside: Debian's own pip serves every environment.
  /usr/bin/python3 -m venv --clear --without-pip --system-site-packages "$environment"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps "tinygrad==$tinygrad" >&2; then
    printf '[tinygrad] tinygrad %s could not be installed: it comes from PyPI (https://pypi.org, or the index that pip is set up for), which must be reachable\n' \
      "$tinygrad" >&2
    exit 1
  fi
fi
printf '%s\n' "$python"
