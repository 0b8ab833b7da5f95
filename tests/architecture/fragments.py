#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comments, docstrings and messages name their subject: none begins with Of, Who, Whose or What of, fragments that an English
reader reads twice.

    fragments.py <source root>            check
    fragments.py --self-test
"""
import pathlib
import re
import subprocess
import sys

FRAGMENT = r"(?:Of|Who|Whose|What of)\b"
# The first line of a comment block: the line before it is no comment of the same kind, or the licence.
LINE_COMMENT = re.compile(rf"(?:\A|\n)(?:[^\n]*SPDX-License-Identifier[^\n]*|(?![ \t]*(?://|#))[^\n]*)\n[ \t]*(?://|#) ({FRAGMENT}[^\n]*)|(?<=[;{{}},)] )[ ]?// ({FRAGMENT}[^\n]*)")
BLOCK_COMMENT = re.compile(rf"/\*\*?\s*(?:---- [^\n]*\n \* )?({FRAGMENT}[^\n]*)")
DOCSTRING = re.compile(rf'"""\s*({FRAGMENT}[^\n]*)')
# What a program or an error says: a literal of any kind, in C++ also a raw one.
MESSAGE = re.compile(rf'(?<!["\w])(?:[fr]{{0,2}}"|u8"|u?8?R"\w*\(\n?)({FRAGMENT} [^\n]*)')
PYTHON_MESSAGE = re.compile(rf"(?<!['\w])[fr]{{0,2}}'({FRAGMENT} [^\n]*)")
SOURCES = ("*.h", "*.hpp", "*.cpp", "*.c", "*.hip", "*.inc", "*.def", "*.in", "*.js", "*.py", "*.pyi", "*.sh", "*.cmake", "CMakeLists.txt", "*/CMakeLists.txt")


def fragments(text: str, python: bool) -> list[str]:
    kinds = (LINE_COMMENT, MESSAGE, DOCSTRING, PYTHON_MESSAGE) if python else (LINE_COMMENT, MESSAGE, BLOCK_COMMENT)
    return [next(group for group in match.groups() if group) for kind in kinds for match in kind.finditer(text)]


def check(root: pathlib.Path) -> tuple[list[str], int]:
    names = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *SOURCES], check=True, capture_output=True, text=True).stdout.splitlines()
    names = [name for name in names if (root / name).exists() and name != "tests/architecture/fragments.py"]
    return [f"{name}: \"{fragment}\" begins a comment, docstring or message; name its subject"
            for name in names for fragment in fragments((root / name).read_text(encoding="utf-8"), name.endswith((".py", ".pyi")))], len(names)


def self_test() -> int:
    bad = "int a;\n// Of rows.\nint b;  // Who asks.\n/* Whose sum. */\nfail(\"What of it\");\nfail(\"Of it\");\n"
    header = "// SPDX-License-Identifier: X\n// Who has which page.\n#pragma once\n"
    raw = "auto a = R\"(Of it)\";\nauto b = R\"text(\nWho asks)text\";\n"
    good = "// The kernel\n// Of rows: a line that goes on.\nint offset;  // offset\nauto text = \"Offline\";\n"
    python = "def f():\n    \"\"\"Of a call.\"\"\"\n\n    # Who asks.\n    print('Of it')\n    raise Error(f'Whose {sum}')\n"
    fine = "word = 'Offline'\nraise Error(f\"{who} asks\")\n"
    counts = [len(fragments(bad, False)), len(fragments(raw, False)), len(fragments(good, False)), len(fragments(python, True)), len(fragments(fine, True)), len(fragments(header, False))]
    if counts != [5, 2, 0, 4, 0, 1]:
        print(f"self-test: {counts} fragments")
        return 1
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    found, files = check(pathlib.Path(sys.argv[1]))
    if files < 100:
        print(f"only {files} source files below {sys.argv[1]}: wrong folder?")
        return 1
    print("\n".join(found) if found else f"no fragment in {files} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
