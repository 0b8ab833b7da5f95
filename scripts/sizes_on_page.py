#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of packages and wheels as docs/install.md says them, beside the files that were made.

    sizes_on_page.py <page> <.deb or .whl>…     a line for each; exit code 1 where the page is off by more than a twentieth
    sizes_on_page.py --self-test

A package's row of a table begins with its name, a wheel's with its tags (`cp312-abi3`); its second cell is the size. MB are
1,000,000 bytes.
"""
import pathlib
import re
import sys
import tempfile


def name_of(file: pathlib.Path) -> str:
    return "-".join(file.stem.split("-")[2:4]) if file.suffix == ".whl" else file.name.split("_")[0]


def judged(page: str, file: pathlib.Path) -> tuple[bool, str]:
    name, megabytes = name_of(file), file.stat().st_size / 1e6
    shown = f"{megabytes:.{1 if megabytes >= 0.1 else 2}f} MB"
    row = re.search(rf"^\| `{re.escape(name)}` \| ([0-9.]+) MB \|", page, re.MULTILINE)
    made = f"{name}: {shown}"
    if not row:
        return False, f"{made}; the page has no row '| `{name}` | {shown} | …'"
    said = float(row.group(1))
    right = abs(said - megabytes) <= max(megabytes / 20, 0.05)
    return right, made + ("" if right else f"; the page says {said:g} MB")


def self_test() -> int:
    page = "| `libwavejit0` | 2.7 MB | the library |\n| `cp312-abi3` | 46 MB | Python |\n"
    with tempfile.TemporaryDirectory() as folder:
        def judge(name: str, size: int) -> bool:
            file = pathlib.Path(folder, name)
            file.write_bytes(bytes(size))
            return judged(page, file)[0]

        assert judge("libwavejit0_0.1.0_amd64.deb", 2_750_000)
        assert not judge("libwavejit0_0.1.0_amd64.deb", 3_100_000)
        assert not judge("wavejit_0.1.0_amd64.deb", 2_700_000)
        assert judge("wavejit-0.1.0-cp312-abi3-manylinux_2_36_x86_64.whl", 45_000_000)
        assert not judge("wavejit-0.1.0-cp312-abi3-manylinux_2_36_x86_64.whl", 38_000_000)
    print("a size that the page has wrong, or has not, is found")
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    lines = [judged(page, pathlib.Path(name)) for name in sys.argv[2:]]
    print("\n".join(line for _, line in lines))
    return 0 if all(right for right, _ in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
