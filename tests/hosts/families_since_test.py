#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which families' products ./dev test --since runs.   families_since_test.py <source dir>"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(TREE / "scripts"))
import families_since  # noqa: E402

LISTS = {
    "engine": ["src/codegen/lower.cpp", "src/targets/targets.h"],
    "attention_forward": ["templates/attention_forward/emit/emit.cpp", "templates/attention/emit/mask.cpp"],
    "cache_append": ["templates/cache_append/emit/emit.cpp"],
}


class FamiliesSince(unittest.TestCase):
    def of(self, *changed):
        with tempfile.TemporaryDirectory() as folder:
            for name, files in LISTS.items():
                (pathlib.Path(folder) / f"{name}.txt").write_text("\n".join(str(pathlib.Path(file).absolute()) for file in files) + "\n", encoding="utf-8")
            return families_since.families_of(list(changed), pathlib.Path(folder))

    def test_a_familys_own_files(self):
        self.assertEqual(self.of("templates/cache_append/emit/emit.cpp", "docs/start/README.md"), ["cache_append"])

    def test_a_file_that_is_gone(self):
        self.assertEqual(self.of("templates/cache_append/emit/gone.cpp"), ["cache_append"])

    def test_what_changes_no_kernel(self):
        self.assertEqual(self.of("templates/cache_append/call/call.cpp", "templates/cache_append/emit/README.md", "src/cache/entry.cpp"), [])

    def test_what_families_share(self):
        self.assertEqual(self.of("templates/attention/emit/mask.cpp"), ["attention_forward"])
        self.assertEqual(self.of("src/codegen/lower.cpp"), ["attention_forward", "cache_append"])

    def test_a_commit_that_is_none(self):
        for words, said in ((["no-such-commit"], "git knows no commit 'no-such-commit'"), (["--all"], "git knows no commit '--all'"), ([], "which commit?")):
            ran = subprocess.run([TREE / "dev", "test", "--since", *words], cwd=TREE, capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("--since: " + said, ran.stderr)


if __name__ == "__main__":
    unittest.main()
