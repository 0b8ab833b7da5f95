#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes THIRD-PARTY.md: whose code is inside wavejit, with the notices that Debian's packages have.

    third_party.py <file>           write it
    third_party.py --check <file>   exit code 1, with the difference, if the file is not what would be written

The packages are in cmake/third_party.txt, their notices in /usr/share/doc/<package>/copyright.
"""
import difflib
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
NOTICES = pathlib.Path("/usr/share/doc")
HEAD = """# Third-party code

What is linked statically into wavejit's libraries and programs, or compiled into them from headers. `./dev third-party` writes
this page from `cmake/third_party.txt` and from the notices of Debian's packages, which follow word for word.

libstdc++ and libgcc come along with every C++ program. Their licence, GPL-3.0 with the GCC Runtime Library Exception, asks nothing
of a program that is compiled with them. HIP and comgr are opened at run time and are not inside.

The last column names the licences of all that a source package has. The GPL and the Artistic licence are there for programs,
scripts and tests (xxhsum, OpenSSL's Perl), which are not inside.

| package | inside of | how | what for | licences |
|---|---|---|---|---|
"""
PART_NAMES = {"runtime": "libwavejit0", "program": "wavejit", "python": "the Python package"}


def entries() -> list[list[str]]:
    lines = (SOURCE / "cmake" / "third_party.txt").read_text(encoding="utf-8").splitlines()
    return [[column.strip() for column in line.split("|")] for line in lines if line and not line.startswith("#")]


def notice(package: str) -> str:
    path = NOTICES / package / "copyright"
    if not path.exists():
        sys.exit(f"{path} is not there: is {package} installed?")
    return path.read_text(encoding="utf-8").rstrip("\n")


def licences(text: str) -> str:
    """Short names of what the files are under; those of Debian's own packaging are not."""
    names = []
    for paragraph in re.split(r"\n\s*\n", text):
        files = re.search(r"^Files:\s*(.*)$", paragraph, re.M)
        licence = re.search(r"^License:\s*(\S.*)$", paragraph, re.M)
        if files and licence and not files.group(1).startswith("debian/") and licence.group(1).strip() not in names:
            names.append(licence.group(1).strip())
    return ", ".join(names)


def page() -> str:
    rows, notices, seen = [], [], {}
    for package, parts, how, purpose in entries():
        text = notice(package)
        inside = ", ".join(PART_NAMES[part] for part in parts.split())
        rows.append(f"| {package} | {inside} | {how} | {purpose} | {licences(text)} |")
        if text in seen:
            notices.append(f"## {package}\n\nThe notice of {seen[text]}.\n")
        else:
            notices.append(f"## {package}\n\n```text\n{text.expandtabs()}\n```\n")
        seen.setdefault(text, package)
    return HEAD + "\n".join(rows) + "\n\n" + "\n".join(notices)


def main() -> int:
    check = sys.argv[1] == "--check"
    path = pathlib.Path(sys.argv[2 if check else 1])
    wanted = page()
    if not check:
        path.write_text(wanted, encoding="utf-8")
        return 0
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    if found == wanted:
        return 0
    difference = difflib.unified_diff(found.splitlines(), wanted.splitlines(), str(path), "the packages' notices", lineterm="", n=1)
    print("\n".join(list(difference)[:40]))
    print(f"{path} is not current: ./dev third-party writes it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
