#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AMD's ROCr conformance tests on a simulated GPU, each in a process of its own, held to the table beside this file.

  conformance.py <wavejit> <target> <folder of libamd_smi.so.26> sample | whole [<part of a test's name>]

The programs come from scripts/rocm_programs.sh conformance. A test that does not do what the table says is an error: one that
fails, one that passes though it should fail, one that the table does not know.
"""

import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2] / "build/rocm/conformance"
TESTS = ROOT / "usr/libexec/rocm/libhsa-runtime64-tests"
VERDICTS = ("sample", "passes", "fails", "left")
LONGEST = 1800  # seconds


def read_table() -> dict[str, str]:
    """The verdict of each test."""
    table = {}
    for line in (HERE / "conformance.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        verdict, rest = line.split(maxsplit=1)
        test, _, reason = rest.partition(":")
        if verdict not in VERDICTS or (verdict in ("fails", "left") and not reason.strip()):
            sys.exit(f"conformance.txt: '{line}' has no verdict, or no reason")
        table[test] = verdict
    return table


# machine.xml is a machine for hwloc: one core, its memory, and PCI devices where the simulated GPUs say that they are. The tests
# of copies look for the GPU nearest to a CPU there. (hwloc's own reader of XML knows no comments.)
def environment(monitoring: str) -> dict[str, str]:
    libraries = [monitoring, str(ROOT / "usr/lib/x86_64-linux-gnu"), os.environ.get("LD_LIBRARY_PATH", "")]
    return os.environ | {
        "LD_LIBRARY_PATH": ":".join(part for part in libraries if part),
        "ROCRTST_KERNELS_PATH": str(TESTS),
        "HWLOC_XMLFILE": str(HERE / "machine.xml"),
        "HWLOC_THISSYSTEM": "1",
    }


def tests_of_program(variables: dict[str, str]) -> set[str]:
    listed = subprocess.run([TESTS / "rocrtst64", "--gtest_list_tests"], env=variables, check=True, capture_output=True, text=True)
    names, suite = set(), ""
    for line in listed.stdout.splitlines():
        if line.startswith("  "):
            names.add(suite + line.strip())
        else:
            suite = line.strip()
    return {name for name in names if "." in name}


def run(wavejit: str, target: str, variables: dict[str, str], test: str) -> tuple[bool, str, float]:
    """Whether it passed, what it printed, and how many seconds it took."""
    command = [wavejit, "sim", "--target", target, "--", "./rocrtst64", f"--gtest_filter={test}", "--gtest_also_run_disabled_tests"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, env=variables, cwd=TESTS / target, timeout=LONGEST, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        output, passed = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as late:
        output, passed = (late.stdout or b"") + f"\nended after {LONGEST} s".encode(), False
    text = output.decode(errors="replace")
    return passed and f"[       OK ] {test}" in text, text, time.monotonic() - start


def main() -> None:
    wavejit, target, monitoring, how = sys.argv[1:5]
    part = sys.argv[5] if len(sys.argv) > 5 else ""
    table, variables = read_table(), environment(str(pathlib.Path(monitoring).resolve()))
    wrong = sorted(f"{test}: in the table or in the program alone" for test in tests_of_program(variables) ^ table.keys())
    counts = dict.fromkeys(VERDICTS, 0)
    for test, verdict in table.items():
        if part not in test or verdict == "left" or (how == "sample" and verdict != "sample"):
            continue
        passed, output, seconds = run(str(pathlib.Path(wavejit).resolve()), target, variables, test)
        print(f"{test}: {'passes' if passed else 'fails'}, {seconds:.1f} s", flush=True)
        counts[verdict] += 1
        if passed != (verdict != "fails"):
            wrong.append(f"{test} {'passes: the table says that it fails' if passed else 'fails'}")
            if not passed:
                print("\n".join(output.splitlines()[-40:]), flush=True)
    print(f"{target}: {counts['sample'] + counts['passes']} that pass, {counts['fails']} that fail for a known reason")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
