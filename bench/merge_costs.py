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
    return f"{1 / cost:.0f}" if cost > 1e-5 else "0"  # it takes nothing


@dataclasses.dataclass
class Seen:
    """A call's costs beyond its walk, in one launch and in two."""
    call: Call
    one: int
    two: int

    def terms(self, launches: int) -> list[float]:
        call = self.call
        return [1, call.turns - 1, call.bytes, call.all_bytes] if launches == 1 else [1, call.chunks, call.all_bytes]

    def is_near(self) -> bool:
        """Elsewhere two launches are taken, however far off the fit is."""
        return self.one <= 3 * self.two


def fit(seen: list[Seen], launches: int) -> list[float]:
    near = [each for each in seen if each.is_near()]
    return fitted([each.terms(launches) for each in near], [each.one if launches == 1 else each.two for each in near])


def said(each: Seen, costs: list[float], launches: int) -> float:
    return sum(a * b for a, b in zip(each.terms(launches), costs))


def say_fit(name: str, seen: list[Seen], costs: list[float], launches: int) -> None:
    near = [each for each in seen if each.is_near()]
    off = [abs(said(each, costs, launches) - (each.one if launches == 1 else each.two)) for each in near]
    worst = near[off.index(max(off))]
    print(f"{name}: {len(near)} of {len(seen)} calls in the fit, where one launch has at most three times the cost of two; half within "
          f"{statistics.median(off):.0f} cycles, 90 % within {sorted(off)[len(off) * 9 // 10]:.0f}, the worst {max(off):.0f} ({worst.call.line})")


def report(family: str, target: str, kinds: dict[str, list[Seen]], wait: int) -> None:
    """Kinds of parts are merged by kernels of their own in one launch, and by the same kernel in two."""
    every = [each for seen in kinds.values() for each in seen]
    two = fit(every, 2)
    say_fit(f"{family} {target}, two launches", every, two, 2)
    print(f"  .second_launch = {two[0] - wait:.0f}, .chunk = {two[1]:.0f}, .second_bytes_a_cycle = {rate(two[2])}")
    for kind, seen in kinds.items():
        one = fit(seen, 1)
        say_fit(f"{family} {target}, one launch, {kind}", seen, one, 1)
        print(f"  .arrival = {one[0]:.0f}, .turn = {one[1]:.0f}, .bytes_a_cycle = {rate(one[2])}, .all_bytes_a_cycle = {rate(one[3])}")
        takes_one = [said(each, one, 1) + LEAST_GAIN <= said(each, two, 2) for each in seen]
        lost = [each.one - each.two if taken else each.two - each.one for taken, each in zip(takes_one, seen)]
        print(f"  {sum(takes_one)} of {len(seen)} in one launch; {sum(value > LEAST_GAIN for value in lost)} take the slower way by more than {LEAST_GAIN}"
              f" cycles, the most {max(lost)} ({seen[lost.index(max(lost))].call.line})", flush=True)


def main() -> None:
    wavejit = sys.argv[1] if len(sys.argv) > 1 else "build/dev/bin/wavejit"
    families = {"attention_forward": {"one wave": list(forward_calls(shares=False)), "shared rows": list(forward_calls(shares=True))},
                "attention_latent": {"32 rows": list(latent_calls())}}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (family, kinds), target in itertools.product(families.items(), TARGETS):
            asked = {kind: [(call, *(pool.submit(cycles, wavejit, target, call, launches) for launches in (1, 2))) for call in calls]
                     for kind, calls in kinds.items()}
            ran = {kind: [(call, one.result(), two.result()) for call, one, two in each] for kind, each in asked.items()}
            wait = next(two[1][1] for each in ran.values() for _, one, two in each if one and two)
            report(family, target, {kind: [Seen(call, one[0][0] - two[0][0], sum(two[1])) for call, one, two in each if one and two]
                                    for kind, each in ran.items()}, wait)


if __name__ == "__main__":
    main()
