#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The closing table of ./dev test: tests by room and preset, what was left out and why, processor time by stage, the
slowest tests, what failed. The last line is `N passed, N failed`, and `, N skipped` where tests were left out.

    test_report.py <folder>     the folder has stages.tsv and a JUnit file of ctest for each preset (dev.xml, asan.xml, …)

Where ctest ran a whole program of tests, GoogleTest's report of it is in ../<preset>/gtest/<program>.xml, and each of its
tests counts.

Exit code 1 if a test or a stage failed, or if no test ran.
"""
import collections
import dataclasses
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SLOWEST = 30
# labels that say how a test is run; any other is its room
KINDS = {"sanitize", "threads", "races", "soak", "together", "one_by_one"}


@dataclasses.dataclass
class Test:
    preset: str
    name: str
    room: str
    seconds: float
    outcome: str  # passed, failed, skipped
    reason: str
    word: str = "check"  # of ./dev, which runs it: long tests are in ./dev soak alone
    program: str = ""  # the ctest that it is a part of


@dataclasses.dataclass
class Stage:
    name: str
    wall: float
    processor: float
    status: int


def room_of(labels: str) -> str:
    return next((label for label in re.split("[-;]", labels) if label and label not in KINDS), "other")


def word_of(labels: str) -> str:
    return next((label for label in re.split("[-;]", labels) if label in ("soak", "commands")), "check")


def reason_of(case: ElementTree.Element) -> str:
    """Why a test was left out: what it said, else what ctest says."""
    output = case.findtext("system-out") or ""
    said = re.search(r"left out: (.*)", output) or re.search(r"Skipped\n(.*)", output)
    if said and said.group(1).strip():
        return said.group(1).strip()
    skipped = case.find("skipped")
    return (skipped.get("message") if skipped is not None else None) or case.get("status", "")


def tests_of_program(path: pathlib.Path, whole: Test) -> list[Test]:
    """Each test of a program. What failed outside them (it leaked) counts as the program's own failure."""
    tests = []
    again = re.match(r"compiled\.", whole.name)  # the same tests once more, in another way
    prefix = again.group() if again else ""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") != "run":
            continue  # DISABLED_, or not chosen
        skipped = case.find("skipped")
        outcome = "failed" if case.find("failure") is not None else "skipped" if skipped is not None else "passed"
        reason = (skipped.get("message", "") if skipped is not None else "").strip().replace("\n", " ")
        name = f"{prefix}{case.get('classname', '?')}.{case.get('name', '?')}"
        tests.append(Test(whole.preset, name, whole.room, float(case.get("time") or 0), outcome, reason, whole.word, whole.name))
    if not tests or (whole.outcome == "failed" and all(test.outcome != "failed" for test in tests)):
        tests.append(dataclasses.replace(whole, outcome="failed"))
    return tests


def read_tests(path: pathlib.Path) -> list[Test]:
    programs = path.parent.parent / path.stem / "gtest"
    tests = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        labels = next((p.get("value", "") for p in case.iter("property") if p.get("name") == "cmake_labels"), "")
        status = case.get("status", "")
        outcome = {"run": "passed", "fail": "failed", "disabled": "skipped"}.get(status)
        if outcome is None:  # notrun: left out by itself, or what it needs is not there
            message = case.find("skipped").get("message", "") if case.find("skipped") is not None else ""
            outcome = "skipped" if message.startswith("SKIP_") else "failed"
        reason = "" if outcome == "passed" else reason_of(case)
        test = Test(path.stem, case.get("name", "?"), room_of(labels), float(case.get("time") or 0), outcome, reason, word_of(labels))
        program = programs / f"{test.name}.xml"
        tests += tests_of_program(program, test) if program.exists() else [test]  # none if it crashed
    return tests


def read_stages(path: pathlib.Path) -> list[Stage]:
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line)
    return [Stage(name, float(wall), float(processor), int(status)) for name, wall, processor, status in rows]


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def table_of_counts(tests: list[Test]) -> list[str]:
    presets = list(dict.fromkeys(test.preset for test in tests))
    counts = collections.Counter((test.room, test.preset) for test in tests)
    rooms = sorted({test.room for test in tests})
    width = max([len(room) for room in rooms] + [len("tests")]) + 2
    lines = [f"{'tests':{width}}" + "".join(f"{preset:>8}" for preset in presets)]
    for room in rooms:
        lines.append(f"  {room:{width - 2}}" + "".join(f"{counts[room, preset] or '-':>8}" for preset in presets))
    totals = collections.Counter(test.preset for test in tests)
    lines.append(f"  {'all':{width - 2}}" + "".join(f"{totals[preset]:>8}" for preset in presets))
    return lines


def again(failed: list[Test]) -> list[str]:
    """The commands that repeat them. ./dev check has the tests of dev one by one; a sanitizer's are often seen there, too."""
    lines = []
    for word in ("check", "soak", "commands"):
        names = {test.program if word == "soak" and test.program else test.name for test in failed if test.word == word}
        pattern = "|".join(sorted(re.sub(r"\\([ -])", r"\1", re.escape(name)) for name in names))
        # A long test's name is often the end of another's.
        lines += [f"  ./dev {word} '{pattern if word == 'check' else f'^({pattern})$'}'"] if names else []
    return ["again", *lines, ""] if lines else []


def report(stages: list[Stage], tests: list[Test]) -> tuple[list[str], bool]:
    """The lines, and whether all is well."""
    outcomes = collections.Counter(test.outcome for test in tests)
    lines = [""]
    if tests:
        lines += table_of_counts(tests) + [""]
        lines.append(f"slowest {min(SLOWEST, len(tests))} tests")
        for test in sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]:
            lines.append(f"  {test.seconds:7.1f} s  {test.preset:5} {test.name}")
        lines.append("")
    if stages:
        width = max(len(stage.name) for stage in stages) + 2
        lines.append(f"{'stage':{width + 2}}{'time':>8}{'processor':>11}")
        lines += [f"  {stage.name:{width}}{minutes(stage.wall):>8}{minutes(stage.processor):>11}" for stage in stages]
        wall, processor = (sum(getattr(stage, field) for stage in stages) for field in ("wall", "processor"))
        lines += [f"  {'all':{width}}{minutes(wall):>8}{minutes(processor):>11}", ""]
    if outcomes["skipped"]:
        lines.append("left out")
        lines += [f"  {test.preset:5} {test.name}: {test.reason}" for test in tests if test.outcome == "skipped"]
        lines.append("")
    # A stage of tests fails with its tests; any other is a failure of its own.
    presets_with_failures = {f"test {test.preset}" for test in tests if test.outcome == "failed"}
    broken = [stage.name for stage in stages if stage.status != 0 and stage.name not in presets_with_failures]
    failures = [f"  {test.preset:5} {test.name}" for test in tests if test.outcome == "failed"]
    failures += [f"  stage {name}" for name in broken]
    if not tests and not broken:
        failures.append("  no test ran")
    if failures:
        lines += ["failed"] + failures + [""]
    lines += again([test for test in tests if test.outcome == "failed"])
    last = f"{outcomes['passed']} passed, {len(failures)} failed"
    lines.append(last + (f", {outcomes['skipped']} skipped" if outcomes["skipped"] else ""))
    return lines, not failures


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    # in the order in which they ran
    files = sorted(folder.glob("*.xml"), key=lambda path: path.stat().st_mtime_ns)
    lines, well = report(read_stages(folder / "stages.tsv"), [test for path in files for test in read_tests(path)])
    print("\n".join(lines))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
