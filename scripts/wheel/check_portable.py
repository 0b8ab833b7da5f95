#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says whether libraries and programs run where the C library is 2.36 or later: which symbols they want, of whom, and at which
version; and which they bring in its place (python/portable/newer_symbols.c).

    check_portable.py <folder>            every ELF file below it; exit code 1 with a line for each thing that is missing elsewhere
    check_portable.py <folder> <built>    and what is supplied must be in those that were built, with their symbols: else it is
                                          wanted no more
"""
import pathlib
import re
import subprocess
import sys

NEWEST = (2, 36)
# What every glibc has; and what lies beside the file that wants it.
LIBRARIES = re.compile(r"^(lib(c|m)\.so\.6|ld-linux-x86-64\.so\.2|libwavejit(_codegen|_simgpu)?\.so(\.0)?)$")
SYMBOL = re.compile(r"^\s*\d+:\s+\S+\s+\S+\s+(?P<kind>\S+)\s+(?P<bind>\S+)\s+\S+\s+UND\s+(?P<name>[^@\s]+)(?:@+(?P<version>\S+))?")
SUPPLIED = pathlib.Path(__file__).resolve().parents[2] / "python" / "portable" / "newer_symbols.c"


def supplied() -> list[str]:
    """Names of the functions that newer_symbols.c defines."""
    return re.findall(r"^[a-z ]+?(\w+)\([^;{]*\) \{", SUPPLIED.read_text(encoding="utf-8"), re.M)


def read(option: str, file: pathlib.Path) -> str:
    return subprocess.run(["readelf", option, "-W", str(file)], check=True, capture_output=True, text=True).stdout


def is_elf(file: pathlib.Path) -> bool:
    if file.is_symlink() or not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def elf_files(folder: pathlib.Path) -> list[pathlib.Path]:
    return [file for file in sorted(folder.rglob("*")) if is_elf(file)]


def complaint(name: str, bind: str, version: str | None, python: bool) -> str | None:
    """Why one undefined symbol is not to be had on an older system; None if it is."""
    if not version:
        if bind == "WEAK" or (python and re.match(r"_?Py", name)) or name.startswith("wavejit_"):
            return None
        return f"{name} is of no library"
    number = re.match(r"GLIBC_(\d+)\.(\d+)", version)
    if not number:
        return None if version == "GLIBC_ABI_DT_RELR" else f"{name} is wanted at {version}, which is not the C library's"
    if (int(number[1]), int(number[2])) > NEWEST:
        return f"{name} is wanted at {version}"
    return None


def complaints(file: pathlib.Path) -> list[str]:
    found = []
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", read("-d", file)):
        if not LIBRARIES.match(needed):
            found.append(f"needs {needed}")
    for line in read("--dyn-syms", file).splitlines():
        match = SYMBOL.match(line)
        if match:
            reason = complaint(match["name"], match["bind"], match["version"], file.name.startswith("_wavejit."))
            if reason:
                found.append(reason)
    for exported in re.findall(r"(?:GLOBAL|WEAK)\s+DEFAULT\s+\d+\s+(__isoc23_\w+|_ZNSt\w+|_ZSt\w+)", read("--dyn-syms", file)):
        found.append(f"shows {exported} to other libraries")
    return found


def unwanted(built: pathlib.Path) -> list[str]:
    """Functions of newer_symbols.c that the linker took into no file below `built`."""
    symbols = "".join(read("--symbols", file) for file in elf_files(built))
    return [f"{name}: no file wants it any more; it can leave {SUPPLIED.name}" for name in supplied() if not re.search(rf"\d (\S+ +)?{name}$", symbols, re.M)]


def main() -> int:
    files = elf_files(pathlib.Path(sys.argv[1]))
    if not files:
        sys.exit(f"{sys.argv[1]}: no libraries and no programs there")
    bad = [f"{file.name}: {reason}" for file in files for reason in complaints(file)]
    if len(sys.argv) > 2:
        bad += unwanted(pathlib.Path(sys.argv[2]))
    print("\n".join(bad) if bad else f"{len(files)} files run with a C library of {NEWEST[0]}.{NEWEST[1]}; supplied to them: {' '.join(supplied())}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
