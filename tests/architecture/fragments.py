#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comments, docstrings and messages name their subject: none begins with Of, Who, Whose or What of, fragments that an English
reader reads twice. fragments.txt says how many each file still has; a file may not have more, and the list only shrinks.

    fragments.py <source root>            check
    fragments.py <source root> --write    shorten the list to what there is; it never grows
    fragments.py --self-test
"""
import pathlib
import re
import subprocess
import sys

FRAGMENT = r"(?:Of|Who|Whose|What of)\b"
# The first line of a comment block: the line before it is no comment of the same kind.
LINE_COMMENT = re.compile(rf"(?:\A|\n)(?![ \t]*(?://|#))[^\n]*\n[ \t]*(?://|#) {FRAGMENT}|(?<=[;{{}},)] )[ ]?// {FRAGMENT}")
BLOCK_COMMENT = re.compile(rf"/\*\*?\s*(?:---- [^\n]*\n \* )?{FRAGMENT}")
DOCSTRING = re.compile(rf'"""\s*{FRAGMENT}')
MESSAGE = re.compile(rf'(?<!["\w])[fr]?"{FRAGMENT} ')
LIST = "tests/architecture/fragments.txt"


def count(text: str, python: bool) -> int:
    found = len(LINE_COMMENT.findall(text)) + len(MESSAGE.findall(text))
    return found + len((DOCSTRING if python else BLOCK_COMMENT).findall(text))


def counts(root: pathlib.Path) -> dict[str, int]:
    names = subprocess.run(["git", "-C", root, "ls-files", "*.h", "*.hpp", "*.cpp", "*.c", "*.py"], check=True, capture_output=True, text=True)
    found = {}
    for name in names.stdout.splitlines():
        if (root / name).exists() and name != "tests/architecture/fragments.py":
            number = count((root / name).read_text(encoding="utf-8"), name.endswith(".py"))
            if number:
                found[name] = number
    return found


def known(root: pathlib.Path) -> dict[str, int]:
    lines = [line.rsplit(" ", 1) for line in (root / LIST).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: int(number) for name, number in lines}


def wrong(found: dict[str, int], allowed: dict[str, int]) -> list[str]:
    more = [f"{name}: {number} comments or messages begin with Of, Who, Whose or What of; name the subject ({allowed.get(name, 0)} were there)"
            for name, number in sorted(found.items()) if number > allowed.get(name, 0)]
    fewer = [f"{LIST}: {name} has {found.get(name, 0)}, not {number}; fragments.py --write shortens the list"
             for name, number in sorted(allowed.items()) if found.get(name, 0) < number]
    return more + fewer


def self_test() -> int:
    bad = "int a;\n// Of rows.\nint b;  // Who asks.\n/* Whose sum. */\nfail(\"What of it\");\nfail(\"Of it\");\n"
    good = "// The kernel\n// Of rows: a line that goes on.\nint offset;  // offset\nauto text = \"Offline\";\n"
    if count(bad, False) != 5 or count(good, False) != 0 or count('"""Of a call."""\n', True) != 1:
        print(f"self-test: {count(bad, False)}, {count(good, False)}")
        return 1
    if len(wrong({"a": 2}, {"a": 1})) != 1 or len(wrong({"a": 1}, {"a": 2})) != 1 or wrong({"a": 1}, {"a": 1}):
        print("self-test: the list may grow")
        return 1
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    found = counts(root)
    if "--write" in sys.argv:
        allowed = known(root) if (root / LIST).exists() else found
        lines = [f"{name} {min(number, allowed[name])}" for name, number in sorted(found.items()) if name in allowed]
        head = "# Comments, docstrings and messages that begin with Of, Who, Whose or What of, by file (fragments.py). This list only shrinks.\n"
        (root / LIST).write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
        return 0
    lines = wrong(found, known(root))
    print("\n".join(lines) if lines else f"{sum(found.values())} fragments in {len(found)} files, none of them new")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
