#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which planted faults the tests see: those that ./dev test runs, and if these see nothing, all tests of the family.

    run.py <folder with bin/ and lib/> <faults.txt> <seen.txt> [--chosen] [<first> <last>]

bin/ has the programs of tests, lib/ their libraries with a wavejit_codegen that plant.py has been through. Each program runs once with all faults
asleep, which tells the faults that are in code that it makes kernels with; others it cannot see. Then all faults meet the chosen tests: the programs,
and behind them what ctest calls `wavejit sweep` and `wavejit invariance` with. Faults that were not seen meet the products, without --chosen.

seen.txt has a line a fault: `<outcome> | <commit> | <place and fault>`. A fault that it names already is not tried again, so that a run goes on where
it was, after an interruption or on another machine.
"""
import bisect
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CHOSEN = HERE.parent / "chosen"
# Seconds of processor time, which a busy machine does not stretch: some faults make loops that do not end, which is noticed.
SECONDS = 240
# By the folder of the fault: programs that call its kernels, those first that see most.
FORWARD = [
    "attention_value_tests", "attention_tests", "attention_modifier_tests", "attention_pipeline_tests", "attention_paged_tests", "attention_split_tests",
    "attention_cache_tests", "attention_lists_tests", "attention_key_lists_tests", "attention_decode_tests", "attention_mixed_tests",
    "attention_scattered_tests", "attention_canon_tests", "attention_unseen_tests",
]  # fmt: skip
PROGRAMS = {
    "attention": [*FORWARD, "attention_latent_tests", "attention_backward_tests", "sparse_indexer_tests"],
    "attention_forward": FORWARD,
    "attention_backward": ["attention_backward_tests"],
    "attention_latent": ["attention_latent_tests"],
    "attention_merge": ["attention_merge_tests"],
    "cache_append": ["cache_append_tests"],
    "softmax_lse": ["softmax_lse_tests"],
    "sparse_indexer": ["sparse_indexer_tests"],
}


def fault_of(row: str) -> str:
    """A row without its number, which other sources may change."""
    return row.split(" ", 1)[1]


def environment_of(folder: pathlib.Path, program: str, chosen: bool, **more: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAVEJIT_TEST_")} | more
    environment["LD_LIBRARY_PATH"] = str((folder / "lib").resolve())  # programs name the build's own folder, which comes behind it
    if program in ("attention_backward_tests", "attention_latent_tests"):
        environment |= {"WAVEJIT_SIM_CHECK": "all", "WAVEJIT_SIM_RULES": "strict"}
    if chosen:
        environment |= {"WAVEJIT_TEST_SAMPLE": "1", "WAVEJIT_TEST_CHOSEN": str(CHOSEN / f"{program}.txt")}
    return environment


def reached_by(folder: pathlib.Path, program: str, chosen: bool) -> dict[str, list[str]]:
    """The faults that the program asks for, each with the tests that ran when it did; kept beside it."""
    kept = folder / "reached" / f"{program}.{'chosen' if chosen else 'all'}.json"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as times:
            environment = environment_of(folder, program, chosen, WAVEJIT_PLANTED="0", WAVEJIT_PLANTED_REACHED=times)
            begun: list[tuple[float, str]] = []
            with subprocess.Popen([folder / "bin" / program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
                for line in running.stdout or ():
                    if line.startswith("[ RUN "):
                        begun.append((time.time(), line.split("] ", 1)[1].strip()))
            if running.returncode != 0:
                raise RuntimeError(f"{program} fails without a fault")
            reached = {}
            for path in pathlib.Path(times).iterdir():
                asked = map(float, path.read_text(encoding="ascii").split())
                # A test's line may be read a little late, so the test behind counts, too.
                places = {bisect.bisect(begun, (at + late, "")) - 1 for at in asked for late in (0, 0.02)}
                reached[path.name] = [begun[place][1] for place in sorted(places) if place >= 0]
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(reached), encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def failing_test(folder: pathlib.Path, program: str, fault: str, chosen: bool, *options: str) -> str:
    """The first test that fails, or nothing."""
    seconds = SECONDS if chosen else 16 * SECONDS
    command = [f"ulimit -t {seconds}; exec \"$@\"", "sh", folder / "bin" / program, "--gtest_fail_fast", "--gtest_brief=1", *options]
    ran = subprocess.run(["sh", "-c", *command], capture_output=True, text=True, check=False, env=environment_of(folder, program, chosen, WAVEJIT_PLANTED=fault))
    if ran.returncode == 0:
        return ""
    if ran.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "does not end"
    failed = re.search(r"\[  FAILED  \] ([^\s,]+)", ran.stdout)
    return failed.group(1) if failed else f"exit code {ran.returncode}"


@functools.cache
def commands() -> list[tuple[str, list[str]]]:
    """Names and commands of the tests that call the program itself with chosen rows."""
    shown = subprocess.run(["ctest", "--test-dir", "build/dev", "--show-only=json-v1"], stdout=subprocess.PIPE, text=True, check=True)
    tests = [(test["name"], test["command"]) for test in json.loads(shown.stdout)["tests"] if len(test.get("command", [])) > 1]
    return [(name, command) for name, command in tests if command[0].endswith("/bin/wavejit") and command[1] in ("sweep", "invariance")]


def failing_command(folder: pathlib.Path, row: str) -> str:
    """The first of these that fails, or nothing."""
    number, place = row.split()[:2]
    family = place.split("/")[1]
    for name, command in commands():
        # A fault in what families share is in forward's kernels, whose lists these are but for invariance's.
        if family not in ("attention", "attention_forward") and family not in command:
            continue
        with tempfile.TemporaryDirectory() as cache:
            environment = environment_of(folder, "wavejit", True, WAVEJIT_PLANTED=number, WAVEJIT_CACHE_DIR=cache)
            limited = ["sh", "-c", f'ulimit -t {4 * SECONDS}; exec "$@"', "sh", folder / "bin" / "wavejit", *command[1:]]
            if subprocess.run(limited, capture_output=True, check=False, env=environment).returncode != 0:
                return name
    return ""


def programs_of(row: str, chosen: bool) -> list[str]:
    programs = PROGRAMS[row.split()[1].split("/")[1]]
    return programs if chosen else [each for each in programs if (CHOSEN / f"{each}.txt").exists()]


def outcome(folder: pathlib.Path, row: str, chosen: bool, reached: dict[str, dict[str, list[str]]]) -> str:
    """`17 seen attention_tests All/…`, or why not: an unreached fault is in code that none of these tests makes kernels with."""
    number = row.split()[0]
    programs = [each for each in programs_of(row, chosen) if number in reached[each]]
    # First the tests that compile what has the fault, then all, which may share its kernels.
    filters = [[f"--gtest_filter={':'.join(reached[program][number])}"] for program in programs]
    for program, options in [*zip(programs, filters), *((program, []) for program in programs)]:
        if test := failing_test(folder, program, number, chosen, *options):
            return f"{'seen' if chosen else 'seen_by_product'} {program} {test}"
    if chosen and (test := failing_command(folder, row)):
        return f"seen {test}"
    return f"{'unseen' if chosen else 'unseen_by_product'} {'reached' if programs else 'unreached'}"


def read_outcomes(seen: pathlib.Path) -> dict[str, list[str]]:
    """By place and fault."""
    outcomes: dict[str, list[str]] = {}
    for line in seen.read_text(encoding="utf-8").splitlines() if seen.exists() else []:
        if not line.startswith("#"):
            outcome_, _, fault = line.split(" | ", 2)
            outcomes.setdefault(fault, []).append(outcome_.split()[0])
    return outcomes


def main() -> None:
    folder, faults, seen = map(pathlib.Path, sys.argv[1:4])
    numbers = [word for word in sys.argv[4:] if word != "--chosen"]
    first, last = map(int, numbers or ("1", "100000"))
    commit = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    rows = [row for row in faults.read_text(encoding="utf-8").splitlines() if row and not row.startswith("#") and first <= int(row.split()[0]) <= last]
    for chosen in (True,) if "--chosen" in sys.argv else (True, False):
        outcomes = read_outcomes(seen)
        wanted = [] if chosen else ["unseen"]
        to_run = [row for row in rows if outcomes.get(fault_of(row), []) == wanted]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, seen.open("a", encoding="utf-8") as file:
            wanted_programs = sorted({program for row in to_run for program in programs_of(row, chosen)})
            reached = dict(zip(wanted_programs, pool.map(lambda program: reached_by(folder, program, chosen), wanted_programs)))
            running = {pool.submit(outcome, folder, row, chosen, reached): row for row in to_run}
            for future in concurrent.futures.as_completed(running):
                line = f"{future.result()} | {commit} | {fault_of(running[future])}"
                print(line, flush=True)
                print(line, file=file, flush=True)


if __name__ == "__main__":
    main()
