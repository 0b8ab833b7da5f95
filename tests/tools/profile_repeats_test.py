#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One kernel takes as many cycles in every process, wherever the host has put the memory of the simulated GPU.

    profile_repeats_test.py <the program wavejit>
"""
import json
import subprocess
import sys

LINE = "attention_forward bf16 b1 q1024 k1024 h64/8 d128"  # 96,773 cycles or 97,076 once, by where memory lay
RUNS = 6

command = [sys.argv[1], "profile", LINE, "--device", "sim:gfx942", "--cache", "off", "--json"]
cycles = {json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["predicted_cycles"] for _ in range(RUNS)}
assert len(cycles) == 1, cycles
