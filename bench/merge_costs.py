#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits what merging parts of split keys costs, in one launch and in two, to what the clock predicts.

    ./dev bench merge-costs

It prints the rows of `MergeCosts` that call/merging.cpp and call/splits.cpp hold (templates/attention_forward, attention_latent), how far
they are from the clock, and how often they take the slower one of the two by more than `least_gain`. A call's costs are the cycles that
it takes beyond its walk: those of the walk alone are the first launch's of two.
"""
import concurrent.futures
import dataclasses
import itertools
import json
import math
import statistics
import subprocess
import sys

import numpy

TARGETS, LEAST_GAIN = ("gfx942", "gfx950"), 1000


@dataclasses.dataclass(frozen=True)
class Call:
    """A call, and what its costs depend on; the terms as call/merge_costs.h has them."""
    line: str
    words: tuple[str, ...]
    chunks: int
    bytes: int
    all_bytes: int
    turns: int


def forward_calls(shares: bool):
    heads = ((1, 16, 2), (1, 64, 8), (8, 16, 2), (1, 32, 2), (4, 32, 2), (1, 64, 2), (32, 16, 2))
    for dims, (batch, query_heads, kv_heads), chunks in itertools.product((64, 128), heads, (2, 4, 8, 16, 32, 64)):
        rows = query_heads // kv_heads
        turns_of_wave = math.ceil(rows * dims / (64 * 16))
        yield Call(f"attention_forward bf16 b{batch} q1 k{chunks * 1024} h{query_heads}/{kv_heads} d{dims}",
                   () if shares else ("--pipeline", "generic"), chunks, chunks * turns_of_wave * 64 * 16 * 4,
                   batch * query_heads * chunks * (dims + 4) * 4, math.ceil(rows / 16) if shares else turns_of_wave)


def latent_calls():
    for heads, batch, chunks in itertools.product((16, 32), (1, 4, 16, 64), (2, 3, 4, 6, 8, 12, 16)):
        turns = math.ceil(16 / (64 // heads * 4))  # 16 parts of eight loads in 512 dims; four waves
        yield Call(f"attention_latent bf16 b{batch} q1 k{chunks * 1024} h{heads} d576/512", (), chunks, chunks * turns * 256 * 16 * 8,
                   batch * heads * chunks * (512 + 4) * 4, turns)


def cycles(wavejit: str, target: str, call: Call, launches: int) -> list[tuple[int, int]] | None:
    """Cycles of each launch, and of the wait before it; none where the plan is another one."""
    said = subprocess.run([wavejit, "profile", "--cache", "off", "--device", f"sim:{target}", "--json", *call.words, f"{call.line} launches={launches}"],
                          capture_output=True, text=True, check=False)
    if said.returncode != 0:
        sys.exit(f"{call.line} on {target}: {said.stderr}")
    parts = json.loads(said.stdout)["predicted_cycles_parts"]
    return [(part["cycles"], part["wait"]) for part in parts] if len(parts) == launches else None


def fitted(terms: list[list[float]], seen: list[int]) -> list[float]:
    """Least squares of relative errors; a term that would be negative is left out."""
    kept = list(range(len(terms[0])))
    weights = 1 / numpy.maximum(seen, 4000)
    rows = numpy.array(terms, dtype=float) * weights[:, None]
    scale = numpy.abs(rows).max(axis=0)
    while True:
        found = numpy.linalg.lstsq(rows[:, kept] / scale[kept], seen * weights, rcond=None)[0] / scale[kept]
        if found.min() >= 0:
            return [float(found[kept.index(at)]) if at in kept else 0.0 for at in range(len(terms[0]))]
        kept.pop(int(found.argmin()))


def rate(cost: float) -> str:
    return f"{1 / cost:.0f}" if cost > 1e-6 else "none"


def report(name: str, target: str, calls: list[Call], seen: list[tuple[list[tuple[int, int]] | None, ...]]) -> None:
    rows = [(call, one[0][0] - two[0][0], sum(two[1])) for call, (one, two) in zip(calls, seen) if one and two]
    wait = max(two[1][1] for one, two in seen if one and two)
    near = [one <= 3 * two for _, one, two in rows]  # elsewhere two launches are taken, however far off the fit is
    real = {1: [one for _, one, _ in rows], 2: [two for _, _, two in rows]}
    terms = {1: [[1, call.turns - 1, call.bytes, call.all_bytes] for call, _, _ in rows],
             2: [[1, call.chunks, call.all_bytes] for call, _, _ in rows]}
    costs = {launches: fitted(list(itertools.compress(terms[launches], near)), list(itertools.compress(real[launches], near))) for launches in (1, 2)}
    said = {launches: [sum(a * b for a, b in zip(row, costs[launches])) for row in terms[launches]] for launches in (1, 2)}
    arrival, turn, of_bytes, of_all = costs[1]
    second, chunk, of_second = costs[2]
    print(f"{name} {target}: {len(rows)} of {len(calls)} calls, {sum(near)} of them in the fit: one launch has at most three times the cost of two\n"
          f"  .arrival = {arrival:.0f}, .turn = {turn:.0f}, .bytes_a_cycle = {rate(of_bytes)}, .all_bytes_a_cycle = {rate(of_all)},"
          f" .second_launch = {second - wait:.0f}, .chunk = {chunk:.0f}, .second_bytes_a_cycle = {rate(of_second)}")
    for launches in (1, 2):
        off = [abs(a - b) if close else 0 for a, b, close in zip(said[launches], real[launches], near)]
        worst = off.index(max(off))
        print(f"  launches={launches}: half within {statistics.median(off):.0f} cycles, 90 % within {sorted(off)[len(off) * 9 // 10]:.0f}, the worst"
              f" {off[worst]:.0f} ({rows[worst][0].line}: {real[launches][worst]}, by the fit {said[launches][worst]:.0f})")
    takes_one = [one + LEAST_GAIN <= two for one, two in zip(said[1], said[2])]
    lost = [one - two if taken else two - one for taken, one, two in zip(takes_one, real[1], real[2])]
    worst = lost.index(max(lost))
    print(f"  {sum(takes_one)} in one launch; {sum(value > LEAST_GAIN for value in lost)} take the slower way by more than {LEAST_GAIN} cycles, the most"
          f" {lost[worst]} ({rows[worst][0].line})", flush=True)


def main() -> None:
    wavejit = sys.argv[1] if len(sys.argv) > 1 else "build/dev/bin/wavejit"
    kinds = {"one wave": list(forward_calls(shares=False)), "shared rows": list(forward_calls(shares=True)), "latent": list(latent_calls())}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (name, calls), target in itertools.product(kinds.items(), TARGETS):
            asked = [(pool.submit(cycles, wavejit, target, call, 1), pool.submit(cycles, wavejit, target, call, 2)) for call in calls]
            report(name, target, calls, [(one.result(), two.result()) for one, two in asked])


if __name__ == "__main__":
    main()
