#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# clang-format over every file of ours, clang-tidy over what the dev preset compiles, and each file compiled alone.
# build/lint has the command of each file (single_commands.py).
#
#   lint.sh            every file that has not been read as it is now
#   lint.sh --part     of these, a part (./dev test): of what the last commits touched the newest, and a share by the files' contents.
#                      tidy_units.py and compile_alone.py say how many
#   lint.sh --fix      rewrites the format, and nothing else
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '[lint] %s\n' "$*"; }

mapfile -t sources < <(git ls-files '*.h' '*.hpp' '*.cpp' '*.c' '*.hip' | sort)
if [[ ${1:-} == --fix ]]; then
  clang-format-22 -i "${sources[@]}"
  say "formatted ${#sources[@]} files"
  exit 0
fi
say "format of ${#sources[@]} files"
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 64 clang-format-22 --dry-run --Werror

# One line a file that clang-tidy has still to read: "<file>|<stamp>". Stamps lie beside the compiler's cache, so that
# clones of this tree share them.
stamps=${WAVEJIT_TIDY_STAMPS:-${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}/wavejit-tidy}
mkdir -p "$stamps"
mapfile -t todo < <(scripts/tidy_units.py --stamps "$stamps" --commands build/lint/compile_commands.json "$@")
say "tidy of ${#todo[@]} files"
if [[ ${#todo[@]} -gt 0 ]]; then
  printf '%s\n' "${todo[@]}" | xargs -P "$(nproc)" -I{} scripts/tidy_one.sh {}
fi
scripts/compile_alone.py --stamps "$stamps" --commands build/lint/compile_commands.json "$@"
say "clean"
