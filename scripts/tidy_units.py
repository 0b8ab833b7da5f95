#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which files clang-tidy has still to read, one a line: "<file>|<stamp>".

A stamp is named by the contents of a file and of every header of ours that it reaches: a file whose inputs have not
changed since it was last clean is not read again, on any checkout that shares the folder of stamps. With --part only
these are listed: what the last commits touched, newest first, eight files at the most, and a 64th of the tree by the stamps.
`./dev lint` reads everything.

    tidy_units.py --stamps <folder> --commands <compile_commands.json> [--part]
"""
import argparse
import functools
import hashlib
import json
import pathlib
import re
import subprocess

INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.M)
ROOTS = ("src", ".", "include", "tests")
# So many of the last commits are looked at, and at the most so many files: a change of every file, such as its licence,
# is no reason to read them all.
RECENT_COMMITS = 15
RECENT_FILES = 8
SHARE = 64


def git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.split("\n")


@functools.cache
def text_of(path: str) -> str:
    return pathlib.Path(path).read_text(encoding="utf-8")


@functools.cache
def included_by(path: str) -> tuple[str, ...]:
    found = []
    for name in INCLUDE.findall(text_of(path)):
        candidates = [pathlib.Path(root, name) for root in ROOTS] + [pathlib.Path(path).parent / name]
        for candidate in candidates:
            if candidate.is_file():
                found.append(str(candidate))
                break
    return tuple(found)


def reached_from(unit: str) -> list[str]:
    """The unit and every file of ours that it includes, directly or not."""
    seen = {unit}
    queue = [unit]
    while queue:
        for name in included_by(queue.pop()):
            if name not in seen:
                seen.add(name)
                queue.append(name)
    return sorted(seen)


def stamp_of(unit: str) -> str:
    digest = hashlib.sha256(text_of(".clang-tidy").encode())
    for path in reached_from(unit):
        digest.update(path.encode() + b"\0" + text_of(path).encode() + b"\0")
    return digest.hexdigest()[:40]


def part_of(units: list[str], share: int = SHARE, most_recent: int = RECENT_FILES, commits: int = RECENT_COMMITS) -> list[str]:
    touched = [line for line in git("diff", "--name-only", "HEAD") if line]
    touched += git("log", f"-{commits}", "--name-only", "--format=")
    known = set(units)
    recent = [name for name in dict.fromkeys(touched) if name in known][:most_recent]
    return recent + [unit for unit in units if int(stamp_of(unit), 16) % share == 0 and unit not in recent]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stamps", type=pathlib.Path)
    parser.add_argument("--commands", type=pathlib.Path)
    parser.add_argument("--part", action="store_true")
    options = parser.parse_args()
    here = str(pathlib.Path.cwd()) + "/"
    compiled = {entry["file"].removeprefix(here) for entry in json.loads(options.commands.read_text(encoding="utf-8"))}
    listed = git("ls-files", "src/*.cpp", "templates/*.cpp", "tools/*.cpp", "examples/*.cpp", "python/*.cpp")
    units = sorted(name for name in listed if name in compiled)
    for unit in part_of(units) if options.part else units:
        stamp = options.stamps / stamp_of(unit)
        if not stamp.exists():
            print(f"{unit}|{stamp}")


if __name__ == "__main__":
    main()
