#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of ./dev soak, of tests/soak_parts.txt: what each runs, and what passed at this commit already (scripts/soak_results.py).

    soak.py parts                     prints the parts
    soak.py choose <part> [--again]   writes part-<n>.txt into the run's report: the part's tests that have not passed at this
                                      commit, one a line. --again forgets the part's results first
"""
import dataclasses
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from soak_results import REPORT, add_to_junit, passed_in, read_rows, state, state_of, wall, write_rows

TABLE, COMMANDS, RAN = pathlib.Path("tests/soak_parts.txt"), pathlib.Path("scripts/commands.txt"), pathlib.Path("build/commands.txt")


@dataclasses.dataclass
class Part:
    number: int
    what: str
    tests: str  # a regular expression of names, or another kind: "tsan: races", "asan: addresses", "commands:"

    @property
    def preset(self) -> str:
        kind = re.fullmatch(r"(\w+): ?\w*", self.tests)
        return kind.group(1) if kind else "dev"

    def listed(self) -> dict[str, str] | None:
        """Names and labels of the part's tests; none before there is a build."""
        if self.preset == "commands":
            rows = re.findall(r"^[a-z].* = run (.+)$", COMMANDS.read_text(encoding="utf-8"), re.MULTILINE)
            return {words: "commands" for words in rows}
        folder = pathlib.Path("build", self.preset)
        if not (folder / "CTestTestfile.cmake").exists():
            return None
        if self.preset != "dev":
            return tests_of(folder, "-L", self.tests.split(": ")[1])
        return {name: labels for name, labels in long_tests(folder).items() if re.search(self.tests, name)}

    def results(self, rows: list[dict], at: tuple[str, str]) -> dict[str, dict]:
        names = self.listed() or {}
        return {row["test"]: row for row in rows if state_of(row) == at and row["preset"] == self.preset and row["test"] in names}


def parts_of(table: pathlib.Path) -> list[Part]:
    rows = [line.split(" | ") for line in table.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return [Part(int(number), what, tests) for number, what, tests in rows]


@functools.cache
def shown(folder: pathlib.Path, *chosen: str) -> list[dict]:
    """Asked from a folder of its own: a ctest that is at work in the build keeps its log."""
    with tempfile.TemporaryDirectory() as aside:
        pathlib.Path(aside, "CTestTestfile.cmake").write_text(f'subdirs("{folder.resolve()}")\n', encoding="utf-8")
        said = subprocess.run(["ctest", "--test-dir", aside, *chosen, "--show-only=json-v1"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(said.stdout)["tests"]


def tests_of(folder: pathlib.Path, *chosen: str) -> dict[str, str]:
    """Names and labels."""
    properties = {test["name"]: {entry["name"]: entry["value"] for entry in test.get("properties", [])} for test in shown(folder, *chosen)}
    return {name: ";".join(of.get("LABELS", [])) for name, of in properties.items()}


def long_tests(folder: pathlib.Path) -> dict[str, str]:
    """What they need, as torch.install, is listed with them and is no long test itself."""
    return {name: labels for name, labels in tests_of(folder, "-C", "soak", "-L", "soak").items() if "soak" in re.split("[-;]", labels)}


def hours(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def last_whole_run(part: Part, rows: list[dict]) -> str:
    """How long a run took after which all tests of the part had passed, at the latest commit with one."""
    names = part.listed()
    for at in reversed(dict.fromkeys(state_of(row) for row in rows)):
        results = part.results(rows, at)
        if names and passed_in(results) == len(names):
            return hours(wall(results.values()))
    return "-"


def print_parts() -> None:
    rows, now = read_rows(), state()
    print(f"{'part':>4}{'tests':>7}{'passed':>8}{'last run':>10}  what")
    for part in parts_of(TABLE):
        names = part.listed()
        print(f"{part.number:>4}{'-' if names is None else len(names):>7}{passed_in(part.results(rows, now)):>8}{last_whole_run(part, rows):>10}  {part.what}")
    print("passed: at this commit. last run: how long the last whole run took. A part that is not built yet has no number of tests.")
    print("./dev soak 3 runs what has not passed of part 3; --again all of it")


def choose(number: int, again: bool) -> None:
    part, rows, now = next(part for part in parts_of(TABLE) if part.number == number), read_rows(), state()
    names, results = part.listed() or {}, part.results(rows, now)
    if again:
        write_rows([row for row in rows if state_of(row) != now or row["preset"] != part.preset or row["test"] not in names])
        results = {}
    passed = {name: row["seconds"] for name, row in results.items() if row["outcome"] == "passed"}
    for name, seconds in passed.items():  # the closing table counts them, too
        add_to_junit("earlier", name, seconds, names[name], True)
    if part.preset == "commands" and not passed:
        RAN.unlink(missing_ok=True)
    (REPORT / f"part-{number}.txt").write_text("".join(f"{name}\n" for name in names if name not in passed), encoding="utf-8")
    print(f"part {number}, {part.what}: {len(names)} tests, {len(passed)} of them passed at this commit already")


def main() -> int:
    command, *words = sys.argv[1:] or [""]
    if command == "parts":
        print_parts()
    elif command == "choose":
        choose(int(words[0]), "--again" in words)
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
