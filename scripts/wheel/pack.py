#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs an installed package as a wheel; what pip reads beside it comes from pyproject.toml.

    pack.py <installed folder> <tag> <folder for the wheel>     prints the wheel's path

The installed folder holds `wavejit/` as it will stand in site-packages. A wheel is a zip file of that and of a folder
<name>-<version>.dist-info (packaging.python.org, "Binary distribution format").
"""
import base64
import hashlib
import os
import pathlib
import sys
import tomllib
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# The same bytes from the same files: a zip file holds times, the earliest of which is this.
EPOCH = (1980, 1, 1, 0, 0, 0)


def metadata(project: dict) -> str:
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
             f"License-Expression: {project['license']['text']}"]
    lines += [f"License-File: {name}" for name in ("LICENSE", "THIRD-PARTY.md")]
    lines.append(f"Requires-Python: {project['requires-python']}")
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {requirement}; extra == "{extra}"' for requirement in requirements]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + (SOURCE / project["readme"]).read_text(encoding="utf-8")


def scripts(project: dict) -> str:
    return "[console_scripts]\n" + "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())


class Wheel:
    """A zip file that notes the sum of each of its files, as RECORD wants them."""

    def __init__(self, path: pathlib.Path) -> None:
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record: list[str] = []

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100000 | mode) << 16
        self.zip.writestr(entry, content, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self, record_name: str) -> None:
        self.record.append(f"{record_name},,\n")
        entry = zipfile.ZipInfo(record_name, EPOCH)
        entry.external_attr = 0o100644 << 16
        self.zip.writestr(entry, "".join(self.record), compress_type=zipfile.ZIP_DEFLATED)
        self.zip.close()


def main() -> int:
    installed, tag, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stem = f"{project['name']}-{project['version']}"
    path = output / f"{stem}-{tag}.whl"
    part = path.with_suffix(".part")
    output.mkdir(parents=True, exist_ok=True)
    wheel = Wheel(part)
    for file in sorted(file for file in installed.rglob("*") if file.is_file()):
        wheel.add(file.relative_to(installed).as_posix(), file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
    folder = f"{stem}.dist-info"
    wheel.add(f"{folder}/METADATA", metadata(project).encode())
    wheel.add(f"{folder}/WHEEL", f"Wheel-Version: 1.0\nGenerator: wavejit {project['version']}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{folder}/entry_points.txt", scripts(project).encode())
    for name in ("LICENSE", "THIRD-PARTY.md"):
        wheel.add(f"{folder}/licenses/{name}", (SOURCE / name).read_bytes())
    wheel.close(f"{folder}/RECORD")
    part.rename(path)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
