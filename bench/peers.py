# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit beside Triton: cold compiles and disk hits of the same attention forward, taken in turns in one run.

    peers.py <probe> <python with Triton> [repetitions] [word of the cases: "gfx950 d128 causal" has all]

Each time is taken in a fresh process in which everything else is loaded (peer_probe.cpp, peers_triton.py). Prints the table for
bench/README.md, a row when its case is done, and exits 1 when a goal is missed. Goals are for wall times; on a machine that is busy with
something else they say little, and the CPU times beside them say more.
"""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
CASES = [(target, head_dim, mask) for target in ("gfx950", "gfx942", "gfx1201") for head_dim in (128, 64) for mask in ("full", "causal")]
# What the kernel that stands for wavejit is expected to be; a comparison with another one would say something else.
PIPELINE = {"gfx950": "pipeline=dualwave"}
MOST_COLD_MS = {"gfx950": 300, "gfx1201": 250}
LEAST_COLD_RATIO = {"gfx1201": 6}
LEAST_COLD_RATIO_OF_OTHERS = 5
LEAST_HIT_RATIO = 50


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return json.loads(result.stdout)


class Side:
    """One of the two, with all that it said about one case."""

    def __init__(self, command):
        self.command = command
        self.cold, self.hit = [], []

    def take(self, case):
        with tempfile.TemporaryDirectory() as cache:
            words = [case[0], str(case[1]), case[2]]
            self.cold.append(run([*self.command, *words, "cold", cache]))
            self.hit.append(run([*self.command, *words, "hit", cache]))

    def median(self, which, field="ms"):
        return statistics.median(one[field] for one in getattr(self, which))

    def split(self):
        names = self.cold[0]["split_ms"]
        return ", ".join(f"{name} {statistics.median(one['split_ms'][name] for one in self.cold):.3g}" for name in names)


def main():
    probe, python = sys.argv[1], sys.argv[2]
    repetitions = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    # Triton's first import after installing writes byte code; nobody is timed for that.
    subprocess.run([python, "-c", "import triton, triton.language, triton.compiler"], check=True)
    wanted = sys.argv[4] if len(sys.argv) > 4 else ""
    cases = [case for case in CASES if wanted in f"{case[0]} d{case[1]} {case[2]}"]
    if not cases:
        sys.exit(f"no case has '{wanted}'")
    splits, missed, version = [], [], ""
    print("| case | wavejit cold ms (CPU) | Triton cold ms (CPU) | ratio (CPU) | wavejit hit µs (CPU of the whole call) | Triton hit µs (CPU) | ratio |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for number, case in enumerate(cases):
        ours, triton = Side([probe]), Side([python, str(HERE / "peers_triton.py")])
        for repetition in range(repetitions):
            print(f"\r[peers] case {number + 1} of {len(cases)}, run {repetition + 1} of {repetitions} ", end="", file=sys.stderr, flush=True)
            ours.take(case)
            triton.take(case)
        version = triton.cold[0]["version"]
        target, head_dim, mask = case
        kernel = ours.cold[0]["kernel"]
        if PIPELINE.get(target, "") not in kernel:
            sys.exit(f"\n{kernel}: {PIPELINE[target]} was expected")
        cold_ratio = triton.median("cold") / ours.median("cold")
        cpu_ratio = triton.median("cold", "cpu_ms") / ours.median("cold", "cpu_ms")
        hit_ratio = triton.median("hit") / ours.median("hit", "verified_ms")
        name = f"{target} d{head_dim} {mask}"
        print(f"| {name} | {ours.median('cold'):.0f} ({ours.median('cold', 'cpu_ms'):.0f}) | "
              f"{triton.median('cold'):.0f} ({triton.median('cold', 'cpu_ms'):.0f}) | {cold_ratio:.1f} ({cpu_ratio:.1f}) | "
              f"{ours.median('hit', 'verified_ms') * 1e3:.0f} ({ours.median('hit', 'cpu_ms') * 1e3:.0f}) | "
              f"{triton.median('hit') * 1e3:.0f} ({triton.median('hit', 'cpu_ms') * 1e3:.0f}) | {hit_ratio:.0f} |", flush=True)
        splits.append(f"{name}: wavejit {ours.split()}; Triton {triton.split()}; "
                      f"{triton.cold[0]['matrix_instructions']} matrix instructions and {triton.cold[0]['spills']} spills in its kernel")
        if ours.median("cold") > MOST_COLD_MS.get(target, math.inf):
            missed.append(f"{name}: cold compile {ours.median('cold'):.0f} ms; the goal is {MOST_COLD_MS[target]}")
        least_ratio = LEAST_COLD_RATIO.get(target, LEAST_COLD_RATIO_OF_OTHERS)
        if cold_ratio < least_ratio:
            missed.append(f"{name}: cold compile 1/{cold_ratio:.1f} of Triton's; the goal is 1/{least_ratio}")
        if hit_ratio < LEAST_HIT_RATIO:
            missed.append(f"{name}: disk hit 1/{hit_ratio:.0f} of Triton's; the goal is 1/{LEAST_HIT_RATIO}")
    print(file=sys.stderr)
    print(f"\nwavejit {ours.cold[0]['version']}, Triton {version}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}, medians of {repetitions}")
    print("\nWhere a cold compile goes, ms:\n")
    print("\n".join(splits))
    print("\n" + ("\n".join("MISSED " + line for line in missed) if missed else "every goal is met"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
