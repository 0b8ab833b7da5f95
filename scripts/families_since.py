#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families whose kernels a change may alter, one a line: their generator ids are others than at a commit.

    families_since.py <commit>

An id is over what makes a family's kernels (cmake/families.cmake): the engine's files, the family's kernel/ and emit/, and those that all
kinds of attention share.
"""
import pathlib
import re
import subprocess
import sys

ENGINE = re.compile(r"src/(codegen|targets|families/(kernel|emit))/.*\.(h|cpp)$")
FAMILY = re.compile(r"templates/(\w+)/(kernel|emit)/.*\.(h|cpp)$")


def families_of(changed: list[str], families: list[str]) -> list[str]:
    found = set()
    for name in changed:
        own = FAMILY.match(name)
        if ENGINE.match(name) or (own and own.group(1) == "attention"):
            return families
        if own and own.group(1) in families:
            found.add(own.group(1))
    return sorted(found)


def main() -> int:
    if len(sys.argv) != 2 or not sys.argv[1]:
        print("--since: which commit? as ./dev test --since HEAD~3", file=sys.stderr)
        return 2
    commit = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "--end-of-options", sys.argv[1] + "^{commit}"], capture_output=True, text=True, check=False)
    if commit.returncode != 0:
        print(f"--since: git knows no commit '{sys.argv[1]}'", file=sys.stderr)
        return 2
    changed = subprocess.run(["git", "diff", "--name-only", commit.stdout.strip(), "--"], capture_output=True, text=True, check=True)
    families = sorted(path.parent.name for path in pathlib.Path("templates").glob("*/emit") if path.parent.name != "attention")
    print("\n".join(families_of(changed.stdout.split(), families)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
