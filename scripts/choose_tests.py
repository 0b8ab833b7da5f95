#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of a build whose name or label matches a regular expression, one name a line.

    choose_tests.py <build folder> <regular expression>

Tests with the label soak are left out: ./dev soak runs them; and those with the label together, whose tests are there one
by one. Exit code 1 if nothing matches.
"""
import json
import re
import subprocess
import sys


def main() -> int:
    build, pattern = sys.argv[1], re.compile(sys.argv[2])
    listed = subprocess.run(["ctest", "-C", "one_by_one", "--test-dir", build, "-LE", "soak|together", "--show-only=json-v1"], check=True, stdout=subprocess.PIPE)
    found = 0
    for test in json.loads(listed.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if any(pattern.search(word) for word in [test["name"], *properties.get("LABELS", [])]):
            print(test["name"])
            found += 1
    if found == 0:
        print(f"no test of {build} matches '{sys.argv[2]}', by name or by label", file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
