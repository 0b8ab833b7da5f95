#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stands in for NVIDIA's libraries, so that PyPI's PyTorch can be imported without them.   torch_stubs.py <site-packages>

PyPI has PyTorch for Linux with CUDA only. Its libraries name a dozen of NVIDIA's, 4 GB, and call none of them but the CUDA
runtime where there is no NVIDIA GPU. Each that is not installed becomes a library of the same name here, whose functions
all answer 100, cudaErrorNoDevice.
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

COMPILERS = ("clang-22", "clang", "gcc", "cc")
MINE = re.compile(r"^(cu|nccl|nvrtc|nvshmem|__cuda)")
NVIDIAS = re.compile(r"lib(cu|nv|nccl)\S*\.so\.\d+")


def told(*command: object) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def wanted(libraries: list[pathlib.Path]) -> tuple[set[str], dict[tuple[str, str], set[str]]]:
    """NVIDIA's libraries by name, and functions by library and symbol version; without a version they belong to none."""
    names: set[str] = set()
    functions: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for library in libraries:
        names |= {name for name in re.findall(r"NEEDED.*\[(.*)\]", told("readelf", "--dynamic", "--wide", library)) if NVIDIAS.fullmatch(name)}
        version_files: dict[str, str] = {}
        file = ""
        for line in told("readelf", "--version-info", "--wide", library).splitlines():
            if found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif (found := re.search(r"Name: (\S+)  Flags", line)) and NVIDIAS.fullmatch(file):
                version_files[found[1]] = file
        for line in told("nm", "--dynamic", "--undefined-only", library).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            if version in version_files:
                functions[version_files[version], version].add(symbol)
            elif not version and MINE.match(symbol):
                functions["", ""].add(symbol)
    return names, functions


def compiler() -> str:
    for name in COMPILERS:
        if found := shutil.which(name):
            return found
    sys.exit(f"torch_stubs.py: no C compiler is on the PATH; one of these will do: {', '.join(COMPILERS)}")


def main() -> None:
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], "torch", "lib").is_dir():
        sys.exit(f"torch_stubs.py <site-packages>: a folder with PyTorch in it (torch/lib); given: {' '.join(sys.argv[1:]) or 'nothing'}")
    cc = compiler()
    packages = pathlib.Path(sys.argv[1])
    folder = packages / "torch" / "lib"
    names, functions = wanted(sorted(folder.glob("libtorch*.so")) + sorted(folder.glob("libc10*.so")))
    for mine in folder.glob("lib*.so.*"):  # of an earlier run
        if NVIDIAS.fullmatch(mine.name):
            mine.unlink()
    names -= {path.name for path in packages.glob("nvidia/**/lib*.so*")}
    unversioned = functions.pop(("", ""), set())
    for name in sorted(names):
        mine = {version: symbols for (file, version), symbols in functions.items() if file == name}
        # What has no version may be anywhere.
        symbols = set().union(*mine.values(), unversioned if name.startswith("libcusparseLt") else set())
        source = "".join(f"int {symbol}(void) {{ return 100; }}\n" for symbol in sorted(symbols))
        script = folder / "stub.version"
        script.write_text("".join(f"{version} {{ global: {' '.join(f'{symbol};' for symbol in sorted(each))} }};\n" for version, each in mine.items()))
        command = [cc, "-w", "-O1", "-fno-builtin", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{name}", "-o", str(folder / name)]
        subprocess.run([*command, *([f"-Wl,--version-script={script}"] if mine else []), "-x", "c", "-"], input=source, text=True, check=True)
        script.unlink()


if __name__ == "__main__":
    main()
