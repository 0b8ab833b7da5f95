#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every page of docs/ stands in docs/README.md, which orders them for readers. The README fits a visitor with one minute: at most
160 lines of at most 160 characters.

    index_test.py <source root>
    index_test.py --self-test
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#]+\.md)")


def missing(index: str, pages: set[str]) -> set[str]:
    return pages - set(LINK.findall(index)) - {"README.md"}


def too_long(readme: str) -> list[str]:
    lines = readme.splitlines()
    found = [f"README.md:{number}: {len(line)} characters; 160 at most" for number, line in enumerate(lines, 1) if len(line) > 160]
    return found + ([f"README.md has {len(lines)} lines; 160 at most"] if len(lines) > 160 else [])


def self_test() -> bool:
    pages = missing("[a.md](a.md#part), b.md", {"a.md", "b.md", "README.md"}) == {"b.md"}
    return pages and len(too_long("x" * 161 + "\n" * 161)) == 2 and not too_long("x" * 160)


def main() -> int:
    if sys.argv[1] == "--self-test":
        return 0 if self_test() else 1
    docs = pathlib.Path(sys.argv[1]) / "docs"
    found = too_long((docs.parent / "README.md").read_text(encoding="utf-8"))
    for line in found:
        print(line)
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    for page in sorted(missing((docs / "README.md").read_text(encoding="utf-8"), pages)):
        print(f"docs/README.md does not name docs/{page}; give it a row for the reader whom it helps")
    return 1 if found or missing((docs / "README.md").read_text(encoding="utf-8"), pages) else 0


if __name__ == "__main__":
    sys.exit(main())
