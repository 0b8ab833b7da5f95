#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What AMD's HIP and ROCr on the simulated GPU cost on this host, as a table: the best of several runs beside the goal.

    rocr_figures.py <build folder> [runs]     5 runs unless told otherwise
"""
import pathlib
import re
import subprocess
import sys
import time

LAUNCHES = 2000
IDLE_SECONDS = 5


def values(text):
    return {name: float(value) for name, value in re.findall(r"^([a-z_]+) (-?[0-9.]+)$", text, re.M)}


def main():
    build = pathlib.Path(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    sim = [build / "bin/wavejit", "sim", "--target", "gfx950", "--"]
    figures = build / "tests/hip_program/hip_rocr_figures"

    def under_sim(*words):
        started = time.monotonic()
        ended = subprocess.run([*sim, *words], check=True, capture_output=True, text=True)
        return {**values(ended.stdout), "seconds": time.monotonic() - started}, ended.stderr

    def best(*words):
        results = [under_sim(*words)[0] for _ in range(runs)]
        return {name: min(result[name] for result in results) for name in results[0]}

    launch = best(figures, "launch", str(LAUNCHES))
    start = best(figures, "start")
    hot = best(build / "bin/wavejit_rocr_hot_call")
    empty = subprocess.run([build / "bin/wavejit_bench_hot_call", "--benchmark_filter=hot_call/created_stream",
                            f"--benchmark_repetitions={runs}", "--benchmark_format=csv"], check=True, capture_output=True, text=True)
    empty_ns = min(float(line.split(",")[2]) for line in empty.stdout.splitlines() if line.startswith('"hot_call/created_stream"'))
    idle, threads = under_sim(figures, "idle", str(IDLE_SECONDS))

    rows = [
        ("launch of an empty kernel and wait for it, p50", f"{launch['call_and_wait_us']:.1f} µs", "≤ 60 µs"),
        ("  of that the call, p50", f"{launch['call_us']:.1f} µs", ""),
        ("empty kernels one behind another, each", f"{launch['one_behind_another_us']:.1f} µs", ""),
        ("hot call of attention_forward until it returns, p50", f"{hot['hot_call_ns']:.0f} ns", ""),
        ("  on empty HIP functions", f"{empty_ns:.0f} ns", ""),
        ("a process with one GPU, from its start to its end", f"{start['seconds']:.3f} s", "≤ 0.25 s"),
        ("its memory before the first allocation", f"{start['resident_mb']:.1f} MB", "≤ 60 MB"),
        ("  of that comgr and LLVM, which HIP opens", f"{start['compiler_mb']:.1f} MB", ""),
        ("  of that shared with no other process", f"{start['private_mb']:.1f} MB", ""),
        (f"processor of an idle process, {IDLE_SECONDS} s", f"{idle['idle_percent']:.0f} % of a core", "≤ 5 %"),
    ]
    width = max(len(row[0]) for row in rows)
    print(f"Best of {runs} runs (idle: one run), AMD's HIP and ROCr over a simulated gfx950:\n")
    for what, value, goal in rows:
        print(f"{what:<{width}}  {value:>14}  {goal}")
    print("\n" + "\n".join(line for line in threads.splitlines() if line.startswith("thread ")))


main()
