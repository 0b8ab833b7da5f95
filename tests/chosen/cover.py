# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Covering arrays: few rows of a product of parameters in which every pair of its words still meets, or every three.

Most faults need one parameter or two that meet (a target and a mask, a data type and a page layout). So instead of a whole product,
./dev test runs the rows that cover() chooses, and ./dev soak runs the product. tests/chosen/README.md says how to draw them again.

    rows = [Row("gfx942_fp16", ("gfx942", "fp16")), …]
    [rows[i] for i in cover(rows)]
"""
import collections
import dataclasses
import heapq
import itertools


@dataclasses.dataclass(frozen=True)
class Row:
    text: str
    words: tuple[str, ...]
    group: str = ""  # words meet within a group only
    once: str = ""  # what at least one row of the group must have beside its words: the name of the test


def wishes(row: Row, strength: int = 2) -> set[tuple[str, ...]]:
    """Single words, pairs of words and so on up to `strength` of them, and the test itself."""
    words = sorted(set(row.words))
    meetings = {(row.group, *some) for size in range(1, strength + 1) for some in itertools.combinations(words, size)}
    return meetings | {(row.group, "once", row.once)}


def cover(rows: list[Row], kept: set[str] = frozenset(), strength: int = 2, spread: bool = True) -> list[int]:
    """Places of the rows to run: `kept` first, then always the one that grants most wishes.

    Among equals the one whose words were taken least often, so that tests spread over targets and data types; then the first. Without
    `spread` the first: triples of a product of 100,000 rows are drawn in a minute then.
    """
    granted: set[tuple[str, ...]] = set()
    taken: collections.Counter = collections.Counter()
    chosen: list[int] = []

    def rank(place: int) -> tuple[int, int, int]:
        row = rows[place]
        return -len(wishes(row, strength) - granted), sum(taken[row.group, word] for word in row.words) if spread else 0, place

    def take(place: int) -> None:
        chosen.append(place)
        granted.update(wishes(rows[place], strength))
        taken.update((rows[place].group, word) for word in rows[place].words)

    for place, row in enumerate(rows):
        if row.text in kept:
            take(place)
    left = [rank(place) for place in set(range(len(rows))) - set(chosen)]
    heapq.heapify(left)
    while left:
        # Ranks only get worse, so the first row that has kept its rank is the best.
        known, now = left[0], rank(left[0][2])
        if now[0] == 0:
            heapq.heappop(left)
        elif now != known:
            heapq.heapreplace(left, now)
        else:
            take(heapq.heappop(left)[2])
    return sorted(chosen)
