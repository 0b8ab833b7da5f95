#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Packs the build tree with CPack and looks into what comes out.   check_deb.sh <build dir> <version>
# (scripts/check_deb.sh installs such packages on a clean system.)
set -euo pipefail
build=$1 version=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "FAIL: $*"; failed=1; }
# Uncompressed: half a minute of xz says nothing about contents.
(cd "$work" && cpack --config "$build/CPackConfig.cmake" -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=none >"$work/log" 2>&1) ||
  { cat "$work/log"; exit 1; }
architecture=$(dpkg --print-architecture)
runtime=$work/libwavejit0_${version}_$architecture.deb
program=$work/wavejit_${version}_$architecture.deb
development=$work/libwavejit-dev_${version}_$architecture.deb
kernels=$work/wavejit-kernels_${version}_all.deb
for deb in "$runtime" "$program" "$development" "$kernels"; do [[ -f $deb ]] || { cat "$work/log"; ls "$work"; echo "no $deb"; exit 1; }; done

field() { dpkg-deb --field "$1" "$2"; }
for deb in "$runtime" "$program" "$development" "$kernels"; do dpkg-deb --contents "$deb" >"$deb.contents"; done
# has <deb> <extended regular expression of a path>
has() { grep -qE " \.$2( -> .*)?\$" "$1.contents" || complain "$(basename "$1") has no $2"; }
lacks() { ! grep -qE "$2" "$1.contents" || complain "$(basename "$1") has $2, which is another package's"; }
# depends <deb> <extended regular expression>
depends() { field "$1" Depends | grep -E "(^|, )$2(,|$)" >/dev/null || complain "$(basename "$1") depends on '$(field "$1" Depends)', not on $2"; }

for deb in "$runtime" "$program" "$development" "$kernels"; do
  field "$deb" Maintainer | grep -E '^The wavejit authors <[^@ ]+@[^@ ]+>$' >/dev/null || complain "maintainer of $(basename "$deb"): '$(field "$deb" Maintainer)'"
  [[ $(field "$deb" Description | wc -l) -ge 3 ]] || complain "$(basename "$deb") has no description beyond a line"
  has "$deb" "/usr/share/doc/$(field "$deb" Package)/copyright"
  awk '{ print $2 }' "$deb.contents" | grep -vx root/root && complain "$(basename "$deb") has files that are not root's"
  awk '$1 !~ /^l/ && $1 ~ /^.....w|^........w/' "$deb.contents" | grep . && complain "$(basename "$deb") has files that others may write"
  field "$deb" Depends | grep -iE 'llvm|clang|lld|fmt|spdlog|libssl|hiredis|amdhip|comgr' >/dev/null &&
    complain "$(basename "$deb") depends on what should be inside: $(field "$deb" Depends)"
done

has "$runtime" '/usr/lib/.*libwavejit\.so\.0'
has "$runtime" '/usr/lib/.*libwavejit_remote\.so'
lacks "$runtime" 'codegen|simgpu|/bin/|include|libwavejit\.so$'
depends "$runtime" 'libc6 \(>= [0-9.]+\)'
depends "$runtime" 'libstdc\+\+6 \(>= [0-9.]+\)'
dpkg-deb --info "$runtime" triggers | grep ldconfig >/dev/null || complain "the linker's cache does not hear of libwavejit.so.0"
has "$program" '/usr/bin/wavejit'
has "$program" '/usr/bin/wavejit-compile'
has "$program" '/usr/share/man/man1/wavejit\.1'
has "$program" '/usr/share/bash-completion/completions/wavejit'
has "$program" '/usr/lib/.*libwavejit_codegen\.so'
has "$program" '/usr/lib/.*libwavejit_simgpu\.so'
has "$program" '/usr/lib/.*wavejit/hip/libamdhip64\.so\.7'
has "$program" '/usr/lib/.*wavejit/rocr/libdtif\.so'
lacks "$program" 'libwavejit\.so|include'
depends "$program" "libwavejit0 \(= $version\)"
depends "$program" 'zlib1g \(>= .*\)'
depends "$program" 'libzstd1 \(>= .*\)'
dpkg-deb --fsys-tarfile "$program" | tar -xO ./usr/share/doc/wavejit/copyright >"$work/copyright"
for inside in llvm-22-dev libfmt-dev libssl-dev; do
  grep -q "^==== Inside: $inside ====" "$work/copyright" || complain "the notice of $inside, which is inside, is not in the package"
done
grep -q 'LLVM Exceptions to the Apache 2.0 License' <(head -n 230 "$work/copyright") || complain "our own licence is not in the package"
has "$development" '/usr/include/wavejit/wavejit\.h'
has "$development" '/usr/include/wavejit/wavejit\.hpp'
has "$development" '/usr/lib/.*cmake/wavejit/wavejit-config\.cmake'
has "$development" '/usr/lib/.*pkgconfig/wavejit\.pc'
has "$development" '/usr/lib/.*libwavejit\.so'
has "$development" '/usr/share/doc/libwavejit-dev/examples/serving_engine/README\.md'
depends "$development" "libwavejit0 \(= $version\)"
lacks "$development" '/bin/|libwavejit_'
has "$kernels" '/usr/share/wavejit/kernels\.wavejit-archive'
lacks "$kernels" '/bin/|/lib/|/presets'
depends "$kernels" "libwavejit0 \(= $version\)"
field "$runtime" Recommends | grep -F "wavejit-kernels (= $version)" >/dev/null || complain "the runtime does not recommend its kernels"
# Everything that is installed is in one of them.
DESTDIR=$work/all cmake --install "$build" --prefix /usr >/dev/null
(cd "$work/all" && find . ! -type d | sort) >"$work/installed"
for deb in "$runtime" "$program" "$development" "$kernels"; do dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$'; done | sort >"$work/packed"
diff "$work/installed" "$work/packed" >"$work/difference" || complain "installed (<) and packed (>) differ: $(cat "$work/difference")"
[[ $failed == 0 ]] && echo "four packages as promised: $(field "$program" Depends)"
exit $failed
