#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether every file compiles by itself: builds of the dev preset compile several together, with compiled headers of
others before them, and so do not see an #include that is missing. A header is included by a file that has nothing else.

Reads what has changed since it was last read (stamps as in tidy_units.py). With --part only what the last commits touched,
and a share of the tree by the stamps.

    compile_alone.py --stamps <folder> --commands <compile_commands.json> [--part]
    compile_alone.py --self-test
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import tidy_units

# A file costs a second or three, those with LLVM's headers most: this part of the tree is some six files.
SHARE = 320
RECENT_FILES = 5
HEADERS = ("*.h", "*.hpp")


def without_compiled_headers(words: list[str]) -> list[str]:
    """The command without what CMake puts in front of every file, without its output."""
    kept: list[str] = []
    i = 0
    while i < len(words):
        if words[i] == "-Winvalid-pch":
            i += 1
        elif words[i:i + 2] in (["-Xclang", "-include-pch"], ["-Xclang", "-include"]):
            i += 4
        elif words[i:i + 2] == ["-Xclang", "-fno-pch-timestamp"]:
            i += 2
        elif words[i] in ("-o", "-c"):
            i += 2
        else:
            kept.append(words[i])
            i += 1
    return kept


class Tree:
    def __init__(self, commands: pathlib.Path) -> None:
        here = str(pathlib.Path.cwd()) + "/"
        self.flags: dict[str, list[str]] = {}
        self.folder: dict[str, str] = {}
        listed = set(tidy_units.git("ls-files", "*.cpp", "*.c", "--"))
        for entry in json.loads(commands.read_text(encoding="utf-8")):
            name = entry["file"].removeprefix(here)
            if name in listed and name not in self.flags:
                self.flags[name] = without_compiled_headers(shlex.split(entry["command"]))
                self.folder[name] = entry["directory"]
        # A header is read with the flags of a file that includes it, directly if one does.
        self.reader: dict[str, str] = {}
        headers = set(tidy_units.git("ls-files", *HEADERS, "--"))
        for direct in (True, False):
            for unit in sorted(self.flags):
                reached = tidy_units.included_by(unit) if direct else tidy_units.reached_from(unit)
                for name in map(os.path.normpath, reached):
                    if name in headers and name != unit:
                        self.reader.setdefault(name, unit)
        self.units = sorted([*self.flags, *self.reader])

    def problem_of(self, unit: str) -> str:
        """What the compiler says, or nothing."""
        reader = self.reader.get(unit, unit)
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(unit).absolute()
            if unit in self.reader:
                alone = pathlib.Path(scratch, "alone" + pathlib.Path(reader).suffix)
                alone.write_text(f'#include "{source}"\n', encoding="utf-8")
                source = alone
            ran = subprocess.run([*self.flags[reader], "-fsyntax-only", "-Wno-unused-function", str(source)],
                                 cwd=self.folder[reader], capture_output=True, text=True, check=False)
        return "" if ran.returncode == 0 else f"{unit} does not compile by itself:\n{ran.stderr}"


def self_test() -> int:
    command = ("clang++ -Ia -Xclang -fno-pch-timestamp -Winvalid-pch -Xclang -include-pch -Xclang x.pch -Xclang -include "
               "-Xclang x.hxx -o a.o -c a.cpp").split()
    assert without_compiled_headers(command) == ["clang++", "-Ia"], without_compiled_headers(command)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        subprocess.run(["git", "init", "-q"], check=True)
        pathlib.Path("whole.h").write_text("#include <string>\nstd::string one();\n", encoding="utf-8")
        pathlib.Path("half.h").write_text("inline std::string other();\n", encoding="utf-8")
        pathlib.Path("a.cpp").write_text('#include "whole.h"\n#include "half.h"\nstd::string one() { return {}; }\n',
                                         encoding="utf-8")
        pathlib.Path("b.cpp").write_text("std::vector<int> none;\n", encoding="utf-8")
        pathlib.Path("commands.json").write_text(json.dumps(
            [{"directory": scratch, "file": f"{scratch}/{name}", "command": f"clang++-22 -std=c++23 -c {name}"}
             for name in ("a.cpp", "b.cpp")]), encoding="utf-8")
        subprocess.run(["git", "add", "-A"], check=True)
        tree = Tree(pathlib.Path("commands.json"))
        assert tree.units == ["a.cpp", "b.cpp", "half.h", "whole.h"], tree.units
        found = [unit for unit in tree.units if tree.problem_of(unit)]
        assert found == ["b.cpp", "half.h"], found
    print("a file and a header that lean on others are found")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stamps", type=pathlib.Path)
    parser.add_argument("--commands", type=pathlib.Path)
    parser.add_argument("--part", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    tree = Tree(options.commands)
    chosen = tidy_units.part_of(tree.units, SHARE, RECENT_FILES) if options.part else tree.units
    todo = [(unit, options.stamps / f"alone-{tidy_units.stamp_of(unit)}") for unit in chosen]
    todo = [(unit, stamp) for unit, stamp in todo if not stamp.exists()]
    print(f"[lint] {len(todo)} files, each by itself", flush=True)
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, stamp), problem in zip(todo, pool.map(tree.problem_of, [unit for unit, _ in todo])):
            if problem:
                failed = True
                print(problem, flush=True)
            else:
                stamp.touch()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
