#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# CuPy for ROCm from PyPI in an environment of its own, build/cupy-venv, for tests/rocr/python; prints its Python.
#
# Installed once: 73 MB to fetch. It compiles with hiprtc, and looks for ROCm's headers in one folder, build/cupy-venv/rocm: Debian's HIP,
# and rocPRIM and rocThrust as scripts/rocm_programs.sh unpacks them. What Debian has no library of is an empty one
# (scripts/empty_libraries.sh), and `hipcc`, which it asks once what it would include, is clang.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=14.2.0
environment=build/cupy-venv
python=$PWD/$environment/bin/python3
mkdir -p build
exec 9>build/cupy-venv.lock
flock 9
if [[ $(cat "$environment/installed" 2>/dev/null) != "$version" ]]; then
  printf '[cupy] installing CuPy %s into %s\n' "$version" "$environment" >&2
  # Without pip inside: Debian's own pip serves every environment.
  /usr/bin/python3 -m venv --clear --without-pip --system-site-packages "$environment"
  if ! /usr/bin/python3 -m pip --python "$python" --quiet --disable-pip-version-check install --no-input --no-deps "cupy-rocm-7-0==$version" >&2; then
    printf '[cupy] CuPy %s could not be installed: it comes from PyPI (https://pypi.org, or the index that pip is set up for), which must be reachable\n' \
      "$version" >&2
    exit 1
  fi
  packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  hip=$(realpath build/rocm/cupy/usr/lib/x86_64-linux-gnu)
  mapfile -t objects < <(find "$packages" -path '*cupy*' -name '*.so')
  scripts/empty_libraries.sh "$environment/libraries" "${objects[@]}" "$hip"/libhipblas.so.3
  # Debian has these two.
  for name in libhipblas.so.3 libhipfft.so.0; do ln -sf "$hip/$name" "$environment/libraries/$name"; done
  mkdir -p "$environment/rocm/include" "$environment/rocm/bin"
  ln -sfn "$(realpath build/rocm/cupy/usr/include/thrust)" "$environment/rocm/include/thrust"
  ln -sfn "$(realpath build/rocm/rocprim/usr/include/rocprim)" "$environment/rocm/include/rocprim"
  for name in hip hsa; do ln -sfn "/usr/include/$name" "$environment/rocm/include/$name"; done
  cat >"$environment/rocm/bin/hipcc" <<'HIPCC'
#!/usr/bin/env bash
words=()
for word in "$@"; do
  case $word in
    --genco) words+=(--gpu-bundle-output) ;;
    --preprocess) words+=(-E) ;;
    *) words+=("$word") ;;
  esac
done
exec clang++-22 -x hip --cuda-device-only --offload-arch=gfx942 --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode -w "${words[@]}"
HIPCC
  chmod +x "$environment/rocm/bin/hipcc"
  printf '%s\n' "$version" >"$environment/installed"
fi
printf '%s\n' "$python"
