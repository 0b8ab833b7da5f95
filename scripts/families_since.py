#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families whose kernels a change may alter, one a line: their generator ids differ from those of a commit.

    families_since.py <commit> <folder of lists>

The build writes the lists (cmake/families.cmake): engine.txt has the files that every id is over, <family>.txt those of one family.
A file that was deleted or renamed since counts by its folder.
"""
import pathlib
import subprocess
import sys


def folders_of(list_file: pathlib.Path) -> set[str]:
    return {str(pathlib.Path(line).parent.resolve()) for line in list_file.read_text(encoding="utf-8").split()}


def families_of(changed: list[str], lists: pathlib.Path) -> list[str]:
    folders = {str(pathlib.Path(name).parent.resolve()) for name in changed if name.endswith((".h", ".cpp"))}
    families = [path for path in sorted(lists.glob("*.txt")) if path.stem != "engine"]
    all_of_them = folders & folders_of(lists / "engine.txt")
    return [path.stem for path in families if all_of_them or folders & folders_of(path)]


def main() -> int:
    commit, lists = sys.argv[1:]
    changed = subprocess.run(["git", "diff", "--name-only", "--no-renames", commit, "--"], capture_output=True, text=True, check=True)
    print("\n".join(families_of(changed.stdout.split(), pathlib.Path(lists))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
