#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that every test that docs/reliability.md names exists, and that every case has a line with a test or a reason; that of each defect
in the tables of docs/backward.md, docs/latent-attention.md and docs/sparse.md, too.

    named_tests.py <source root>            check the tree
    named_tests.py --self-test              show that each check can fail
"""
import pathlib
import re
import sys

CASES = range(1, 45)
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
ADDED = re.compile(r"add_test\(\s*NAME\s+([\w.$<>{}]+)")
NAMED = re.compile(r"`([^`]+)`")
ROW = re.compile(r"^\| *(R?[0-9][0-9, –]*) *\|[^|]*\|(.*)\|$")


def names_in(cell: str) -> list[str]:
    """The tests that a cell names: `Suite.Name`, `…Name` (the suite before it), `Suite` (all of it), `file.cpp`,
    `runtime.exports` (of CMake). Other words in code letters (functions, commands, paths) are no tests."""
    names = []
    suite = ""
    for word in NAMED.findall(cell):
        if word.startswith("…"):
            word = f"{suite}.{word[1:]}"
        if re.fullmatch(r"\w+\.\w+…?", word) and word[0].isupper():
            suite = word.split(".")[0]
            names.append(word)
        elif re.fullmatch(r"[A-Z][a-z]\w*", word) or re.fullmatch(r"\w+_test\.(cpp|c|py)", word):
            names.append(word)
        elif re.fullmatch(r"[a-z]+\.\w+", word) and not word.endswith((".cpp", ".h", ".md", ".txt")):
            names.append(word)
    return names


def cases_of(cell: str) -> list[int]:
    cases = []
    for part in cell.split(","):
        ends = [int(end) for end in re.split("–|-", part.strip())]
        cases += range(ends[0], ends[-1] + 1)
    return cases


def problems(document: str, tests: set[str], files: set[str], added: set[str]) -> list[str]:
    found = []
    suites = {test.split(".")[0] for test in tests}
    covered = {}
    for number, line in enumerate(document.splitlines(), 1):
        row = ROW.match(line)
        if not row:
            continue
        named = names_in(row.group(2))
        # R1, R2, …: cases beside the list
        for case in cases_of(row.group(1)) if row.group(1)[0] != "R" else []:
            covered[case] = covered.get(case, 0) + 1
        for name in named:
            if name.endswith((".cpp", ".c", ".py")):
                good = name in files
            elif name.endswith("…"):
                good = any(test.startswith(name[:-1]) for test in tests)
            else:
                good = name in tests or name in suites or name in added
            if not good:
                found.append(f"docs/reliability.md:{number}: there is no test {name}")
        if not named and len(row.group(2).strip()) < 40:
            found.append(f"docs/reliability.md:{number}: neither a test nor a reason")
    for case in CASES:
        if covered.get(case, 0) != 1:
            found.append(f"docs/reliability.md: case {case} has {covered.get(case, 0)} lines instead of one")
    return found


DEFECTS = "## Defects of others"
DEFECT_DOCUMENTS = ("backward.md", "latent-attention.md", "sparse.md")
PYTHON_TEST = re.compile(r"^\s*def (test_\w+)\(", re.MULTILINE)


def defects_without_a_test(document: str, tests: set[str], name: str = "backward.md") -> list[str]:
    """Rows of the table below DEFECTS that name no test, or one that does not exist, and do not say "no test" and why."""
    found, rows, inside = [], 0, False
    for number, line in enumerate(document.splitlines(), 1):
        if line.startswith("## "):
            inside = line.startswith(DEFECTS)
        if not inside or not line.startswith("| ") or line.startswith("| what "):
            continue
        rows += 1
        cell = line.split("|")[2]
        named = [word for word in NAMED.findall(cell) if re.fullmatch(r"[A-Z]\w*\.\w+|test_\w+", word)]
        found += [f"docs/{name}:{number}: there is no test {test}" for test in named if test not in tests]
        if not named and "no test: " not in cell:
            found.append(f"docs/{name}:{number}: neither a test nor a reason")
    return found if rows > 0 else [f"docs/{name}: no table of defects"]


def check(root: pathlib.Path) -> list[str]:
    tests, files, added, python_tests = set(), set(), set(), set()
    for path in (root / "tests").rglob("*"):
        if path.suffix in (".cpp", ".c"):
            files.add(path.name)
            tests |= {f"{suite}.{name}" for suite, name in TEST.findall(path.read_text(encoding="utf-8"))}
        elif path.suffix == ".py":
            files.add(path.name)
            python_tests |= set(PYTHON_TEST.findall(path.read_text(encoding="utf-8")))
        elif path.name == "CMakeLists.txt":
            added |= set(ADDED.findall(path.read_text(encoding="utf-8")))
    if len(tests) < 100:
        return [f"only {len(tests)} tests below {root}/tests: wrong folder?"]
    found = problems((root / "docs" / "reliability.md").read_text(encoding="utf-8"), tests, files, added)
    for name in DEFECT_DOCUMENTS:
        found += defects_without_a_test((root / "docs" / name).read_text(encoding="utf-8"), tests | python_tests, name)
    return found


def self_test() -> int:
    tests, files, added = {"OneTest.Works", "OneTest.WorksToo"}, {"one_test.cpp"}, {"room.check"}
    rest = "\n".join(f"| {case} | x | `OneTest` |" for case in CASES if case > 2)
    reason = "no test, because of what this long sentence says"
    good = f"| 1 | x | `OneTest.Works`, `…WorksToo`, `one_test.cpp`, `OneTest.Works…` |\n| 2 | x | `room.check`; {reason} |\n{rest}"
    if problems(good, tests, files, added):
        print("self-test: a complaint about a good document:", problems(good, tests, files, added))
        return 1
    bad = {
        good.replace("OneTest.Works`", "OneTest.Gone`"): "OneTest.Gone",
        good.replace("…WorksToo", "…Gone"): "OneTest.Gone",
        good.replace("one_test", "two_test"): "two_test",
        good.replace("room.check", "room.gone"): "room.gone",
        good.replace("Works…", "Gone…"): "Gone…",
        good.replace(f"`room.check`; {reason}", "not yet"): "neither a test nor a reason",
        good.replace("| 44 |", "| 43 |"): "case 44 has 0",
        good.replace("| 3 | x | `OneTest` |", "| 3 | x | `TwoTest` |"): "TwoTest",
    }
    for document, expected in bad.items():
        if not any(expected in problem for problem in problems(document, tests, files, added)):
            print(f"self-test: no complaint about {expected}")
            return 1
    table = f"{DEFECTS}\n\n| what was wrong | who |\n|---|---|\n| a | `OneTest.Works` |\n| b | no test: because |\n## Next\n| c | d |\n"
    for document, expected in ((table, None), (table.replace(".Works", ".Gone"), "OneTest.Gone"), (table.replace("no test: ", ""), "neither"),
                               ("## Other\n| a | b |\n", "no table")):
        found = defects_without_a_test(document, tests)
        if bool(found) != (expected is not None) or (found and expected not in found[0]):
            print(f"self-test: of defects {expected} was expected, and {found} found")
            return 1
    return 0


def main() -> int:
    if sys.argv[1] == "--self-test":
        return self_test()
    found = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) if found else "every test that docs/reliability.md and the lists of defects name exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
