#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PyTorch and transformers from PyPI in an environment of their own, build/torch-venv, for tests/torch; prints its Python.
#
# Installed once: about 600 MB to fetch, 1.6 GB on the disk. It lies beside the compiler's cache where ./dev has one, so that
# clones share it. Whoever comes while another installs, waits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=scripts/torch_requirements.txt
versions=$(sed -nE 's/^(torch|transformers)==(.*)/\1 \2/p' "$requirements" | paste -sd, | sed 's/,/ and /')
folder=${CCACHE_DIR:-$PWD/build}/wavejit-torch-$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')
python=$folder/bin/python3
mkdir -p build "$folder"
exec 9>"$folder.lock"
flock 9
wanted=$(cat "$requirements" scripts/torch_stubs.py scripts/torch_environment.sh | sha256sum)
if [[ $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]]; then
  printf '[torch] fetching %s from PyPI into %s: about 600 MB\n' "$versions" "$folder" >&2
  # Without pip inside: Debian's own pip serves every environment. What is imported is compiled then.
  /usr/bin/python3 -m venv --clear --without-pip "$folder"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps --no-compile --no-cache-dir \
    --requirement "$requirements" >&2; then
    printf '[torch] %s could not be installed: they come from PyPI (https://pypi.org, or the index that pip is set up for), which must be reachable\n' \
      "$versions" >&2
    exit 1
  fi
  /usr/bin/python3 scripts/torch_stubs.py "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >&2
  "$python" -c 'import torch, transformers' >&2
  printf '%s\n' "$wanted" >"$folder/installed"
fi
ln -sfn "$folder" build/torch-venv
printf '%s\n' "$PWD/build/torch-venv/bin/python3"
