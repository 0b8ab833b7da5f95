#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comments, docstrings and messages name their subject: none begins with Of, Who, Whose or What of, fragments that an English
reader reads twice. Messages have none, nor has anything in FREE. fragments.txt says how many comments and docstrings each other file
still has; a file may not have more, and the list only shrinks.

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
# What a program or an error says: a literal of any kind, in C++ also a raw one.
MESSAGE = re.compile(rf'(?<!["\w])(?:[fr]{{0,2}}"|u8"|u?8?R"\w*\(\n?){FRAGMENT} ')
PYTHON_MESSAGE = re.compile(rf"(?<!['\w])[fr]{{0,2}}'{FRAGMENT} ")
FREE = ("include/", "python/", "tools/")
LIST = "tests/architecture/fragments.txt"


def count(text: str, python: bool) -> int:
    return len(LINE_COMMENT.findall(text)) + len((DOCSTRING if python else BLOCK_COMMENT).findall(text))


def messages(text: str, python: bool) -> int:
    return len(MESSAGE.findall(text)) + (len(PYTHON_MESSAGE.findall(text)) if python else 0)


def counts(root: pathlib.Path, of=count) -> dict[str, int]:
    names = subprocess.run(["git", "-C", root, "ls-files", "*.h", "*.hpp", "*.cpp", "*.c", "*.py"], check=True, capture_output=True, text=True)
    found = {}
    for name in names.stdout.splitlines():
        if (root / name).exists() and name != "tests/architecture/fragments.py":
            number = of((root / name).read_text(encoding="utf-8"), name.endswith(".py"))
            if number:
                found[name] = number
    return found


def known(root: pathlib.Path) -> dict[str, int]:
    lines = [line.rsplit(" ", 1) for line in (root / LIST).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: int(number) for name, number in lines}


def wrong(found: dict[str, int], allowed: dict[str, int], in_messages: dict[str, int]) -> list[str]:
    said = [f"{name}: {number} messages begin with Of, Who, Whose or What of; name the subject" for name, number in sorted(in_messages.items())]
    free = [f"{LIST}: {name} may have no fragments, and none on this list" for name in sorted(allowed) if name.startswith(FREE)]
    more = [f"{name}: {number} comments or docstrings begin with Of, Who, Whose or What of; name the subject ({allowed.get(name, 0)} were there)"
            for name, number in sorted(found.items()) if number > allowed.get(name, 0)]
    fewer = [f"{LIST}: {name} has {found.get(name, 0)}, not {number}; fragments.py --write shortens the list"
             for name, number in sorted(allowed.items()) if found.get(name, 0) < number]
    return said + free + more + fewer


def self_test() -> int:
    bad = "int a;\n// Of rows.\nint b;  // Who asks.\n/* Whose sum. */\nfail(\"What of it\");\nfail(\"Of it\");\n"
    good = "// The kernel\n// Of rows: a line that goes on.\nint offset;  // offset\nauto text = \"Offline\";\n"
    raw = "auto a = R\"(Of it)\";\nauto b = R\"text(\nWho asks)text\";\n"
    quoted = "print('Of it')\nraise Error(f'Whose {sum}')\nraise Error(f\"Who {asks}\")\nword = 'Offline'\n"
    if count(bad, False) != 3 or count(good, False) != 0 or count('"""Of a call."""\n', True) != 1:
        print(f"self-test: {count(bad, False)}, {count(good, False)} comments")
        return 1
    if messages(bad, False) != 2 or messages(good, False) != 0 or messages(raw, False) != 2 or messages(quoted, True) != 3:
        print(f"self-test: {messages(bad, False)}, {messages(good, False)}, {messages(raw, False)}, {messages(quoted, True)} messages")
        return 1
    if len(wrong({"a": 2}, {"a": 1}, {})) != 1 or len(wrong({"a": 1}, {"a": 2}, {})) != 1 or wrong({"a": 1}, {"a": 1}, {}):
        print("self-test: the list may grow")
        return 1
    if len(wrong({}, {}, {"a": 1})) != 1 or len(wrong({"tools/a": 1}, {"tools/a": 1}, {})) != 1:
        print("self-test: messages, or what is to be free, may have fragments")
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
    lines = wrong(found, known(root), counts(root, messages))
    print("\n".join(lines) if lines else f"{sum(found.values())} fragments in {len(found)} files, none of them new")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
