#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program of tests takes in each of its turns (turns.cpp): all of them together everything, each something of every target.

    turns_test.py <program> <turns> <name of a suite that is in every turn>
"""
import os
import subprocess
import sys

program, turns, always = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def tests(**words: str) -> set[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WAVEJIT_TEST_")}
    printed = subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True, text=True, env=environment | words)
    found, suite = set(), ""
    for line in printed.stdout.splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
        else:
            found.add(suite + line.split("#")[0].strip())
    return found


everything = tests()
sample = {"WAVEJIT_TEST_SAMPLE": "1", "WAVEJIT_TEST_TURNS": str(turns), "WAVEJIT_TEST_EVERY_TURN": f"*{always}*"}
parts = [tests(**sample, WAVEJIT_TEST_TURN=str(turn)) for turn in range(turns)]
assert set().union(*parts) == everything, f"in no turn: {everything - set().union(*parts)}"
for turn, part in enumerate(parts):
    assert len(part) < 0.75 * len(everything), f"turn {turn} has {len(part)} of {len(everything)} tests"
    for target in ("gfx942", "gfx950"):
        assert any(target in name for name in part), f"turn {turn} has nothing of {target}"
    wanted = {name.split("/")[-2] for name in everything if always in name}
    assert wanted == {name.split("/")[-2] for name in part if always in name}, f"turn {turn} lacks some of {always}"
assert tests(**sample, WAVEJIT_TEST_TURN=str(turns)) == parts[0], "they go round"
assert tests(**sample, WAVEJIT_TEST_WHOLE="1") == everything, "./dev soak has everything"
named = tests(**sample, WAVEJIT_TEST_TURNS_OF=f"*{always}*", WAVEJIT_TEST_TURN="0")
assert everything - named <= {name for name in everything if always in name}, "no others than those that are named take turns"
