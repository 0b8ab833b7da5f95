#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts both ways of the calls in changed_sides.tsv anew, and writes the table.

    ./dev bench changed-sides

Rows of sparse_indexer stay: their cycles are those of the formula that plans them, and the clock is not in it.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("changed_sides.tsv")
WAYS = {"one launch": "launches=1", "two launches": "launches=2", "whole": "splits=1"}  # others ("4 runs") are the planner's


def cycles(wavejit: str, target: str, call: str, way: str) -> str:
    *options, family = call.partition("attention_")[0].split() + [call[call.index("attention_"):]]
    asked = f"{family} {WAYS.get(way, '')}".strip()
    command = [wavejit, "profile", asked, "--device", f"sim:{target}", "--json", *options]
    return str(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["predicted_cycles"])


def main() -> None:
    wavejit = sys.argv[1]
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith(("#", "target\t"))]
    rows = [line.split("\t") for line in lines[len(head):]]
    places = [(number, column) for number, row in enumerate(rows) if "sparse_indexer" not in row[1] for column in (2, 3)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda place: cycles(wavejit, rows[place[0]][0], rows[place[0]][1], rows[place[0]][place[1]]), places)
        for done, ((number, column), value) in enumerate(zip(places, found), 1):
            rows[number][column + 2] = value
            print(f"[{done:3d} of {len(places)}] {rows[number][0]} {rows[number][1]}: {rows[number][column]} {value}", flush=True)
    TABLE.write_text("\n".join(head + ["\t".join(row) for row in rows]) + "\n", encoding="utf-8")


main()
