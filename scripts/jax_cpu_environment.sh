#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# JAX for CPUs from PyPI in an environment of its own, build/jax-cpu-venv, for tests/jax; prints its Python.
#
# Installed once: about 150 MB to fetch, 400 MB on disk, beside the compiler's cache as PyTorch's environment is. JAX with its plug-in for
# ROCm has another, which is for soak: scripts/jax_environment.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=scripts/jax_requirements.txt
version=$(sed -n 's/^jax==//p' "$requirements")
folder=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/wavejit-jax-$(/usr/bin/python3 -c 'import platform; print(platform.python_version())')-$(sha256sum "$requirements" | cut -c1-12)
python=$folder/bin/python3
mkdir -p build "$folder"
exec 9>"$folder.lock"
flock 9
if [[ ! -f $folder/installed ]]; then
  printf '[jax] fetching JAX %s from PyPI into %s: about 150 MB\n' "$version" "$folder" >&2
  # Without pip inside: Debian's own pip serves every environment. What is imported is compiled then.
  /usr/bin/python3 -m venv --clear --without-pip "$folder"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps --no-compile --no-cache-dir \
    --requirement "$requirements" >&2; then
    printf '[jax] JAX %s could not be installed; pip says why above. It comes from PyPI (https://pypi.org, or the index that pip is set up for), for this Python, %s\n' \
      "$version" "$("$python" -c 'import platform; print(platform.python_version())')" >&2
    exit 1
  fi
  JAX_PLATFORMS=cpu "$python" -c 'import jax; jax.devices()' >&2
  : >"$folder/installed"
fi
ln -sfn "$folder" build/jax-cpu-venv
printf '%s\n' "$PWD/build/jax-cpu-venv/bin/python3"
