#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each long test of a build is in exactly one part of ./dev soak, and each part has one.

    soak_parts_test.py <source dir> <build folder>

A part may be empty where the build says why: its tests cannot be built here and stand in the list by name (tests/left_out), or the build
has some folders of tests alone.
"""
import pathlib
import re
import sys

TREE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(TREE / "scripts"))
from soak import TABLE, long_tests, parts_of, shown  # noqa: E402


def cannot_be_built() -> list[str]:
    """Tests that tests/left_out/missing.sh stands for, without a command of their own."""
    commands = {test["name"]: test.get("command", []) for test in shown(BUILD)}
    return [name for name, words in commands.items() if len(words) == 4 and words[1].endswith("/missing.sh")]


def main() -> int:
    parts, names, wrong = [part for part in parts_of(TREE / TABLE) if part.preset == "dev"], long_tests(BUILD), []
    for name in names:
        numbers = [str(part.number) for part in parts if re.search(part.tests, name)]
        if len(numbers) != 1:
            wrong.append(f"{name} is in {'parts ' + ', '.join(numbers) if numbers else 'no part'}; {TABLE} gives each long test one")
    empty = [part for part in parts if not any(re.search(part.tests, name) for name in names)]
    few_folders = bool(empty) and "\nWAVEJIT_TEST_ROOMS:" in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    missing = cannot_be_built() if empty else []
    for part in empty:
        if few_folders or any(re.search(part.tests, name) for name in missing):
            print(f"part {part.number}, {part.what}: left out of this build")
        else:
            wrong.append(f"part {part.number}, {part.what}: no long test matches '{part.tests}'")
    print("\n".join(wrong or [f"{len(names)} long tests, each in one of {len(parts)} parts"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
