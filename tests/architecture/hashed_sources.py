#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that a cache key knows every source that decides a kernel's code.

A key holds the generator id of the kernel's family, a hash over lists of files (cmake/families.cmake). A header that
the family's kernel/ or emit/ includes and that stands in no list could change a kernel under an old key: a stale code
object from disk. Prints one line for each such header and exits 1 if there is any.

    hashed_sources.py <source root> <folder with engine.txt and <family>.txt>
    hashed_sources.py --self-test
"""
import pathlib
import sys

import rules

# The C interface is no part of a kernel, and its numbers never change.
NOT_HASHED = ("include/",)


def missing(files: dict[str, str], family: set[str], hashed: set[str]) -> list[str]:
    """What the family's files include, however far away, and no list has."""
    sources, seen, found = set(files), set(), []
    waiting = sorted(family)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for include in rules.INCLUDE.findall(files.get(path, "")):
            target = rules.resolve(include, sources, path)
            if target is None or target.startswith(NOT_HASHED):
                continue
            if target not in hashed:
                found.append(f"{target}: {path} includes it, and no generator id is over it")
            waiting.append(target)
    return sorted(set(found))


def list_of(path: pathlib.Path, root: pathlib.Path) -> set[str]:
    return {str(pathlib.Path(line).relative_to(root)) for line in path.read_text(encoding="utf-8").split()}


def self_test() -> int:
    files = {
        "templates/a/emit/emit.cpp": '#include "templates/a/kernel/spec.h"\n',
        "templates/a/kernel/spec.h": '#include "templates/shared/kernel/canon.h"\n#include "wavejit/wavejit.h"\n',
        "templates/shared/kernel/canon.h": "constexpr int chunk_keys = 1024;\n",
        "include/wavejit/wavejit.h": "",
    }
    own = {"templates/a/emit/emit.cpp", "templates/a/kernel/spec.h"}
    if not missing(files, own, own):
        print("self-test: a shared constant that no key knows was not seen")
        return 1
    if missing(files, own, own | {"templates/shared/kernel/canon.h"}):
        print("self-test: a tree whose keys know everything is refused")
        return 1
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root, lists = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    files = rules.tree(root)
    engine = list_of(lists / "engine.txt", root)
    found, count = [], 0
    for path in sorted(lists.glob("*.txt")):
        if path.name != "engine.txt":
            own = list_of(path, root)
            found += missing(files, own, engine | own)
            count += 1
    if count == 0:
        print(f"no family in {lists}: wrong folder?")
        return 1
    print("\n".join(sorted(set(found))) if found else f"the keys of {count} families know all that they include")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
