#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What no golden line has: words of attention_forward in all combinations, each as a line that prebuild compiles. What a rule refuses is no fault; a kernel that spills is.

    combinations_test.py <wavejit> <target> <folder> triples          lines in which every three words meet that meet in any line
    combinations_test.py <wavejit> <target> <folder> <part>/<parts>   a part of the kernels of all lines, chosen by the kernel's digest

Compiled kernels stay in <folder>/cache under their keys, which are over the generator and LLVM's version. So what has passed is only looked
up again, by a run that was interrupted, by one of a later commit with the same generator, and by parts beside triples.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "chosen"))
from cover import Row, cover  # noqa: E402

TYPES = ["bf16", "bf16 lse", "fp16"]
DIMS = ["d40", "d56", "d64", "d72", "d80", "d96", "d104", "d112", "d120", "d128", "d160", "d192/128", "d200/96", "d96/160", "d224", "d256"]
MASKS = ["", "causal", "window=40,17", "causal chunked=700", "causal causal_flags"]
MODIFIERS = ["", "softcap=30", "bias=1", "alibi=h", "softcap=30 bias=bh alibi=h", "bias=1 bias_type=fp32", "o=fp32", "q=fp32", "q=fp32 softcap=30 bias=bh alibi=h"]
LAYOUTS = ["", "layout=paged:16", "layout=paged:64", "layout=paged:1", "first_keys", "layout=paged:16 first_keys"]
# Few keys and many, heads packed and not, rows of small and of large workgroups, short queries beside long ones.
SHAPES = ["b1 q1 k65 h8/2", "b1 q1 k8192 h8/2", "b1 q3 k65 h8", "b1 q3 k8192 h8", "b1 q60 k300 h8", "b1 q4096 k4096 h8", "b16 q900 k8192 q_rows=915 h8/1"]
# Caches of 8 bits under queries of 16, with numbers for each token or not, in each kind of pages.
CACHES = ["cache=i8 cache_scales=token", "cache=e5m2 cache_scales=token", "cache=e5m2"]
CACHED_DIMS = ["d64", "d128", "d192/128"]
# Masks by tile, which many of those have no kernel of.
BY_TILE = ["bool_mask=1", "bool_mask=h softcap=30", "bool_mask=1 softcap=30 alibi=h", "bias=1 bias_by_tile", "bias=h bias_by_tile o=fp32",
           "softcap=30 bias=1 alibi=h bias_by_tile", "bias=1 bias_type=fp32 bias_by_tile", "softcap=30 bias=1 bias_type=fp32 alibi=h bias_by_tile"]
# The kernels of all targets take some 5 GiB; those of earlier generators leave first.
CACHE_LIMIT = "8GiB"
SECONDS_BETWEEN_PROGRESS = 60


def rows_of(target: str) -> list[Row]:
    """The lines, each with its words: a word of one list meets those of the others."""
    caches = [words.replace("e5m2", "e5m2_fnuz") if target == "gfx942" else words for words in CACHES]
    products = {"plain": (TYPES, SHAPES, DIMS, MASKS, MODIFIERS, LAYOUTS), "by tile": (TYPES, SHAPES, DIMS, MASKS[:3], BY_TILE, LAYOUTS[:3]),
                "cached": (TYPES, SHAPES, CACHED_DIMS, MASKS, MODIFIERS[:5], LAYOUTS, caches)}
    return [Row(" ".join(f"attention_forward {' '.join(words)}".split()), tuple(f"{number} {word}" for number, word in enumerate(words)), name)
            for name, lists in products.items() for words in itertools.product(*lists)]


class Prebuild:
    """wavejit prebuild of lines: shows how far it is, and what fails as it fails."""

    def __init__(self, wavejit: str, target: str, folder: pathlib.Path):
        self.command = [wavejit, "prebuild", "--jobs", "1", "--target", target, "--cache-dir", str(folder / "cache")]
        self.folder = folder
        self.failed: list[str] = []
        self.refused: set[int] = set()  # numbers of lines

    def run(self, name: str, lines: list[str], *words: str) -> str:
        """The program's closing line."""
        listed = self.folder / f"{name}.txt"
        listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
        said = ""
        with subprocess.Popen([*self.command, "--list", str(listed), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=os.environ | {"WAVEJIT_CACHE_LIMIT": CACHE_LIMIT}) as running:
            shown = time.monotonic()
            for line in running.stdout:
                done = re.match(r"\[(\d+/\d+)\] (\w+) +(.+)", line)
                if not done:
                    said = line.strip() if " kernels: " in line or not said else said
                elif done.group(2) == "refused":
                    self.learn_refused(done.group(3))
                elif done.group(2) == "failed":
                    self.failed.append(done.group(3))
                    print(f"failed: {done.group(3)}", flush=True)
                if done and time.monotonic() - shown > SECONDS_BETWEEN_PROGRESS:
                    shown = time.monotonic()
                    print(f"so far: {done.group(1)} kernels, {len(self.failed)} failed", flush=True)
        return said

    def learn_refused(self, text: str) -> None:
        numbers = re.search(r": lines? ([\d, to]+): ", text)
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers.group(1)):
            self.refused.update(range(int(first), int(last or first) + 1))


def main() -> int:
    wavejit, target, folder, what = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
    folder.mkdir(parents=True, exist_ok=True)
    rows, prebuild = rows_of(target), Prebuild(wavejit, target, folder)
    lines, shard = [row.text for row in rows], what
    if what == "triples":
        # Nothing is compiled to know which lines have kernels.
        prebuild.run(f"all_{target}", lines, "--verify", "--shard", "1/1000000")
        rows = [row for number, row in enumerate(rows, 1) if number not in prebuild.refused]
        lines, shard = [rows[place].text for place in cover(rows, strength=3, spread=False)], "1/1"
        print(f"{len(lines)} of {len(rows)} lines that have kernels: every three words that meet in any of them")
    closing = prebuild.run(f"{what.replace('/', '_of_')}_{target}", lines, "--shard", shard)
    print(f"{len(lines)} lines: {closing}")
    return 1 if prebuild.failed or not re.search(r"\d+ kernels: \d+ compiled", closing) else 0


if __name__ == "__main__":
    sys.exit(main())
