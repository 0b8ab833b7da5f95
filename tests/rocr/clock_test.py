#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Event times under AMD's HIP are the clock's with --cycles, the same on every run, and the host's without.

    clock_test.py <wavejit> <program of clock.hip> <target> <engine clock, kHz>
"""
import json
import pathlib
import subprocess
import sys
import tempfile

WAIT_CYCLES = 1800  # launch.dependent of src/timing: between a launch and the one that waits for it


def run(wavejit, program, target, *options):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        words = [wavejit, "sim", "--target", target, "--json", str(report), *options, "--", program]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        times = dict(line.split() for line in text.splitlines() if line.count(" ") == 1 and line.split()[1].lstrip("-").isdigit())
        return {name: int(value) for name, value in times.items()}, json.loads(report.read_text())


def cycles_of_work(report):
    rows = [row for process in report["processes"] for row in process["kernels"] if row["name"].startswith("work")]
    assert len(rows) == 1 and rows[0]["not_timed"] == 0, rows
    assert rows[0]["cycles"] % rows[0]["launches"] == 0, rows
    return rows[0]["cycles"] // rows[0]["launches"]


def main():
    wavejit, program, target, khz = sys.argv[1:3] + [sys.argv[3], int(sys.argv[4])]
    times, report = run(wavejit, program, target, "--cycles")
    # The same kernel under this project's own front: another loader, another launch, the same clock.
    _, own = run(wavejit, program, target, "--cycles", "--front", "hip")
    cycles = cycles_of_work(own)
    assert cycles_of_work(report) == cycles, (cycles_of_work(report), cycles)
    assert report["cycles"] >= 6 * cycles

    def nanoseconds(count):
        return count * 1e6 / khz

    tick = 10  # ns; each stamp is rounded down to one
    for name, expected in (("one", cycles), ("two", 2 * cycles + WAIT_CYCLES), ("kernel", cycles), ("other", 2 * cycles), ("pause", 0)):
        assert abs(times[name] - nanoseconds(expected)) <= tick + 2, (name, times[name], nanoseconds(expected))
    again, _ = run(wavejit, program, target, "--cycles")
    # HIP answers in floating-point milliseconds of differences of large counts, and a stamp is rounded to a tick: where a
    # time ends at a tick's edge, the other one may be answered.
    assert times.keys() == again.keys() and all(abs(again[name] - times[name]) <= tick + 1 for name in times), (again, times)
    # What a kernel reads of its own time is that of the events: two launches, of which most is the loop that clock64() brackets.
    each = nanoseconds(times["cycles"])
    assert times["cycles"] > 4 * 10_000 and each < times["wall"] < 1.3 * each + nanoseconds(WAIT_CYCLES), times
    costly, _ = run(wavejit, program, target, "--cycles", "--warm", "--event-cost", "2.9")
    assert abs(costly["one"] - times["one"] - 2900) <= tick + 2, (costly, times)
    refused = subprocess.run([wavejit, "sim", "--target", target, "--warm", "--", program], check=False, capture_output=True, text=True)
    assert refused.returncode != 0 and "--warm without --cycles" in refused.stderr, refused
    host, _ = run(wavejit, program, target)
    assert host["pause"] >= 20_000_000, host
    assert host["one"] > times["one"], (host, times)
    print(f"{cycles} cycles, {times['one']} ns; on the host {host['one']} ns")


main()
