# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said of the arguments of calls: rows of python/bindings/arguments.def, as docstrings and as a page of the site."""
from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

from . import _wavejit

FIRST = "attention_forward"
_MARK = "{arguments}"


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
    lines = []
    for heading, text in rows:
        lines += [heading, *("    " + line for line in text.split("\n"))]
    own = {name for heading, _ in rows for name in told_in(heading, names)}
    rest = [name for name in names if name not in own]
    if rest:
        lines += ["", f"{', '.join(rest)}: as in `{FIRST}`."]
    return inspect.cleandoc(docstring).replace(_MARK, "\n".join(lines))
