#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/soak-report.md: what the parts of ./dev soak did at this commit (scripts/soak_results.py). Of the machine it says how
long it took and nothing else. Exit code 1 if nothing has run at this commit.   soak_report.py
"""
import collections
import sys

from soak import TABLE, Part, parts_of
from soak_results import PAGE, passed_in, read_rows, state, wall


def row_of(part: Part, results: dict[str, dict]) -> str:
    if not results:
        return f"| {part.number} | {part.what} | not run | | | |"
    names = part.listed() or {}
    counts = sum((collections.Counter(row["counts"]) for row in results.values()), collections.Counter())
    did = ", ".join(f"{count:,} {unit}" for unit, count in sorted(counts.items())) or "–"
    failed = sum(row["outcome"] in ("failed", "timed out", "not run") for row in results.values())
    return f"| {part.number} | {part.what} | {passed_in(results)} of {len(names)} | {did} | {wall(results.values()):,.0f} | {failed or '–'} |"


def page(parts: list[Part], rows: list[dict], at: tuple[str, str]) -> str:
    results = {part.number: part.results(rows, at) for part in parts}
    done = [row for of in results.values() for row in of.values()]
    day = max((row["when"][:10] for row in done), default="")
    ran = [row for row in done if row["outcome"] == "passed"]
    targets = sorted({target for row in ran for target in row["targets"]}, key=lambda target: (len(target), target))
    seeds = sorted({seed for row in ran for seed in row["seeds"]})
    others = [f"- part {part.number}: `{name}` {row['outcome']}" for part in parts for name, row in results[part.number].items() if row["outcome"] != "passed"]
    lines = [
        "# The long tests", "",
        f"What `./dev soak` did at commit {at[0][:12]}{' with changes that are in no commit' if at[1] else ''}, until {day}.",
        "`./dev soak report` writes this page.", "",
        "Every result is simulated: kernels ran on the simulated GPU, none on a real one. Seconds are those of the machine that simulated.", "",
        "Kernels that are only compiled are those of lines in which every three words meet, and of all lines; why, and how many, is in",
        "[tests/README.md](../tests/README.md#combinations-of-words). What an earlier run has compiled with the same generator and LLVM was looked up.", "",
        "| part | what | passed | what the tests say that they did | seconds | failed |", "|---|---|---|---|---|---|",
        *(row_of(part, results[part.number]) for part in parts), "",
        f"Simulated targets that tests which passed name: {', '.join(targets) or 'none'}.", "",
        f"Seeds that these tests were given: {', '.join(f'`{seed}`' for seed in seeds) or 'none'}."]
    if others:
        lines += ["", "What did not pass:", "", *others]
    return "\n".join(lines) + "\n"


def main() -> int:
    at, rows, parts = state(), read_rows(), parts_of(TABLE)
    if not any(part.results(rows, at) for part in parts):
        print("./dev soak report: no part has run at this commit; ./dev soak runs them, and ./dev soak parts lists them", file=sys.stderr)
        return 1
    PAGE.write_text(page(parts, rows, at), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
