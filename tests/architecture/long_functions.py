#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of more than MOST lines in the folders that are held to it.

    long_functions.py <root>    fails with the name of each
    long_functions.py <root> <lines>    prints those of that many lines or more, anywhere in src, templates and tools

clang-format has the tree's shape, so that lines and braces tell where a function begins and ends.
"""
import pathlib
import re
import sys

MOST = 100
HELD = ("templates", "tools", "src/runtime", "src/families", "src/codegen", "src/cache", "src/vocabulary")
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//.*')
NO_FUNCTION = re.compile(r"^(namespace|class|struct|union|enum|if|for|while|switch|else|do|try|catch|return|}|extern|using)\b|^}")


def functions(text: str) -> list[tuple[int, int, str]]:
    """First line, number of lines, the line that opens it."""
    lines = text.splitlines()
    bare = [STRINGS.sub("", line) for line in lines]
    found = []
    for at, line in enumerate(bare):
        if not line.endswith("{") or ")" not in line:
            continue
        first = at  # of its parameters
        while first > 0 and sum(bare[i].count(")") - bare[i].count("(") for i in range(first, at + 1)) > 0:
            first -= 1
        indent = len(bare[first]) - len(bare[first].lstrip())
        stripped = bare[first].strip()
        if NO_FUNCTION.match(stripped) or (indent > 4 if stripped.startswith(":") else indent > 2) or "[" in stripped.split("(")[0].replace("[[", ""):
            continue
        depth = 0
        for end in range(at, len(bare)):
            depth += bare[end].count("{") - bare[end].count("}")
            if depth <= 0:
                break
        found.append((at + 1, end - at + 1, stripped))
    return found


def longer_than(root: pathlib.Path, folders: tuple[str, ...], most: int) -> list[str]:
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                found += [(length, f"{path.relative_to(root)}:{line}: {length} lines: {text}") for line, length, text in functions(path.read_text(encoding="utf-8")) if length > most]
    return [text for _, text in sorted(found, reverse=True)]


def self_test() -> int:
    body = "".join(f"  call({i});\n" for i in range(120))
    assert [length for _, length, _ in functions(f"void f(int a) {{\n{body}}}\n\nint g() {{\n  return '{{';\n}}\n")] == [122, 3]
    assert [length for _, length, _ in functions(f"void f(int a,\n       int b) {{\n{body}}}\n")] == [122]
    assert functions("struct S {\n  int a;\n};\n") == []
    print("long_functions.py sees a long function")
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        print("\n".join(longer_than(root, ("src", "templates", "tools"), int(sys.argv[2]) - 1)))
        return 0
    found = longer_than(root, HELD, MOST)
    for text in found:
        print(f"{text}; accepted: up to {MOST}, so cut it in named steps")
    if not found:
        print(f"no function of {', '.join(HELD)} has more than {MOST} lines")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
