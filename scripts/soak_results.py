#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of ./dev soak's tests, written down as they come.

    soak_results.py record <preset>   reads what `ctest -V` or scripts/every_command.sh prints, shows it without the tests' own output, but
                                      for lines that begin with "so far: ", and writes each result down

A line of build/soak/results.jsonl is a test's result at a commit, with a hash of what tracked files had changed since. The last line
of a test counts.
"""
import collections
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from xml.sax.saxutils import quoteattr

RESULTS, PAGE = pathlib.Path("build/soak/results.jsonl"), pathlib.Path("docs/soak-report.md")
REPORT = pathlib.Path(os.environ.get("WAVEJIT_DEV_REPORT", "build/report"))  # of this run (scripts/stages.sh)
# "12/388 Test  #12: name ......   Passed    1.23 sec" of ctest, and "  12 s  exit 0  ./dev words" of every_command.sh
TEST_ENDED = re.compile(r"\s*\d+/\d+ Test\s+#(\d+): (\S+) \.*\s*(.+?)\s+([\d.]+) sec")
COMMAND_ENDED = re.compile(r"\s*([\d.]+) s  exit (\d+)  \./dev (.+)")
COLOURS = re.compile(r"\x1b\[[\d;]*m")
OUTCOMES = {"Passed": "passed", "***Skipped": "left out", "***Timeout": "timed out", "***Not Run": "not run"}
# The lines in which tests say how much they did: GoogleTest, unittest, wavejit sweep, invariance and prebuild.
COUNTS = (("tests", r"^\[  PASSED  \] (\d+) test"), ("tests", r"^Ran (\d+) tests? in "), ("problems", r": (\d+) passed, \d+ failed, \d+ set aside"),
          ("pairs", r": of (\d+) pairs no bit differs"), ("pairs", r": \d+ of (\d+) pairs differ"), ("kernels", r"(\d+) kernels: \d+ compiled"))
SEEDS = (r"--[\w-]*seed\b[\" =]+\d+", r"^\s\w*SEED\w*=\d+", r"^\s\w+=seeded:\d+")


@dataclasses.dataclass
class Said:
    """What a test's output, command and environment say."""
    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    seeds: set[str] = dataclasses.field(default_factory=set)
    targets: set[str] = dataclasses.field(default_factory=set)

    def learn(self, line: str) -> None:
        for unit, pattern in COUNTS:
            if found := re.search(pattern, line):
                self.counts[unit] += int(found.group(1))
        is_command = line.startswith("Test command: ")
        if is_command or line.startswith(" "):  # ctest indents the environment by one
            self.seeds |= {re.sub(r'[" ]+', " ", found.group()).strip() for pattern in SEEDS for found in re.finditer(pattern, line)}
        if is_command or "simulated gfx" in line:
            self.targets |= set(re.findall(r"gfx\d+a?", line))


def git(*words: str) -> str:
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout


def state() -> tuple[str, str]:
    """The commit, and a hash of what tracked files have changed since. The page of results changes no result."""
    changes = git("diff", "--binary", "HEAD", "--", ".", f":!{PAGE}")
    return git("rev-parse", "HEAD").strip(), hashlib.sha256(changes.encode()).hexdigest()[:12] if changes else ""


def state_of(row: dict) -> tuple[str, str]:
    return row["commit"], row["changes"]


def read_rows() -> list[dict]:
    rows = []
    for line in RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            pass  # a run that was killed may leave half a line
    return rows


def write_rows(rows: list[dict]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def passed_in(results: dict[str, dict]) -> int:
    return sum(row["outcome"] == "passed" for row in results.values())


def wall(rows) -> float:
    """Seconds from the begin of each run to the last of these results in it."""
    ends = {}
    for row in rows:
        ends[row["run"]] = max(ends.get(row["run"], ""), row["when"])
    return sum((datetime.datetime.fromisoformat(end) - datetime.datetime.fromisoformat(begun)).total_seconds() for begun, end in ends.items())


def add_to_junit(name: str, test: str, seconds: float, labels: str, passed: bool) -> None:
    """A test more in a report as ctest writes it, for scripts/test_report.py."""
    path = REPORT / f"{name}.xml"
    text = path.read_text(encoding="utf-8").removesuffix("</testsuite>\n") if path.exists() else "<testsuite>\n"
    label = f'<properties><property name="cmake_labels" value={quoteattr(labels)}/></properties>'
    text += f'<testcase name={quoteattr(test)} time="{seconds}" status="{"run" if passed else "fail"}">{label}</testcase>\n'
    path.write_text(text + "</testsuite>\n", encoding="utf-8")


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def record(preset: str) -> None:
    """Ends with what it reads, not with Ctrl-C, which ctest gets too: a test's result may still be on its way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.reconfigure(errors="replace")
    said, begun, (commit, changes) = collections.defaultdict(Said), now(), state()
    write_rows(read_rows())  # without half a line at its end
    with RESULTS.open("a", encoding="utf-8") as results:
        for line in sys.stdin:
            line = COLOURS.sub("", line)
            if own := re.match(r"(\d+): ?(.*)", line):
                said[own.group(1)].learn(own.group(2))
                if own.group(2).startswith("so far: "):  # how far a test is that takes long
                    print(line, end="", flush=True)
                continue
            if not re.match(r"test \d+$", line):
                print(line, end="", flush=True)
            if ended := TEST_ENDED.match(line):
                of, test, seconds = said.pop(ended.group(1), Said()), ended.group(2), float(ended.group(4))
                outcome = OUTCOMES.get(ended.group(3), "failed")
            elif preset == "commands" and (ended := COMMAND_ENDED.match(line)):
                of, test, seconds, outcome = Said(), ended.group(3), float(ended.group(1)), "passed" if ended.group(2) == "0" else "failed"
                add_to_junit("commands", test, seconds, "commands", outcome == "passed")
            else:
                continue
            row = {"commit": commit, "changes": changes, "preset": preset, "test": test, "outcome": outcome, "seconds": seconds, "run": begun,
                   "when": now(), "counts": dict(of.counts), "seeds": sorted(of.seeds), "targets": sorted(of.targets)}
            results.write(json.dumps(row) + "\n")
            results.flush()


if __name__ == "__main__":
    if sys.argv[1:2] != ["record"] or len(sys.argv) != 3:
        sys.exit(__doc__)
    record(sys.argv[2])
