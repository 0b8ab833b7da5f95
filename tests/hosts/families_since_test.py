#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which families' products ./dev test --since runs.   families_since_test.py <source dir>"""
import pathlib
import subprocess
import sys
import unittest

TREE = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(TREE / "scripts"))
import families_since  # noqa: E402

FAMILIES = ["attention_forward", "cache_append"]


class FamiliesSince(unittest.TestCase):
    def of(self, *changed):
        return families_since.families_of(list(changed), FAMILIES)

    def test_a_familys_own_files(self):
        self.assertEqual(self.of("templates/cache_append/emit/emit.cpp", "docs/start/README.md"), ["cache_append"])

    def test_what_changes_no_kernel(self):
        self.assertEqual(self.of("templates/cache_append/call/call.cpp", "templates/cache_append/README.md", "src/cache/entry.cpp"), [])

    def test_what_all_families_share(self):
        for shared in ("templates/attention/emit/mask.cpp", "src/codegen/lower.cpp", "src/targets/targets.h"):
            self.assertEqual(self.of(shared), FAMILIES)

    def test_a_commit_that_is_none(self):
        for word, said in (("no-such-commit", "git knows no commit 'no-such-commit'"), ("--all", "git knows no commit '--all'"), ("", "which commit?")):
            ran = subprocess.run([sys.executable, TREE / "scripts/families_since.py", word], cwd=TREE, capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("--since: " + said, ran.stderr)


if __name__ == "__main__":
    unittest.main()
