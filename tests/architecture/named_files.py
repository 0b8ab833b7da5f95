#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the README of a folder names the folder's source files, so that a reader who looks for a file finds what it is for.

    named_files.py <source root>            check the tree
    named_files.py --self-test              show that the check can fail

The README that counts is the one of the file's folder or of the nearest folder above that has one. A file is named by its name, by its path
from any folder below the README, or by a pattern: `access.*`, `rows.{h,cpp}`, `v_cvt_*.cpp`, `probes/*.s`. A pattern has to say more than an
extension: `*.cpp` and `probes/*` name nothing.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

FOLDERS = ("src", "templates", "tools", "python/wavejit", "bench")
SOURCES = (".h", ".hpp", ".cpp", ".c", ".py", ".pyi", ".inc", ".def", ".s", ".hip", ".js", ".css", ".html", ".in", ".map", ".cmake", ".sh")
WORD = re.compile(r"[\w.*/{}-](?:[\w.*/{}-]|,(?=[\w.*{}]+[},]))*")
BRACES = re.compile(r"\{([^{}]*)\}")


def expanded(word: str) -> list[str]:
    """The words that braces stand for: rows.{h,cpp} is rows.h and rows.cpp."""
    braces = BRACES.search(word)
    if braces is None:
        return [word]
    return [end for choice in braces.group(1).split(",") for end in expanded(word[:braces.start()] + choice + word[braces.end():])]


def says_something(pattern: str) -> bool:
    """Whether a pattern has a part of a name, as rows.* has, or a folder and an ending, as probes/*.s has."""
    folder, _, name = pattern.rpartition("/")
    return re.search(r"\w{2}", re.sub(r"\.\w+$", "", name)) is not None or (folder != "" and re.fullmatch(r"\*\.\w+", name) is not None)


def words_of(readme: str) -> tuple[set[str], list[str]]:
    """What a README may name files by: whole names, and patterns."""
    words = {end.strip("./") if end.endswith("/") else end.rstrip(".") for word in WORD.findall(readme) for end in expanded(word)}
    names = {word for word in words if "." in word and "*" not in word}
    patterns = [word for word in words if "*" in word and says_something(word)]
    return names, sorted(patterns)


def is_named(path: str, names: set[str], patterns: list[str]) -> bool:
    parts = path.split("/")
    ends = ["/".join(parts[index:]) for index in range(len(parts))]
    return any(end in names for end in ends) or any(fnmatch.fnmatchcase(end, pattern) and end.count("/") == pattern.count("/")
                                                   for end in ends for pattern in patterns)


def unnamed(sources: list[str], readmes: dict[str, str]) -> list[str]:
    """Sources that their README does not name; readmes are texts by folder."""
    words = {folder: words_of(text) for folder, text in readmes.items()}
    wrong = []
    for path in sources:
        above = [str(folder) for folder in pathlib.PurePosixPath(path).parents if str(folder) in readmes]
        if not above:
            wrong.append(f"{path}: no folder above has a README.md")
            continue
        inside = path if above[0] == "." else path.removeprefix(above[0] + "/")
        if not is_named(inside, *words[above[0]]):
            wrong.append(f"{path}: {above[0]}/README.md does not name it; say in a clause what the file is for")
    return wrong


def check(root: pathlib.Path) -> list[str]:
    tracked = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *FOLDERS, "*README.md"], check=True, capture_output=True, text=True).stdout.splitlines()
    tracked = [name for name in tracked if (root / name).exists()]
    readmes = {str(pathlib.PurePosixPath(name).parent): (root / name).read_text(encoding="utf-8") for name in tracked if name.endswith("README.md")}
    sources = [name for name in tracked if name.startswith(tuple(folder + "/" for folder in FOLDERS)) and name.endswith(SOURCES)]
    if len(sources) < 20:
        return [f"only {len(sources)} source files below {root}: wrong folder?"]
    return unnamed(sources, readmes)


def self_test() -> list[str]:
    readmes = {"src": "`rows.{h,cpp}` sum; `access.*`, and `probes/*.s` ask. `inner/deep.h`: deep. `cast_*.cpp`\n| lanes.h, waves.* | both |\n",
               "src/own": "`own.h`, *.cpp and `*.inc`, `part/*`."}
    good = ["src/rows.h", "src/rows.cpp", "src/access.h", "src/probes/add.s", "src/inner/deep.h", "src/cast_up.cpp", "src/lanes.h", "src/waves.cpp", "src/own/own.h"]
    bad = ["src/row.h", "src/access_path.h", "src/probes/add.h", "src/add.s", "src/lanes.cpp", "src/own/a.cpp", "src/own/lanes.h", "src/own/b.inc", "src/own/part/a.h", "bench/a.py"]
    wrong = [f"refused: {line}" for line in unnamed(good, readmes)]
    found = unnamed(bad, readmes)
    return wrong + [f"passed: {path}" for path in bad if not any(line.startswith(path + ":") for line in found)]


def main() -> int:
    wrong = self_test() if sys.argv[1] == "--self-test" else check(pathlib.Path(sys.argv[1]))
    print("\n".join(wrong) or "every source file is named in the README of its folder")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
