#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/soak-report.md: what the parts of ./dev soak did (scripts/soak_results.py). A part that has run whole at this commit gets
a new row; another keeps the row that the page has, with the commit at which it ran, so that parts can be run on other days and machines.
The page says how long a part took, and nothing else of the machine. Exit code 1 if nothing has run at this commit.   soak_report.py
"""
import collections
import re
import sys

from soak import TABLE, Part, parts_of
from soak_results import PAGE, passed_in, read_rows, state, wall

HEAD = """# The long tests

What the parts of `./dev soak` did when each last ran whole: at which commit, and until which day. `git log <commit>..` shows what has
changed since. `./dev soak report` writes this page.

Every result is simulated: kernels ran on the simulated GPU, none on a real one. Targets are those that tests which passed name, seeds
those that they were given. Seconds are those of the machine that simulated.

Kernels that are only compiled are those of lines in which every three words meet, and of all lines; why, and how many, is in
[tests/README.md](../tests/README.md#combinations-of-words). What an earlier run has compiled with the same generator and LLVM was looked up.

| part | what | commit | until | passed | what the tests say that they did | targets | seeds | seconds | did not pass |
|---|---|---|---|---|---|---|---|---|---|
"""


def listed(words, form: str = "{}") -> str:
    return ", ".join(form.format(word) for word in sorted(words, key=lambda word: (len(word), word))) or "–"


def row_of(part: Part, results: dict[str, dict], at: tuple[str, str]) -> str:
    passed = [row for row in results.values() if row["outcome"] == "passed"]
    counts = sum((collections.Counter(row["counts"]) for row in results.values()), collections.Counter())
    cells = [
        str(part.number), part.what, at[0][:12] + (" and changes that are in no commit" if at[1] else ""), max(row["when"][:10] for row in results.values()),
        f"{passed_in(results)} of {len(part.listed() or {})}", ", ".join(f"{count:,} {unit}" for unit, count in sorted(counts.items())) or "–",
        listed({target for row in passed for target in row["targets"]}), listed({seed for row in passed for seed in row["seeds"]}, "`{}`"),
        f"{wall(results.values()):,.0f}", listed({f"`{name}` {row['outcome']}" for name, row in results.items() if row["outcome"] != "passed"})]
    return f"| {' | '.join(cells)} |"


def earlier_rows(parts: list[Part]) -> dict[int, str]:
    """Those of parts that are still called what they were."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {part.number: found.group() for part in parts if (found := re.search(rf"^\| {part.number} \| {re.escape(part.what)} \| \w{{12}}.*$", text, re.MULTILINE))}


def page(parts: list[Part], rows: list[dict], at: tuple[str, str]) -> str:
    lines = earlier_rows(parts)
    for part in parts:
        results = part.results(rows, at)
        if results and (part.number not in lines or len(results) == len(part.listed() or {})):
            lines[part.number] = row_of(part, results, at)
    return HEAD + "\n".join(lines.get(part.number, f"| {part.number} | {part.what} | not run |{' |' * 7}") for part in parts) + "\n"


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
