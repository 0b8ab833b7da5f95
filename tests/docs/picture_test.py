#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The picture of a profile is of the kernel that docs/profile.md prints beside it, whose lines docs.printed compares with the program's.

    picture_test.py <the tree>
    picture_test.py --self-test
"""
import hashlib
import pathlib
import sys


def faults(lines: list[str], picture: bytes, page: str) -> list[str]:
    """`lines`: of the file beside the picture, which `./dev bench profile-picture` writes with it."""
    cycles, digest = lines
    found = []
    if digest.split() != ["sha256", hashlib.sha256(picture).hexdigest()]:
        found.append("the picture is not the one that its text was written with")
    if cycles not in page:
        found.append(f"docs/profile.md does not have the picture's line: {cycles}")
    return found


def self_test() -> None:
    picture = b"a picture"
    lines = ["cycles   5 predicted", f"sha256   {hashlib.sha256(picture).hexdigest()}"]
    assert faults(lines, picture, "…\n    cycles   5 predicted\n") == []
    assert len(faults(lines, picture, "    cycles   6 predicted")) == 1
    assert len(faults(lines, b"another", "    cycles   5 predicted")) == 1


def main() -> int:
    if sys.argv[1] == "--self-test":
        self_test()
        return 0
    tree = pathlib.Path(sys.argv[1])
    picture = tree / "docs/pictures/dualwave_profile.png"
    found = faults(picture.with_suffix(".txt").read_text(encoding="utf-8").splitlines(), picture.read_bytes(),
                   (tree / "docs/profile.md").read_text(encoding="utf-8"))
    if found:
        print(*found, "./dev bench profile-picture draws it anew", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
