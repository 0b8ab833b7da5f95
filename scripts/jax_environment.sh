#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# JAX with its ROCm plug-in from PyPI in an environment of its own, build/jax-venv, for tests/rocr/python; prints its Python.
#
# Installed once: 260 MB to fetch, 1 GB on disk. The plug-in is linked with libraries that Debian lacks, or has for a newer C library
# only (rocprofiler-sdk, roctracer, RCCL, MIOpen, hipSOLVER, …). In their place stands one library with their names, whose functions
# do nothing and answer 0: what calls more of them than their start has no right result. rocBLAS is Debian's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=0.9.1
environment=build/jax-venv
python=$PWD/$environment/bin/python3
mkdir -p build
exec 9>build/jax-venv.lock
flock 9
if [[ $(cat "$environment/installed" 2>/dev/null) != "$version" ]]; then
  printf '[jax] installing JAX %s and its ROCm plug-in into %s\n' "$version" "$environment" >&2
  # Without pip inside: Debian's own pip serves every environment.
  /usr/bin/python3 -m venv --clear --without-pip --system-site-packages "$environment"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input \
    "jax==$version" "jaxlib==$version" "jax-rocm7-pjrt==$version" "jax-rocm7-plugin==$version" >&2; then
    printf '[jax] JAX %s could not be installed: it comes from PyPI (https://pypi.org, or the index that pip is set up for), which must be reachable\n' \
      "$version" >&2
    exit 1
  fi
  packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  scripts/empty_libraries.sh "$environment/libraries" "$packages/jax_plugins/xla_rocm7/xla_rocm_plugin.so" "$packages"/jax_rocm7_plugin/*.so
  printf '%s\n' "$version" >"$environment/installed"
fi
printf '%s\n' "$python"
