#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""combinations_test.py: what it hands to prebuild, what is compiled again, what fails it.   combination_shares_test.py

A program stands in for wavejit: each line is a kernel of its own, lines with "refused" have none, and those with "spills" fail. It keeps what
it has compiled in a file of the cache's folder.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile
import unittest

import combinations_test as combinations

HERE = pathlib.Path(__file__).resolve().parent
WAVEJIT = r'''#!/usr/bin/env python3
import os, pathlib, sys, zlib
words = sys.argv[1:]
after = lambda word: words[words.index(word) + 1]
part, parts = map(int, after("--shard").split("/"))
lines = pathlib.Path(after("--list")).read_text().splitlines()
refused = [number for number, line in enumerate(lines, 1) if "refused" in line]
kernels = [line for line in lines if "refused" not in line and zlib.crc32(line.encode()) % parts == part - 1]
if refused:
    runs = [f"{first} to {first + 2}" for first in refused if first + 1 in refused and first - 1 not in refused]
    alone = [str(number) for number in refused if number + 1 not in refused and number - 1 not in refused]
    print(f"[0/{len(kernels)}] refused  --list x.txt: lines {', '.join(alone + runs)}: head dim 40 has no kernel", file=sys.stderr)
if "--verify" in words:
    sys.exit(1)
there = pathlib.Path(after("--cache-dir"), "there.txt")
there.parent.mkdir(exist_ok=True)
known = set(there.read_text().splitlines()) if there.exists() else set()
left = int(os.environ.get("KILLED_AFTER", "1000000"))
with there.open("a") as cache:
    for number, line in enumerate(kernels, 1):
        if line in known:
            print(f"[{number}/{len(kernels)}] present  {line}", file=sys.stderr)
        elif "spills" in line:
            print(f"[{number}/{len(kernels)}] failed   {line}: 4 VGPRs are spilled", file=sys.stderr)
        else:
            if left == 0:
                os.kill(os.getpid(), 9)
            left -= 1
            cache.write(line + "\n")
            cache.flush()
            print(f"[{number}/{len(kernels)}] compiled {line}", file=sys.stderr)
print(f"{len(kernels)} kernels: 7 compiled, 0 already there, 0 failed, in 1.0 s")
'''


class Shares(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.wavejit = self.folder / "wavejit"
        self.wavejit.write_text(WAVEJIT, encoding="utf-8")
        self.wavejit.chmod(0o755)
        # The test itself, with fewer words.
        self.lists = {"TYPES": ["bf16", "fp16"], "SHAPES": ["q1", "q2", "q3"], "DIMS": ["d1", "d2", "d3"], "MASKS": ["", "causal"], "MODIFIERS": ["", "bias"],
                      "LAYOUTS": [""], "CACHED_DIMS": ["d1"], "CACHES": ["i8", "e5m2"], "BY_TILE": ["refused 1", "by_tile", "refused 2", "refused 3", "refused 4", "tiled"]}

    def run_share(self, share: str, **environment: str) -> tuple[int, str, list[str]]:
        """Exit code, output, and what was compiled."""
        there = self.folder / "build/cache/there.txt"
        before = there.read_text().splitlines() if there.exists() else []
        program = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import combinations_test as test; "
                   f"vars(test).update({self.lists!r}, SECONDS_BETWEEN_PROGRESS=0); sys.argv[1:] = {[str(self.wavejit), 'gfx942', str(self.folder / 'build'), share]!r}; "
                   "sys.exit(test.main())")
        done = subprocess.run([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment)
        return done.returncode, done.stdout, there.read_text().splitlines()[len(before):]

    def lines(self) -> list[str]:
        program = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import combinations_test as test; vars(test).update({self.lists!r}); "
                   "print('\\n'.join(row.text for row in test.rows_of('gfx942')))")
        said = subprocess.run([sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        return said.splitlines()

    def test_shares_are_the_whole(self):
        compiled = []
        for share in ("1/3", "2/3", "3/3"):
            status, output, these = self.run_share(share)
            self.assertEqual(status, 0, output)
            self.assertIn("so far: ", output)
            compiled += these
        self.assertEqual(sorted(compiled), sorted(set(line for line in self.lines() if "refused" not in line)))
        self.assertIn("attention_forward bf16 q1 d1 e5m2_fnuz", compiled)  # as gfx942 names it

    def test_a_killed_share_goes_on(self):
        status, output, first = self.run_share("1/2", KILLED_AFTER="5")
        self.assertEqual((status, len(first)), (1, 5), output)
        status, output, second = self.run_share("1/2")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.run_share("1/2")[2], [])
        self.assertFalse(set(first) & set(second))
        whole = [line for line in self.lines() if "refused" not in line]
        self.assertEqual(len(first) + len(second) + len(self.run_share("2/2")[2]), len(whole))

    def test_every_three_words_meet(self):
        status, output, compiled = self.run_share("triples")
        self.assertEqual(status, 0, output)
        accepted = [line for line in self.lines() if "refused" not in line]
        self.assertLess(len(compiled), len(accepted))
        self.assertIn(f"{len(compiled)} of {len(accepted)} lines that have kernels", output)
        triples_compiled, triples_there = ({some for line in lines for some in itertools.combinations(sorted(line.split()), 3)} for lines in (compiled, accepted))
        self.assertEqual(triples_compiled, triples_there)
        self.assertEqual(len(self.run_share("1/1")[2]) + len(compiled), len(accepted))

    def test_a_spill_fails(self):
        self.lists["CACHES"] = ["i8", "spills"]
        for share in ("1/1", "triples"):
            status, output, compiled = self.run_share(share)
            self.assertEqual(status, 1, output)
            self.assertIn(" spills: 4 VGPRs are spilled\n", output)
        self.assertEqual(compiled, [])  # the others are there from before

    def test_the_real_lists(self):
        rows = combinations.rows_of("gfx950")
        self.assertEqual((len(rows), len({row.text for row in rows})), (143_262, 143_262))  # tests/README.md says so
        self.assertEqual({len(row.words) for row in rows}, {6, 7})


if __name__ == "__main__":
    unittest.main()
