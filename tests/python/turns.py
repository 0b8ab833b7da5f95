# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unit tests by turns: `./dev test` runs one of this many parts of what some files hold, another one each commit.

    python3 -m turns <parts> <module>…

WAVEJIT_TEST_SAMPLE=1 asks for a part, as for programs of C++ (tests/support/part.h); without it, and with WAVEJIT_TEST_WHOLE=1, all tests run.
WAVEJIT_TEST_TURN says which part: `./dev` sets it to the number of commits, and in front of it repeats another one's. Of every file that
has as many tests as there are parts, some run in each.
"""
import os
import sys
import unittest


def cases(suite):
    """The tests of a suite, one by one; a module that cannot be imported is one that fails, which stays."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases(each)
        else:
            yield each


def chosen(tests: list, parts: int, environment=os.environ) -> list:
    if environment.get("WAVEJIT_TEST_SAMPLE") != "1" or environment.get("WAVEJIT_TEST_WHOLE") == "1":
        return tests
    turn = int(environment.get("WAVEJIT_TEST_TURN", "0"))
    return [each for place, each in enumerate(tests) if "_FailedTest" in each.id() or (place + turn) % parts == 0]


def main() -> int:
    parts, modules = int(sys.argv[1]), sys.argv[2:]
    every = list(cases(unittest.defaultTestLoader.loadTestsFromNames(modules)))
    tests = chosen(every, parts)
    if len(tests) < len(every):
        turn = os.environ.get("WAVEJIT_TEST_TURN", "0")
        print(f"{len(tests)} of {len(every)} tests; the same again: WAVEJIT_TEST_SAMPLE=1 WAVEJIT_TEST_TURN={turn}", file=sys.stderr)
    result = unittest.TextTestRunner().run(unittest.TestSuite(tests))
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
