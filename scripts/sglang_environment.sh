#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SGLang from PyPI in an environment of its own, build/sglang-venv, for tests/sglang; prints its Python.
#
# Installed once: about 330 MB to fetch, 1.2 GB on disk, most of it Triton, beside vLLM's environment, whose packages and PyTorch it
# reads and leaves as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
requirements=scripts/sglang_requirements.txt
vllm_python=$(scripts/vllm_environment.sh)
packages=$("$vllm_python" -c 'import pathlib, sys; print(*dict.fromkeys(str(pathlib.Path(path).resolve()) for path in sys.path if path.endswith("site-packages")), sep="\n")')
version=$(sed -n 's/^sglang==//p' "$requirements")
folder=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/wavejit-sglang-$("$vllm_python" -c 'import platform; print(platform.python_version())')-$(cat "$requirements" scripts/vllm_requirements.txt scripts/torch_requirements.txt | sha256sum | cut -c1-12)
python=$folder/bin/python3
mkdir -p build "$folder"
exec 9>"$folder.lock"
flock 9
if [[ ! -f $folder/installed ]]; then
  printf '[sglang] fetching sglang %s from PyPI into %s: about 330 MB\n' "$version" "$folder" >&2
  # Without pip inside: Debian's own pip serves every environment. What is imported is compiled then.
  /usr/bin/python3 -m venv --clear --without-pip "$folder"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps --no-compile --no-cache-dir \
    --requirement "$requirements" >&2; then
    printf '[sglang] sglang %s could not be installed; pip says why above. It comes from PyPI (https://pypi.org, or the index that pip is set up for), for this Python, %s\n' \
      "$version" "$("$python" -c 'import platform; print(platform.python_version())')" >&2
    exit 1
  fi
  printf '%s\n' "$packages" >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/others.pth"
  "$python" -c 'import importlib.metadata; importlib.metadata.version("sglang"); import torch' >&2
  : >"$folder/installed"
fi
ln -sfn "$folder" build/sglang-venv
printf '%s\n' "$PWD/build/sglang-venv/bin/python3"
