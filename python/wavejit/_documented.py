# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said of the arguments of calls: rows of python/bindings/arguments.def, as docstrings and as a page of the site."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from . import _wavejit

Function = TypeVar("Function", bound=Callable[..., Any])

FIRST = "attention_forward"
_MARK = "{arguments}"
_MARK_OF_ROW = re.compile(r"^\{(\w+)\}$", re.MULTILINE)


def rows_of(family: str) -> list[tuple[str, str]]:
    """Headings and texts, in their order."""
    return [(heading, text) for of, heading, text in _wavejit.call_arguments() if of == family]


def told_in(heading: str, names: Iterable[str]) -> list[str]:
    """The arguments that a heading names, among `names`."""
    words = re.sub(r"\[[^\]]*\]", "", heading)
    return [name for name in names if re.search(rf"\b{name}\b", words)]


def with_arguments(docstring: str, family: str, names: list[str]) -> str:
    """The docstring of a call with `names` for arguments, with what its rows say in the place that it marks."""
    rows = rows_of(family)
    lines = [as_text(*row) for row in rows]
    own = {name for heading, _ in rows for name in told_in(heading, names)}
    rest = [name for name in names if name not in own]
    if rest:
        lines += ["", f"{', '.join(rest)}: as in `{FIRST}`."]
    return inspect.cleandoc(docstring).replace(_MARK, "\n".join(lines))


def as_text(heading: str, text: str) -> str:
    return "\n    ".join([heading, *text.split("\n")])


def with_rows_of(family: str) -> Callable[[Function], Function]:
    """A function that has arguments of the family's calls: `{name}`, on a line of its docstring, is the row that tells that argument. What is
    another thing there than in the engine's own call, the docstring says itself."""

    def told(function: Function) -> Function:
        def row(mark: re.Match[str]) -> str:
            return next(as_text(heading, text) for heading, text in rows_of(family) if told_in(heading, [mark[1]]))

        function.__doc__ = _MARK_OF_ROW.sub(row, inspect.cleandoc(function.__doc__ or ""))
        return function

    return told
