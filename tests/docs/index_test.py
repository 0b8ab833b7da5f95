#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every page of docs/ stands in docs/README.md, which orders them for readers.

    index_test.py <source root>
    index_test.py --self-test
"""
import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)#]+\.md)")


def missing(index: str, pages: set[str]) -> set[str]:
    return pages - set(LINK.findall(index)) - {"README.md"}


def main() -> int:
    if sys.argv[1] == "--self-test":
        return 0 if missing("[a.md](a.md#part), b.md", {"a.md", "b.md", "README.md"}) == {"b.md"} else 1
    docs = pathlib.Path(sys.argv[1]) / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    for page in sorted(missing((docs / "README.md").read_text(encoding="utf-8"), pages)):
        print(f"docs/README.md does not name docs/{page}; give it a row for the reader whom it helps")
    return 1 if missing((docs / "README.md").read_text(encoding="utf-8"), pages) else 0


if __name__ == "__main__":
    sys.exit(main())
