#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines that families have in common, though each has its own: what belongs into templates/attention, src/families or a runner.

    near_copies.py <root>             counts, by folder of a family; fails where there are more than MOST a family
    near_copies.py <root> <lines>     and prints the runs of that many lines or more, the longest first

A line counts if it stands in a run of at least three lines that another family has, too, its name apart. Blank lines, comments, includes and
lone punctuation are no lines. templates/attention is what families share, so it is not looked at.
"""
import collections
import pathlib
import re
import sys
import tempfile

# Lines in runs of at least three, for each family (2,294 of all at bf4eb831, by this count). It may only fall.
MOST = 98
FOLDERS = ("kernel", "call", "emit", "api", "program")
NO_LINE = re.compile(r"^(//.*|#.*|[{}();,\[\]]*|namespace .*|using .*|}  // namespace.*|else|break;|default:|public:|private:|return {};)$")


def families(root: pathlib.Path) -> list[str]:
    return sorted(path.name for path in (root / "templates").iterdir() if path.is_dir() and path.name != "attention")


def names_of(family: str) -> re.Pattern:
    camel = "".join(word.capitalize() for word in family.split("_"))
    short = {"attention_forward": "Attention|Forward", "attention_backward": "Backward", "attention_latent": "Latent", "attention_merge": "Merge",
             "cache_append": "Append", "softmax_lse": "Softmax", "sparse_indexer": "Indexer"}.get(family, camel)  # fmt: skip
    return re.compile(rf"{family}|{family.upper()}|{camel}|{short}")


def lines_of(path: pathlib.Path, names: re.Pattern) -> list[tuple[int, str]]:
    """Numbers and texts of what counts."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.split("  // ", 1)[0].strip()
        if not NO_LINE.match(text):
            found.append((number, names.sub("FAMILY", text)))
    return found


def runs(root: pathlib.Path, least: int) -> list[tuple[int, str, str]]:
    """Length, place and other place of every run that two families have."""
    files = {}
    for family in families(root):
        names = names_of(family)
        for path in sorted((root / "templates" / family).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                files[path] = (family, lines_of(path, names))
    windows = collections.defaultdict(list)
    for path, (family, lines) in files.items():
        for at in range(len(lines) - least + 1):
            windows[tuple(text for _, text in lines[at : at + least])].append((family, path, at))
    covered: dict[pathlib.Path, dict[int, str]] = collections.defaultdict(dict)
    for places in windows.values():
        if len({family for family, _, _ in places}) < 2:
            continue
        for family, path, at in places:
            other, there = next((other, there) for who, other, there in places if who != family)
            for i in range(least):
                covered[path].setdefault(at + i, f"{other.relative_to(root)}:{files[other][1][there + i][0]}")
    found = []
    for path, lines in covered.items():
        places = sorted(lines)
        begin = 0
        for i in range(1, len(places) + 1):
            if i == len(places) or places[i] != places[i - 1] + 1:
                found.append((i - begin, f"{path.relative_to(root)}:{files[path][1][places[begin]][0]}", lines[places[begin]]))
                begin = i
    return found


def folder_of(place: str) -> str:
    return next((folder for folder in FOLDERS if f"/{folder}/" in place), "other")


def self_test() -> int:
    with tempfile.TemporaryDirectory() as folder:
        for family in ("one_way", "other_way"):
            path = pathlib.Path(folder, "templates", family, "call", "call.cpp")
            path.parent.mkdir(parents=True)
            path.write_text(f"// Of {family}.\nint a = {family}(1);\nint b = 2;\nint c = 3;\nint d_{family} = 4;\nint {len(family)};\n", encoding="utf-8")
        assert sorted(length for length, _, _ in runs(pathlib.Path(folder), 3)) == [4, 4], runs(pathlib.Path(folder), 3)
    print("near_copies.py sees what two families have in common")
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    root = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        for length, place, other in sorted((run for run in runs(root, 3) if run[0] >= int(sys.argv[2])), reverse=True):
            print(f"{length:4} {place}  {other}")
    total = 0
    for least in (3, 4, 6):
        counts = collections.Counter()
        for length, place, _ in runs(root, least):
            counts[folder_of(place)] += length
        print(f"runs of {least} lines and more: {sum(counts.values())} lines; " + ", ".join(f"{folder} {counts[folder]}" for folder in FOLDERS))
        total = total or sum(counts.values())
    most = MOST * len(families(root))
    if total > most:
        print(f"that is more than {most}; say once what two families say: near_copies.py {root} 6 prints where")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
