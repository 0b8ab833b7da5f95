#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pages set variables to is what the program takes: nothing of it is ignored with a warning.

    variables_test.py <the program wavejit> <the tree>
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, TREE = sys.argv[1], pathlib.Path(sys.argv[2])

# Variables of engines that have words for values.
VARIABLES = ("PIPELINE", "KV_SPLITS", "LOWERING", "COMPILE", "CACHE", "CACHE_PACKAGED")
SETTING = re.compile(rf"\bWAVEJIT_({'|'.join(VARIABLES)})=(\"[^\"]*\"|[a-z0-9]+)")
IGNORED = "ignored"


def ignored_of(name: str, value: str) -> str:
    outcome = subprocess.run([PROGRAM, "explain", "attention_forward bf16 b1 q1 k8192 h16/2 d128", "--target", "gfx950"], capture_output=True, text=True,
                             timeout=60, check=False, env={**os.environ, f"WAVEJIT_{name}": value})
    return "".join(line for line in outcome.stderr.splitlines(keepends=True) if IGNORED in line)


class Variables(unittest.TestCase):
    def test_take_what_pages_give_them(self):
        pages = [TREE / "README.md", *sorted(TREE.glob("docs/**/*.md")), *sorted(TREE.glob("examples/**/*.md"))]
        found = 0
        for page in pages:
            for name, value in SETTING.findall(page.read_text(encoding="utf-8")):
                found += 1
                with self.subTest(page=str(page.relative_to(TREE)), variable=name, value=value):
                    self.assertEqual(ignored_of(name, value.strip('"')), "")
        self.assertGreater(found, 3)

    def test_can_fail(self):
        self.assertIn(IGNORED, ignored_of("PIPELINE", "generic chunk_wave=4"))
        self.assertIn(IGNORED, ignored_of("PIPELINE", "general"))
        self.assertIn(IGNORED, ignored_of("STAGGER", "off"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
