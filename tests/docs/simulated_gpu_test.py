#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/start/simulated-gpu-only.md as it is written: its program is compiled by its own lines and run, right and wrong.

    simulated_gpu_test.py <the page> <the folder of the program wavejit> <the device libraries of this system>
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PAGE, PROGRAMS, DEVICE_LIBRARIES = sys.argv[1:4]


class Page(unittest.TestCase):
    text = pathlib.Path(PAGE).read_text(encoding="utf-8")

    def test_its_lines_do_what_it_says(self):
        source = re.search(r"```cpp\n(.*?)```", self.text, re.DOTALL)
        sessions = re.findall(r"```console\n(.*?)```", self.text, re.DOTALL)
        self.assertEqual(len(sessions), 3)
        right, wrong, profiled = sessions
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "saxpy.hip").write_text(source.group(1), encoding="utf-8")

            def typed(session: str) -> subprocess.CompletedProcess[str]:
                lines = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
                # The page has Debian's path; the test, this system's.
                lines = [re.sub(r"^lib=.*", f"lib={DEVICE_LIBRARIES}", line) for line in lines]
                return subprocess.run(["bash", "-e", "-c", f"lib={DEVICE_LIBRARIES}\n" + "\n".join(lines)], cwd=folder, capture_output=True, text=True,
                                      timeout=120, env={**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}"})

            first = typed(right)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertIn(right.splitlines()[-1], first.stdout)
            second = typed(wrong)
            self.assertEqual(second.returncode, 1, second.stderr)
            shown = " ".join(line for line in wrong.splitlines() if not line.startswith("$ "))
            for part in re.split(r"\[…\]|0x[0-9a-f…]+|v\[[0-9:]+\]|v[0-9]+", shown):
                words = part.strip(" ,:;…()'")
                self.assertIn(words, second.stderr, second.stderr)
            (pathlib.Path(folder) / "saxpy.hip").write_text(source.group(1), encoding="utf-8")
            third = typed(profiled)
            self.assertEqual(third.returncode, 0, third.stderr)
            self.assertIn(profiled.splitlines()[-1], third.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
