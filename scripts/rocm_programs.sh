#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs and libraries of AMD's that run on simulated GPUs in tests (tests/rocr/programs), from Debian; prints the folder.
#
#   rocm_programs.sh conformance | rocminfo | rocrand | rocblas | rocfft | rocprim | cupy
#
# Each package at one version, known by its content; unpacked, not installed: some ask for packages that no suite has. Fetched
# once, into a folder beside the compiler's cache, so that clones share it. Whoever comes while another fetches, waits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=${1:-}
# A line a package: name, version, SHA-256, and what of it is unpacked (of rocBLAS' kernels those of gfx942 alone).
packages() {
  case $name in
    conformance)
      echo 'libhsa-runtime64-tests 7.2.4+dfsg-1~exp1 cb9258623dac91aeacc6112756ac6837614e48493fa0242f9787a67203891802 *'
      echo 'libhwloc15 2.12.0-4 aa53c4a1878475e7309f2c265c54d9a8a4602dec95564cf84d471d7376ff616c *.so*'
      ;;
    rocminfo) echo 'rocminfo 6.1.2-2 db9f196d4ca4a523132a36805668ef82ab76cc2b850e748b3aa04e67465aa90e *' ;;
    rocrand) echo 'librocrand1 7.2.4-1~exp1 9926865e63fa2dcb4224a7f78774ab1dc5ace888372f1e87e7f0c3ab16135258 *' ;;
    rocblas)
      echo 'librocblas5 7.2.4-1~exp1 d7b0bdb3ca744edc42894c0774c0f4d2341acb42190808dc49251c0d1319b685 *librocblas.so* *gfx942* *_fallback.dat'
      echo 'libroctx64-4 7.2.4-1~exp1 a5e7dc76192e02a02dd4592762e394acfc800e2c956fb79ef7b0d01569455399 *.so*'
      ;;
    rocfft) echo 'librocfft0 7.2.4-1~exp1 9c19c237198365ef45a21d22bf1691b10f92776f730c0146d16ff409ca15c3a4 *.so*' ;;
    rocprim) echo 'librocprim-dev 7.2.4-1~exp1 648c0803bf8c9813a9d8cb35313b05aa0b4395e447ddffcc1d75c4abb76dcdf3 *' ;;
    cupy) # what CuPy asks for beside rocBLAS, rocFFT and rocPRIM
      echo 'librocthrust-dev 7.2.4-1~exp1 400afb0f869891dd527e5b16f59fc6aeb68182a3aa3da603f4f78f0e7c9d8c70 *'
      echo 'libhipblas3 7.2.4-1~exp1 531e590e6d8ac4ea42b4840276867beb4c3fb8b06862589e27ea9eef86129fbd *.so*'
      echo 'libhipfft0 7.2.4-1~exp1 fb9289170ded98fc9d473929783f5adfb9a14029a5c4a9d7e68adc13d436a86d *.so*'
      ;;
    *)
      echo "rocm_programs.sh: '$name' is none of conformance, rocminfo, rocrand, rocblas, rocfft, rocprim, cupy" >&2
      exit 2
      ;;
  esac
}
list=$(packages)
folder=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/wavejit-rocm-$name-$(sha256sum <<<"$list" | cut -c1-12)
mkdir -p "$folder" build/rocm
exec 9>"$folder.lock"
flock 9
fetch() {  # <package> <version> <SHA-256> <pattern…>
  local package=$1 version=$2 content=$3
  shift 3
  printf '[rocm] fetching %s %s from Debian\n' "$package" "$version" >&2
  rm -f "$folder/$package"_*.deb
  if ! (cd "$folder" && apt-get -o APT::Sandbox::User=root -qq download "$package=$version" >&2); then
    printf '[rocm] %s %s could not be fetched: it is in Debian 13 or experimental (scripts/install_toolchain.sh), whose mirror must be reachable; a later version there is another one, which is not tried\n' \
      "$package" "$version" >&2
    exit 1
  fi
  if [[ $(sha256sum <"$folder/$package"_*.deb) != "$content "* ]]; then
    printf '[rocm] %s %s is not the package that was tried: its SHA-256 is not %s\n' "$package" "$version" "$content" >&2
    exit 1
  fi
  dpkg-deb --fsys-tarfile "$folder/$package"_*.deb | tar -x -C "$folder" --wildcards "$@"
  rm -f "$folder/$package"_*.deb
}
if [[ ! -f $folder/unpacked ]]; then
  while read -r -a words; do
    fetch "${words[@]}"
  done <<<"$list"
  : >"$folder/unpacked"
fi
ln -sfn "$folder" "build/rocm/$name"
printf '%s\n' "$PWD/build/rocm/$name"
