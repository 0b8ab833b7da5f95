#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs an installed package as a wheel; what pip reads beside it comes from pyproject.toml.

    pack.py <installed folder> <tag> <folder for the wheel> [folder]     prints the wheel's path

With libdeflate at hand (deflate, from PyPI), wheels are 4 % smaller than zlib's and take half a minute; what it made of large files is
kept in the last folder, for the next wheel.

The installed folder holds `wavejit/` as it will stand in site-packages. A wheel is a zip file of that and of a folder
<name>-<version>.dist-info (packaging.python.org, "Binary distribution format").
"""
import base64
import hashlib
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import tomllib
import zlib

try:
    import deflate
except ImportError:
    deflate = None

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LARGE = 1 << 20


def metadata(project: dict) -> str:
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
             f"License-Expression: {project['license']['text']}"]
    lines += [f"Author-email: {author['name']} <{author['email']}>" for author in project["authors"]]
    lines += [f"Project-URL: {name}, {address}" for name, address in project["urls"].items()]
    lines += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    lines += [f"License-File: {name}" for name in ("LICENSE", "THIRD-PARTY.md")]
    lines.append(f"Requires-Python: {project['requires-python']}")
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + (SOURCE / project["readme"]).read_text(encoding="utf-8")


def bill_of_materials() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch, "wavejit.spdx.json")
        # Debian's Python, as for every script of this tree: the one that packs may be another.
        subprocess.run(["/usr/bin/python3", SOURCE / "scripts" / "sbom.py", file], check=True)
        return file.read_bytes()


def entry_points(project: dict) -> str:
    """Console scripts, and what others' packages look for in ours."""
    groups = {"console_scripts": project["scripts"], **project.get("entry-points", {})}
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items()) for group, entries in groups.items())


def compressed(content: bytes, kept: pathlib.Path | None) -> bytes:
    """Raw deflate data."""
    if deflate is None:
        deflater = zlib.compressobj(9, wbits=-15)
        return deflater.compress(content) + deflater.flush()
    file = kept / hashlib.sha256(content).hexdigest() if kept and len(content) >= LARGE else None
    if file and file.exists() and zlib.decompress(file.read_bytes(), -15) == content:
        return file.read_bytes()
    data = bytes(deflate.deflate_compress(content, 12))
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return data


class Wheel:
    """A zip file that notes the sum of each of its files, as RECORD wants them. Python's zipfile takes nothing that is compressed
    already. Entries have zip's earliest time, so that equal files make equal wheels."""

    def __init__(self, path: pathlib.Path, kept: pathlib.Path | None) -> None:
        self.file = path.open("wb")
        self.kept = kept
        self.directory = b""
        self.entries = 0
        self.record: list[str] = []

    def write(self, name: str, content: bytes, mode: int) -> None:
        data = compressed(content, self.kept)
        # version 2.0, no flags, deflated, midnight of 1 January 1980
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, zlib.crc32(content), len(data), len(content), len(name), 0)
        self.directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + common + struct.pack("<HHHII", 0, 0, 0, (0o100000 | mode) << 16, self.file.tell())
        self.directory += name.encode("ascii")
        self.file.write(b"PK\3\4" + common + name.encode("ascii") + data)
        self.entries += 1

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self.write(name, content, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self, record_name: str) -> None:
        self.record.append(f"{record_name},,\n")
        self.write(record_name, "".join(self.record).encode(), 0o644)
        end = self.file.tell()
        self.file.write(self.directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, self.entries, self.entries, len(self.directory), end, 0))
        self.file.close()


def main() -> int:
    installed, tag, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stem = f"{project['name']}-{project['version']}"
    path = output / f"{stem}-{tag}.whl"
    part = path.with_suffix(".part")
    output.mkdir(parents=True, exist_ok=True)
    wheel = Wheel(part, pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None)
    for file in sorted(file for file in installed.rglob("*") if file.is_file()):
        wheel.add(file.relative_to(installed).as_posix(), file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
    folder = f"{stem}.dist-info"
    wheel.add(f"{folder}/METADATA", metadata(project).encode())
    wheel.add(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nGenerator: wavejit {project['version']}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{folder}/entry_points.txt", entry_points(project).encode())
    for name in ("LICENSE", "THIRD-PARTY.md"):
        wheel.add(f"{folder}/licenses/{name}", (SOURCE / name).read_bytes())
    # Where scanners look for it (PEP 770).
    wheel.add(f"{folder}/sboms/wavejit.spdx.json", bill_of_materials())
    wheel.close(f"{folder}/RECORD")
    part.rename(path)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
