#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Draws docs/pictures/dualwave_profile.png: the page of `wavejit profile --html` for the dual-wave kernel at 8192 keys,
# as a headless browser shows it.
#
#   scripts/profile_picture.sh <build folder> <picture>
set -euo pipefail
build=$1
picture=$(realpath -m "$2")
browser=$(command -v chromium-headless-shell)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$build/bin/wavejit" profile "attention_forward bf16 b1 q8192 k8192 h16/4 d128" --device sim:gfx950 --cache off --html "$scratch/profile.html" \
  | tee "$scratch/profile.txt"
mkdir -p "$(dirname "$picture")"
# Root has no sandbox in a container; the page is our own and comes from a file.
"$browser" --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/browser" --window-size=1280,1690 \
  --screenshot="$scratch/picture.png" "file://$scratch/profile.html" 2>/dev/null
mv "$scratch/picture.png" "$picture"
# What the picture shows, for a test: it cannot read pictures.
{
  grep '^cycles' "$scratch/profile.txt"
  printf 'sha256   %s\n' "$(sha256sum "$picture" | cut -d' ' -f1)"
} >"${picture%.png}.txt"
