# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/variants.md is what `wavejit variants` prints."""
import os
import pathlib
import subprocess
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["WAVEJIT_PROGRAM"]


def program(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


class Page(unittest.TestCase):
    page = (TREE / "docs" / "variants.md").read_text(encoding="utf-8")

    def test_is_what_the_program_prints(self):
        made = program("variants", "--markdown")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout.splitlines(), self.page.splitlines(), "make it anew: wavejit variants --markdown > docs/variants.md")

    def test_nothing_that_has_a_descriptor_is_refused_everywhere(self):
        rows = [row for row in self.page.splitlines() if row.startswith("| ") and "2026" not in row]
        self.assertTrue(any("dualwave 256x64" in row for row in rows))
        self.assertFalse([row for row in rows if row.count("refused: ") > 2])


class Variants(unittest.TestCase):
    def test_one_by_its_name(self):
        told = program("variants", "paged")
        self.assertIn("layout=paged:64", told.stdout)
        self.assertNotIn("mqa", told.stdout)

    def test_an_unknown_name_is_one_line(self):
        told = program("variants", "flash")
        self.assertEqual(told.returncode, 2)
        self.assertEqual(told.stderr.count("\n"), 1)
        self.assertIn("'flash' is not known; `wavejit variants` lists all", told.stderr)

    def test_integers_have_a_kernel_on_both_targets(self):
        told = program("variants", "int8").stdout
        self.assertIn("qk=i8", told)
        self.assertNotIn("not there yet", told)


if __name__ == "__main__":
    unittest.main()
