# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Covering arrays: few rows of a product of parameters in which every pair of its words still meets.

Most faults need one parameter or two that meet (a target and a mask, a data type and a page layout). So instead of a whole product,
./dev test runs the rows that cover() chooses, and ./dev soak runs the product. tests/chosen/README.md says how to draw them again.

    rows = [Row("gfx942_fp16", ("gfx942", "fp16")), …]
    [rows[i] for i in cover(rows)]
"""
import collections
import dataclasses
import itertools


@dataclasses.dataclass(frozen=True)
class Row:
    text: str
    words: tuple[str, ...]
    group: str = ""  # words meet within a group only
    once: str = ""  # what at least one row of the group must have beside its words: the name of the test


def wishes(row: Row) -> set[tuple[str, ...]]:
    """Single words, pairs of words, and the test itself."""
    pairs = {(row.group, *sorted(pair)) for pair in itertools.combinations(set(row.words), 2)}
    return pairs | {(row.group, word) for word in row.words} | {(row.group, "once", row.once)}


def cover(rows: list[Row], kept: set[str] = frozenset()) -> list[int]:
    """Places of the rows to run: `kept` first, then always the one that grants most wishes.

    Among equals the one whose words were taken least often, so that tests spread over targets and data types; then the first.
    """
    granted: set[tuple[str, ...]] = set()
    taken: collections.Counter = collections.Counter()
    chosen: list[int] = []
    open_wishes = [wishes(row) for row in rows]

    def take(place: int) -> None:
        chosen.append(place)
        granted.update(open_wishes[place])
        taken.update((rows[place].group, word) for word in rows[place].words)

    for place, row in enumerate(rows):
        if row.text in kept:
            take(place)
    left = set(range(len(rows))) - set(chosen)
    while left:
        open_wishes = [wished - granted for wished in open_wishes]
        left = {place for place in left if open_wishes[place]}
        if left:
            take(max(left, key=lambda place: (len(open_wishes[place]), -sum(taken[rows[place].group, word] for word in rows[place].words), -place)))
            left.discard(chosen[-1])
    return sorted(chosen)
