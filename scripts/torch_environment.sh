#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# PyTorch and transformers from PyPI in an environment of their own, build/torch-venv, for tests/torch; prints its Python.
#
# Installed once: about 600 MB to fetch, 1.4 GB on the disk. It lies beside the compiler's cache, so that clones share it.
# Whoever comes while another installs, waits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=scripts/torch_requirements.txt
# For tests alone: whoever uses wavejit.torch brings a PyTorch (docs/pytorch.md, "Installing").
if ! /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
  printf '[torch] %s has versions for Python 3.12 and later, and /usr/bin/python3 is %s: it is for the tests of ./dev, which has a Python of its own. To use wavejit.torch, any PyTorch will do: docs/pytorch.md, "Installing"\n' \
    "$requirements" "$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')" >&2
  exit 1
fi
stubs=scripts/torch_stubs.py
versions=$(sed -nE 's/^(torch|transformers)==(.*)/\1 \2/p' "$requirements" | paste -sd, | sed 's/,/ and /')
sum() { sha256sum "$1" | cut -c1-12; }
folder=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/wavejit-torch-$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')-$(sum "$requirements")
python=$folder/bin/python3
mkdir -p build "$folder"
exec 9>"$folder.lock"
flock 9
if [[ ! -f $folder/installed ]]; then
  printf '[torch] fetching %s from PyPI into %s: about 600 MB\n' "$versions" "$folder" >&2
  # Without pip inside: Debian's own pip serves every environment. What is imported is compiled then.
  /usr/bin/python3 -m venv --clear --without-pip "$folder"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps --no-compile --no-cache-dir \
    --requirement "$requirements" >&2; then
    printf '[torch] %s could not be installed; pip says why above. They come from PyPI (https://pypi.org, or the index that pip is set up for), for this Python, %s\n' \
      "$versions" "$("$python" -c 'import platform; print(platform.python_version())')" >&2
    exit 1
  fi
  : >"$folder/installed"
fi
if [[ $(cat "$folder/stubs" 2>/dev/null) != "$(sum "$stubs")" ]]; then
  /usr/bin/python3 "$stubs" "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" >&2
  "$python" -c 'import torch, transformers' >&2
  sum "$stubs" >"$folder/stubs"
fi
ln -sfn "$folder" build/torch-venv
printf '%s\n' "$PWD/build/torch-venv/bin/python3"
