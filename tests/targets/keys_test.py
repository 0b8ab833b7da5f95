#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which facts of a machine are in cache keys: the generators' ids of this tree, formed as the build forms them.

A line more in what emission asks of a target changes the id of every family; one more in what a board has, or in what an
instruction costs, changes none. Works on a copy.

    keys_test.py <source root> <folder with engine.txt and <family>.txt> <cmake>
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

IN_EVERY_KEY = ("src/targets/targets.h", "src/targets/targets.cpp")
IN_NO_KEY = ("src/boards/board.h", "src/boards/board.cpp", "src/isa/matrix.h", "src/isa/matrix.cpp", "src/timing/timing.cpp")
FAMILY = re.compile(r'WAVEJIT_FAMILY_GENERATOR\("([a-z_]+)", "([0-9a-f]+)"\)')


def main() -> int:
    root, lists, cmake = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    names = sorted(path.stem for path in lists.glob("*.txt") if path.stem != "engine")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "lists").mkdir()
        wanted = set(IN_NO_KEY)
        for path in lists.glob("*.txt"):
            files = [str(pathlib.Path(line).relative_to(root)) for line in path.read_text(encoding="utf-8").split()]
            wanted.update(files)
            (work / "lists" / path.name).write_text("".join(f"{work / 'tree' / name}\n" for name in files), encoding="utf-8")
        for name in wanted:
            target = work / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target)

        def ids() -> dict[str, str]:
            subprocess.run([cmake, f"-DROOT={work / 'tree'}", f"-DFAMILIES={' '.join(names)}", f"-DLISTS={work / 'lists'}",
                            f"-DOUTPUT={work / 'id.h'}", "-DLLVM_VERSION=1.2.3", "-P",
                            str(root / "src/codegen/generator_id.cmake")], check=True, capture_output=True)
            return dict(FAMILY.findall((work / "id.h").read_text(encoding="utf-8")))

        before, faults = ids(), []
        if sorted(before) != names or not names:
            faults.append(f"ids of {sorted(before)}, families are {names}")
        for name in IN_EVERY_KEY + IN_NO_KEY:
            file = work / "tree" / name
            text = file.read_text(encoding="utf-8")
            file.write_text(text + "// another fact\n", encoding="utf-8")
            changed = {family for family, text in ids().items() if text != before[family]}
            file.write_text(text, encoding="utf-8")
            expected = set(names) if name in IN_EVERY_KEY else set()
            if changed != expected:
                faults.append(f"{name}: a change to it changes the keys of {sorted(changed)}, expected {sorted(expected)}")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
