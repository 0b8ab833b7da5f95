#!/usr/bin/env bash
# clang-format over every file of ours, clang-tidy over what the lint preset would compile. --fix rewrites the format.
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
clang-format-22 --dry-run --Werror "${sources[@]}"

# A translation unit whose preprocessed inputs have not changed since it was last clean is not read again: the stamp is
# named by the contents of every header and of the file, so it is right on any checkout and merely absent on a new one.
mapfile -t units < <(git ls-files 'src/*.cpp' 'templates/*.cpp' 'tools/*.cpp' 'examples/*.cpp' | sort)
stamps=build/tidy
mkdir -p "$stamps"
headers=$(git ls-files '*.h' '*.hpp' .clang-tidy | sort | xargs cat | sha256sum | cut -c1-16)
todo=()
for unit in "${units[@]}"; do
  grep -q "\"[^\"]*/$unit\"" build/lint/compile_commands.json || continue
  stamp=$stamps/$(cat "$unit" | sha256sum | cut -c1-32)-$headers
  [[ -f $stamp ]] || todo+=("$unit|$stamp")
done
say "tidy of ${#todo[@]} of ${#units[@]} files"
if [[ ${#todo[@]} -gt 0 ]]; then
  printf '%s\n' "${todo[@]}" | xargs -P "$(nproc)" -I{} scripts/tidy_one.sh {}
fi
say "clean"
