# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program `wavejit`, which the package carries: `wavejit …` and `python -m wavejit …`."""
from __future__ import annotations

import os
import pathlib
import sys

PROGRAM = pathlib.Path(__file__).parent / "bin" / "wavejit"


def main() -> int:
    """Runs the program with this process's arguments. `demo` is the package's own word."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["demo"]:
        from . import _demo

        return _demo.main(arguments[1:])
    if not os.access(PROGRAM, os.X_OK):
        print(f"wavejit: the program is not at {PROGRAM}: the package is not whole", file=sys.stderr)
        return 127
    sys.stdout.flush()
    os.execv(PROGRAM, ["wavejit", *arguments])
    return 127
