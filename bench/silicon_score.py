#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The clock beside what others measured on an MI300A: docs/silicon-score.md (silicon_page.py), from the tables of bench/silicon.

    silicon_score.py <build folder> run [<folder>]   predicts every row of own.tsv, and of originals.tsv if there is a folder with the
                                                     originals' sources, a copy outside of the tree; then writes the page. Minutes
    silicon_score.py <build folder> page             writes the page from the tables
    silicon_score.py <build folder> check [first]    the page says what the tables say, and own programs take what own.tsv says. The
                                                     first row of each takes seconds, all of them minutes
    silicon_score.py <build folder> can-fail         a page with another figure is found, and a row with another time
"""
import hashlib
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

from aiter_clock import forward
from silicon_page import BOARD, EVENT_COST, PRODUCT, TREE, page, pairs_of_originals, ratios_by_kind, read_table
from simulated_gpu import SimulatedGpu

DATA, PAGE = TREE / "bench/silicon", TREE / "docs/silicon-score.md"
LIMIT = 60  # seconds of processor time that a row of the originals may take
TICK = 0.0105  # microseconds: a stamp counts ten nanoseconds

# The originals' programs, and how a size is told them by the numbers in its name; {each} is the last by the first.
ORIGINALS = {
    "atax": "atax --size {0}", "bicg": "bicg --size {0}", "conv2d": "conv2d --size {2} --mask {4}", "fft1D_512": "fft --size {0}",
    "fir": "fir --length {0} --taps {1}", "im2col": "im2col --size {2} --mask {4}", "kmeans": "kmeans --points {0} --features {1} --clusters {2}",
    "matrixmultiplication": "matrixmultiplication --size {0}", "matrixtranspose": "matrixtranspose --size {0}", "memcopy_d2d": "memcopy --size {0}",
    "nbody": "nbody --bodies {0}", "relu": "relu --size {0}", "simpleconvolution": "simpleconvolution --size {0} --mask {2}",
    "spmv_csr_scalar": "spmv --rows {0} --nnz {each}", "stencil2d": "stencil2d --size {0}", "vectoradd": "vectoradd --size {0}",
}


def clock_id() -> str:
    """A hash of the clock's code and constants, without comments, white space and texts of several words, as sources of constants are."""
    files = [file for folder in ("src/timing", "src/boards", "src/simgpu/checkers/clock") for file in (TREE / folder).iterdir()]
    files.append(TREE / "src/simgpu/front_ends/queues/queue_time.cpp")
    known = hashlib.sha256()
    for file in sorted(files):
        if file.suffix in (".h", ".cpp"):
            known.update(re.sub(r'"[^"\n]* [^"\n]*"|//.*|\s+', "", file.read_text(encoding="utf-8")).encode())
    return known.hexdigest()[:12]


def write_table(name: str, head: str, rows: list[dict]) -> None:
    lines = [f"# {head}", "\t".join(rows[0])] + ["\t".join(row.values()) for row in rows]
    (DATA / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def simulated(build: pathlib.Path, target: str, words: list, warm: bool, limit: int = resource.RLIM_INFINITY) -> str:
    command = [build / "bin/wavejit", "sim", "--target", target, "--cycles", *(["--warm"] if warm else []), "--event-cost", str(EVENT_COST)]
    return subprocess.run([*command, "--", *words], check=True, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))).stdout


def predict_own(build: pathlib.Path, rows: list[dict]) -> dict:
    """{(run, size): microseconds} of these rows. A run is "<program> <pattern>", behind "cold" or "mi300x" where that differs."""
    found = {}
    for run in dict.fromkeys(row["run"] for row in rows):
        sizes = [row["size"] for row in rows if row["run"] == run]
        before, program, pattern = re.fullmatch(r"(?:(cold|mi300x) )?(\w+) (\w+)", run).groups()
        began = time.monotonic()
        target = PRODUCT if before == "mi300x" or program == "probes" else BOARD
        text = simulated(build, target, [build / f"tests/hip_program/silicon_{program}", pattern, *sizes], before != "cold")
        digits = 4 if program == "probes" else 2
        found |= {(run, size): f"{float(microseconds):.{digits}f}" for size, microseconds in re.findall(r"^(\S+) (\d+\.\d{4})$", text, re.MULTILINE)}
        print(f"{run}: {len(sizes)} sizes, {time.monotonic() - began:.1f} s", flush=True)
    return found


def build_originals(build: pathlib.Path, folder: pathlib.Path) -> None:
    """As tests/hip_program builds its own. The times are printed to the nanosecond; nothing else of the copy is changed."""
    cache = dict(re.findall(r"^(WAVEJIT_HIP_CLANG|WAVEJIT_HIP_LIBRARY|WAVEJIT_OCML_BITCODE):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE))
    common = folder / "bench_common.h"
    common.write_text(common.read_text().replace("%.4f", "%.7f"))
    for program in {words.split()[0] for words in ORIGINALS.values()}:
        print(f"building {program}", flush=True)
        subprocess.run([cache["WAVEJIT_HIP_CLANG"], "-x", "hip", "--offload-arch=gfx942", f"--rocm-device-lib-path={pathlib.Path(cache['WAVEJIT_OCML_BITCODE']).parent}",
                        "-std=c++17", "-O2", folder / f"{program}.cpp", "-o", folder / program, "-x", "none", cache["WAVEJIT_HIP_LIBRARY"]], check=True)


def predict_original(build: pathlib.Path, folder: pathlib.Path, row: dict) -> str:
    """Microseconds, or why there are none."""
    numbers = [int(word) for word in re.findall(r"\d+", row["size"])]
    program, *words = ORIGINALS[row["program"]].format(*numbers, each=numbers[-1] // numbers[0]).split()
    try:
        text = simulated(build, BOARD, [folder / program, "--iterations", "1", *words], True, LIMIT)
    except subprocess.CalledProcessError as error:
        out_of_time = error.returncode - 128 in (signal.SIGXCPU, signal.SIGKILL)
        return f"over {LIMIT} s" if out_of_time else f"ended with {error.returncode}"
    times = [line.split(",")[4] for line in text.splitlines() if line.startswith(f"{row['program']},{row['size']},")]
    return f"{float(times[0]) * 1e3:.2f}" if times else "printed no time"


def predict_attention(build: pathlib.Path) -> None:
    """AITER's kernel of attention.tsv, from its package."""
    package = subprocess.run([TREE / "scripts/aiter_package.sh"], check=True, capture_output=True, text=True).stdout.strip()
    code_object = pathlib.Path(package, "gfx950/fmha_v3_fwd/fwd_hd128_bf16.co").read_bytes()
    gpu = SimulatedGpu(build / "lib/libwavejit_simgpu.so")
    gpu.select("gfx950")
    head, rows = read_table(DATA / "attention.tsv")
    for row in rows:
        row["cycles"] = str(forward(gpu, code_object, 2, 32, 32, int(row["keys"]), False)["cycles"])
        print("AITER's attention,", *row.values(), flush=True)
    write_table("attention.tsv", re.sub(r"cycles are .*, of AITER's", f"cycles are those of clock {clock_id()}, of AITER's", head), rows)


def run(build: pathlib.Path, folder: pathlib.Path | None) -> None:
    predict_attention(build)
    _, rows = read_table(DATA / "own.tsv")
    found = predict_own(build, rows)
    write_table("own.tsv", f"clock {clock_id()}", [row | {"predicted": found[row["run"], row["size"]]} for row in rows])
    if folder:
        build_originals(build, folder)
        _, rows = read_table(DATA / "originals.tsv")
        for row in rows:
            row["predicted"] = predict_original(build, folder, row)
            print(*row.values(), flush=True)
        write_table("originals.tsv", f"clock {clock_id()}", rows)
        write_table(*kinds())


def kinds() -> tuple[str, str, list[dict]]:
    """The table that docs/timing-model.md prints: as the originals say."""
    clock, _ = read_table(DATA / "originals.tsv")
    return "kinds.tsv", f"clock {clock}", ratios_by_kind(pairs_of_originals(DATA))


def first_of_each(rows: list[dict]) -> list[dict]:
    """The smallest of each run; cold ones take seconds each, and have a warm one of their program beside them."""
    return list({row["run"]: row for row in reversed(rows) if not row["run"].startswith("cold ")}.values())


def wrong_tables(text: str) -> list[str]:
    wrong = [] if text == page(TREE) else [f"{PAGE.name} is not what the tables of {DATA.name} say"]
    name, _, rows = kinds()
    return wrong if rows == read_table(DATA / name)[1] else [*wrong, f"{name} is not what originals.tsv says"]


def wrong_rows(build: pathlib.Path, rows: list[dict], part: float) -> list[str]:
    """Rows that are off by more than this part; where data lie is another place each time."""
    found, wrong = predict_own(build, rows), []
    for row in rows:
        now, then = found.get((row["run"], row["size"])), float(row["predicted"])
        if now is None or abs(float(now) - then) > part * then + (0 if "probes" in row["run"] else TICK):
            wrong.append(f"{row['run']} {row['size']}: {now} microseconds; own.tsv says {row['predicted']}")
    return wrong


def check(build: pathlib.Path, only_first: bool, text: str) -> int:
    wrong = wrong_tables(text)
    clock, rows = read_table(DATA / "own.tsv")
    if clock not in read_table(DATA / "attention.tsv")[0]:
        wrong.append("attention.tsv is of another clock than own.tsv")
    is_other = clock != clock_id()
    if is_other:
        print(f"own.tsv is of clock {clock}, this one is {clock_id()}")
    wrong += wrong_rows(build, first_of_each(rows), 0.01) if only_first else wrong_rows(build, rows, 0.02)
    print("\n".join(wrong) or "what was compared is as the tables say")
    if wrong or (is_other and not only_first):
        print("./dev bench silicon writes tables and page anew")
        return 1
    return 0


def can_fail(build: pathlib.Path, text: str) -> int:
    row = read_table(DATA / "own.tsv")[1][0]
    row["predicted"] = f"{1.1 * float(row['predicted']):.2f}"
    return 0 if wrong_tables(text.replace("| LDS: cycles a step | ", "| LDS: cycles a step | 1", 1)) and wrong_rows(build, [row], 0.01) else 1


def main() -> int:
    build, what, *words = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if what == "check":
        return check(build, words == ["first"], text)
    if what == "can-fail":
        return can_fail(build, text)
    if what == "run":
        run(build, pathlib.Path(words[0]).resolve() if words else None)
    PAGE.write_text(page(TREE), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
