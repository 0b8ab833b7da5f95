#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lists of tests/chosen: draws them, and checks that they are what would be drawn now.

    chosen.py check|write <build folder> [<list>…]

A list says in directives what it is drawn from; the numbered rows behind them are drawn. README.md has the directives.
"""
import ast
import fnmatch
import pathlib
import re
import subprocess
import sys

from cover import Row, cover

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
TRIPLES = HERE / "triples.txt"


class Wrong(Exception):
    pass


def tests_of_program(program: pathlib.Path) -> list[str]:
    printed = subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
    found, suite = [], ""
    for line in printed.splitlines():
        text = line.split("#")[0].strip()
        if text and not line.startswith(" "):
            suite = text
        elif text:
            found.append(suite + text)
    return found


def row_of_test(name: str) -> Row:
    """All/Integers.Match/gfx942_fp16: words gfx942 and fp16 in the group Integers, and Match once.

    Lengths (q17, k0) and numbers of rows that differ in values alone (row2) meet no words: they are there once, together.
    """
    suite, test = name.split(".", 1)
    instance, _, fixture = suite.rpartition("/")
    test, _, parameter = test.partition("/")
    all_words = parameter.split("_") if parameter else []
    lengths = [word for word in all_words if re.fullmatch(r"(q|k|row)\d+", word)]
    words = tuple(word for word in all_words if word not in lengths)
    test = "_".join([test, *lengths])
    # A suite whose name begins with "Whole" promises a number of comparisons: each of its tests stands for itself.
    return Row(name, words, fixture or instance, name if instance.startswith("Whole") else test)


def row_of_line(target: str, line: str) -> Row:
    """Words of a problem's descriptor. Of lengths and counts these are some: one query, few, and tiles that are full; grouped heads."""
    family, *tokens = line.split()
    words = [target]
    for token in tokens:
        key, given, value = token.partition("=")
        if re.fullmatch(r"q[\d.]+", token):
            rows = int(re.findall(r"\d+", token)[-1])
            words.append("one_query" if rows == 1 else "few_queries" if rows <= 16 else "queries" if rows % 64 else "full_queries")
        elif re.fullmatch(r"k[\d.]+", token):
            keys = int(re.findall(r"\d+", token)[-1])
            words.append("few_keys" if keys < 64 else "keys" if keys % 64 else "full_keys")
        elif re.fullmatch(r"h\d+(/\d+)?", token):
            words.append("grouped_heads" if "/" in token else "heads")
        elif given and key in ("layout", "cache", "cache_scales", "bias", "alibi", "gradients", "scores"):
            words.append(token)
        elif given:
            words += [key, *(word for word in value.split(":") if word.isalpha())]
        elif not re.fullmatch(r"b[\d.]+", token):
            words.append(token)
    return Row(f"{target} {line}", tuple(words), family)


def row_of_kernel(spec: str) -> Row:
    """A kernel's text: its words, but for the one that all have."""
    family, *words = spec.split()
    return Row(spec, tuple(word for word in words if not word.startswith("lowering=")), family)


def rows_of_python(folder: pathlib.Path, modules: list[str]) -> list[Row]:
    """Tests of unittest by their files; the words of a test's name are its words, if another test of the file has them too."""
    rows = []
    for module in modules:
        tree = ast.parse((folder / f"{module}_test.py").read_text(encoding="utf-8"))
        names = [
            f"{module}_test.{group.name}.{test.name}"
            for group in tree.body if isinstance(group, ast.ClassDef)
            for test in group.body if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")
        ]  # fmt: skip
        words = {name: set(name.rsplit(".", 1)[1].split("_")[1:]) for name in names}
        shared = {word for name in names for word in words[name] if sum(word in words[other] for other in names) > 1}
        rows += [Row(name, (), module, "") if not words[name] & shared else Row(name, tuple(sorted(words[name] & shared)), module) for name in names]
    return rows


def triples_of(name: str) -> list[str]:
    """Rows of triples.txt that the list of this name must have."""
    rows = [line.split(" | ") for line in TRIPLES.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    if wrong := [row for row in rows if len(row) != 4 or not (HERE / f"{row[0]}.txt").exists() or not re.fullmatch(r"[0-9a-f]{8}", row[2])]:
        raise Wrong(f"{TRIPLES.name}: {' | '.join(wrong[0])}: a row is <list> | <row> | <commit> | <what was wrong>")
    return [row[1] for row in rows if row[0] == name]


class Chosen:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.head: list[str] = []
        self.rows: list[str] = []
        self.directives: list[tuple[str, str]] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.match(r"\d+ ", line):
                self.rows.append(line.split(" ", 1)[1])
                continue
            self.head.append(line)
            if line and not line.startswith("#"):
                word, _, rest = line.partition(" ")
                self.directives.append((word, rest))

    def of(self, word: str) -> list[str]:
        return [rest.split(" because ")[0].strip() for name, rest in self.directives if name == word]

    def candidates(self, build: pathlib.Path) -> list[Row]:
        if programs := self.of("program"):
            names = tests_of_program(build / "bin" / programs[0])
            patterns = self.of("of")
            rows = [row_of_test(name) for name in names if (any(fnmatch.fnmatchcase(name, each) for each in patterns) if patterns else "/" in name.split(".", 1)[1])]
        elif modules := self.of("python"):
            folder, *files = modules[0].split()
            rows = rows_of_python(TREE / "tests" / folder, files)
        elif folders := self.of("kernels"):
            rows = [row_of_kernel(line.split(": ")[0]) for table in sorted((TREE / folders[0]).glob("*.txt")) for line in table.read_text(encoding="utf-8").splitlines()]
        else:
            rows = []
            for target in self.of("on"):
                name, _, pattern = target.partition(" where ")
                rows += [row_of_line(name, line) for line in self.lines(build) if re.search(pattern, line)]
        left = self.of("leave")
        return [row for row in rows if not any(fnmatch.fnmatchcase(row.text, each) for each in left)]

    def lines(self, build: pathlib.Path) -> list[str]:
        if commands := self.of("printed"):
            printed = subprocess.run([build / "bin" / "wavejit", *commands[0].split()], check=True, capture_output=True, text=True).stdout
        else:
            printed = (TREE / self.of("lines")[0]).read_text(encoding="utf-8")
        stripped = [line.split("#")[0].strip() for line in printed.splitlines()]
        return [line for line in stripped if line]

    def drawn(self, build: pathlib.Path) -> list[str]:
        rows = self.candidates(build)
        texts = {row.text for row in rows}
        patterns = self.of("keep") + triples_of(self.path.stem)
        kept = {text for pattern in patterns for text in texts if fnmatch.fnmatchcase(text, pattern)}
        if missing := [pattern for pattern in patterns if not any(fnmatch.fnmatchcase(text, pattern) for text in texts)]:
            raise Wrong(f"keep {missing[0]}: nothing there has that name")
        return [rows[place].text for place in cover(rows, kept)]


def main() -> int:
    what, build, *names = sys.argv[1:]
    wrong = 0
    for path in [pathlib.Path(name) for name in names] or sorted(set(HERE.glob("*.txt")) - {TRIPLES}):
        chosen = Chosen(path)
        drawn = chosen.drawn(pathlib.Path(build))
        if what == "write":
            path.write_text("\n".join([*chosen.head, *(f"{number} {text}" for number, text in enumerate(drawn, 1))]) + "\n", encoding="utf-8")
            print(f"{path.name}: {len(drawn)} of {len(chosen.candidates(pathlib.Path(build)))}")
        elif drawn != chosen.rows:
            wrong += 1
            print(f"{path.name} is not what would be drawn now: {sorted(set(drawn) ^ set(chosen.rows))[:3]} …; ./dev bench chosen-tests draws it again")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
