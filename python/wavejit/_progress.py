# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far a prebuild, a prepare or a sweep is: a function of the caller's, or a bar of tqdm's."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

Progress = Callable[[dict[str, Any]], object]


@contextlib.contextmanager
def told(progress: Progress | bool | None, what: str, unit: str = "kernel") -> Iterator[Progress | None]:
    """The function to be told. True: a bar, if tqdm is installed; False and None: nobody is told."""
    if progress is None or progress is False:
        yield None
        return
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress: a {type(progress).__name__}; accepted: a function, True, False or None")
        yield progress
        return
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        yield None
        return
    with tqdm(desc=what, unit=unit) as bar:

        def advance(report: dict[str, Any]) -> None:
            bar.total = report["total"]
            bar.n = report["done"]
            bar.refresh()

        yield advance
