#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every source file says its licence in its first lines.

    licence_lines.py --check [root]   list files without the line; exit code 1 if there are any
    licence_lines.py --write [root]   write the line into them
    licence_lines.py --self-test      show that the check can fail and that what is written passes it

Files are those of `git ls-files`. Prose, lists, JSON and pictures carry no line: LICENSE is for all of the tree.
"""
import pathlib
import subprocess
import sys
import tempfile

LINE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
SLASHES = {".h", ".hpp", ".def", ".cpp", ".c", ".hip", ".h.in"}
HASHES = {".py", ".sh", ".cmake", ".cmake.in", ".pc.in", ".map"}
HASH_NAMES = {"dev", "run", "CMakeLists.txt", "Containerfile", ".clang-tidy", ".clang-format"}
STARS = {".js", ".css"}
# Written by programs, which would write them without the line; and the frame of every page that the profile makes.
EXCEPT = {"templates/attention_forward/kernel/room.inc", "templates/attention_forward/kernel/tuned_defaults.inc",
          "tools/profile/page/frame.html"}


def comment(name: str) -> str | None:
    """The line as a comment of the file's language; None for a file that carries none."""
    path = pathlib.PurePath(name)
    endings = {path.suffix, "".join(path.suffixes[-2:])}
    if name in EXCEPT:
        return None
    if endings & SLASHES:
        return f"// {LINE}"
    if endings & HASHES or path.name in HASH_NAMES:
        return f"# {LINE}"
    if endings & STARS:
        return f"/* {LINE} */"
    return None


def with_line(text: str, line: str) -> str:
    """In front of everything but what says how the file is run."""
    first, newline, rest = text.partition("\n")
    if first.startswith("#!"):
        return f"{first}{newline}{line}\n{rest}"
    return f"{line}\n{text}"


def sources(root: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, stdout=subprocess.PIPE, text=True).stdout
    named = ((name, comment(name)) for name in listed.split("\0") if name)
    return [(root / name, line) for name, line in named if line]


def without_line(root: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    return [(path, line) for path, line in sources(root) if line not in path.read_text(encoding="utf-8").splitlines()[:2]]


def write(root: pathlib.Path) -> int:
    missing = without_line(root)
    for path, line in missing:
        path.write_text(with_line(path.read_text(encoding="utf-8"), line), encoding="utf-8")
    print(f"{len(missing)} files got the line")
    return 0


def check(root: pathlib.Path) -> int:
    missing = without_line(root)
    for path, _ in missing:
        print(f"{path.relative_to(root)}: no line '{LINE}' at its head (scripts/licence_lines.py --write)")
    return 1 if missing else 0


def self_test() -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        files = {"a.cpp": "// What it is.\n", "b.sh": "#!/bin/sh\ntrue\n", "c.md": "prose\n", "d/CMakeLists.txt": "project(x)\n", "e.css": "p {}\n"}
        for name, text in files.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        subprocess.run(["git", "-C", root, "init", "-q"], check=True)
        subprocess.run(["git", "-C", root, "add", "."], check=True)
        found = {path.relative_to(root).as_posix() for path, _ in without_line(root)}
        if found != {"a.cpp", "b.sh", "d/CMakeLists.txt", "e.css"}:
            print("self-test: files without the line are", found)
            return 1
        write(root)
        write(root)  # twice is as once
        expected = {"a.cpp": f"// {LINE}\n// What it is.\n", "b.sh": f"#!/bin/sh\n# {LINE}\ntrue\n", "c.md": "prose\n",
                    "d/CMakeLists.txt": f"# {LINE}\nproject(x)\n", "e.css": f"/* {LINE} */\np {{}}\n"}
        for name, text in expected.items():
            if (root / name).read_text(encoding="utf-8") != text:
                print(f"self-test: {name} became", (root / name).read_text(encoding="utf-8"))
                return 1
        return check(root)


def main() -> int:
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
    return {"--check": lambda: check(root), "--write": lambda: write(root), "--self-test": self_test}[sys.argv[1]]()


if __name__ == "__main__":
    sys.exit(main())
