#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that every file of this tree that a comment or a page cites is in the tree.

    cited_files.py <source root>            check the tree
    cited_files.py --self-test              show that the check can fail

A citation is a path from the root, "docs/isa.md" or "src/cache/entry.h", or one from the citing file's folder.
"""
import os
import pathlib
import re
import sys

ROOMS = ("docs", "src", "templates", "tools", "tests", "bench", "scripts", "cmake", "examples", "include", "presets")
CITING = (".md", ".h", ".hpp", ".cpp", ".py", ".sh", ".txt", ".cmake")
CITED = re.compile(r"(?<![\w./$}-])((?:\.\./)*(?:" + "|".join(ROOMS) + r")/[\w./-]*\w\.(?:md|h|hpp|cpp|py|sh|txt|cmake|inc))\b")
# Examples of paths in tests of such checks, and the notices of others.
SILENT = ("THIRD-PARTY.md", "tests/architecture/")
COMMENT = {".h": "//", ".hpp": "//", ".cpp": "//", ".py": "#", ".sh": "#", ".cmake": "#"}


def comment_of(name: str, line: str) -> str:
    """The part of a line that people read; all of it in a page and in C's comments."""
    mark = "#" if name.endswith("CMakeLists.txt") else COMMENT.get(pathlib.PurePosixPath(name).suffix)
    if mark is None or line.lstrip().startswith(("*", "/*")):
        return line
    return line.partition(mark)[2] if mark in line else ""


def missing(name: str, text: str, files: set[str]) -> list[str]:
    folder = os.path.dirname(name)
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        for cited in CITED.findall(comment_of(name, line)):
            beside = os.path.normpath(os.path.join(folder, cited))
            if cited not in files and beside not in files:
                wrong.append(f"{name}:{number}: {cited} is not in the tree")
    return wrong


def check(root: pathlib.Path) -> list[str]:
    files = set()
    for room in ROOMS:
        files |= {path.relative_to(root).as_posix() for path in (root / room).rglob("*") if path.is_file()}
    files |= {path.name for path in root.iterdir() if path.is_file()}
    wrong = []
    for name in sorted(files):
        if name.endswith(CITING) and not name.startswith(SILENT):
            wrong += missing(name, (root / name).read_text(encoding="utf-8"), files)
    return wrong


def self_test() -> list[str]:
    files = {"docs/isa.md", "src/a.h", "src/sub/b.h"}
    good = [
        ("src/a.h", "// docs/isa.md says so"),
        ("docs/isa.md", "see [a](../src/a.h)"),
        ("src/a.h", '#include "src/absent.h"'),
        ("src/a.h", "// /elsewhere/docs/absent.md"),
    ]
    bad = [
        ("src/a.h", "// docs/absent.md says so"),
        ("docs/isa.md", "see [b](../src/b.h)"),
        ("src/a.h", " * src/sub/c.h"),
    ]
    wrong = [f"refused: {name}: {text}" for name, text in good if missing(name, text, files)]
    return wrong + [f"passed: {name}: {text}" for name, text in bad if not missing(name, text, files)]


def main() -> int:
    wrong = self_test() if sys.argv[1] == "--self-test" else check(pathlib.Path(sys.argv[1]))
    print("\n".join(wrong) or "every file that is cited is in the tree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
