# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/silicon-score.md as text, from bench/silicon, the clock's model_error.json and the cost of events (outside_kernels.h): nothing runs here (silicon_score.py)."""
import json
import math
import pathlib
import re
import statistics

BOARD, PRODUCT = "gfx942@6x38", "gfx942"  # MI300A, MI300X
TREE = pathlib.Path(__file__).resolve().parent.parent
# Microseconds; said once, where C++ reads it too.
EVENT_COST = float(re.search(r"event_microseconds = ([\d.]+)", (TREE / "bench/outside_kernels.h").read_text(encoding="utf-8"))[1])
GHZ = 2.1
KINDS = ("compute", "cache", "memory", "launch")
GOALS = (0.70, 0.92, 0.35)  # within 20 %, within 50 %, spread
STREAMS = ("vectoradd", "relu", "memcopy_d2d", "matrixtranspose")

PATTERNS = {
    "streams add": "two streams in, one out", "streams relu": "one in, one out", "streams copy": "HIP's copy on the device", "transpose square": "tiles turned in LDS",
    "stencil points": "nine points by LDS", "gather rows": "a lane a row of a sparse matrix", "taps line": "a filter, weights by scalar loads",
    "taps square": "a convolution, weights by scalar loads", "taps nearest": "distances to five centres", "sums rows": "two launches, 64 lines an access, sums in memory",
    "sums chained": "two fills, then `sums rows` with one launch behind the other's sums", "product tiles": "64 lanes a tile, one factor by memory; waits as in ROCm's code object",
    "unfold unfold": "patches as columns", "unfold unfold_multiply": "two launches, tiles in LDS", "exchange fourier": "exchange by LDS", "bodies attract": "vector instructions",
    "chain over": "a launch a node",
}
# What is known of rows that are far off, by program and a regular expression of sizes. The first that fits is said.
OLDEST_LEAVES = "the clock's L1 drops what was read longest ago, so that all of it misses"
REASONS = (
    ("stencil2d", "", "compiled here, it waits for each load of its tile before the next; ROCm's compiler had 16 loads under way"),
    ("matrixmultiplication", "^(32|64|96|128|160|192|256|320|384)x", "compiled here, it waits once more a step than ROCm's compiler made it; own `product tiles`, which waits as theirs, is {own} at these sizes"),
    ("matrixmultiplication", "^1280x", "compiled here, it waits once more a step than ROCm's compiler made it; and at 1280 one matrix (6.5 MB) is more than a die's L2 (4.2 MB), of which the clock then lets nothing stay from the launch before: own `product tiles`, which waits as theirs, is {own} there"),
    ("spmv_csr_scalar", "^(1024x.*nnz32768|4096x.*nnz131072|16384x.*nnz524288|65536x.*nnz2097152|262144x.*nnz8388608)$", f"the rows of a workgroup are twice as much as L1 holds, and each step reads four bytes of every line: {OLDEST_LEAVES}"),
    ("matrixtranspose", "12288", "the clock has no TLB; and with --warm all 1.2 GB are in the last level cache, which holds 256 MB"),
    ("(bicg|atax)", "", "from 192 to 256 the GPU takes 1.7 times as long for atax and 2.0 times for bicg, and this clock 1.4 and 1.5 times; the ratio is low up to 1536, and higher from 2048 on. 256 rows are as many lines as L1 holds. Tried, and not in the clock: an L1 that keeps what is stored, and whose lines come whole at its rate, which nobody has published; it brings rows of 256 to 1536 to 0.67 to 0.93, and takes spmv_csr_scalar's of twice what L1 holds from 1.2 to 1.5"),
    ("kmeans", "(32|64)_clus", f"it reads as much as L1 holds, or more, five times: {OLDEST_LEAVES}"),
)
# label, run, size, figures of others in the unit of the row, source, the constant that is made of it or a word about one.
MT4G = "MT4G, MI300X"
TABLE = "sarchlab/mgpusim's MI300X table"
PROBES = (
    ("L1, 16 KB: cycles a step of a chase", "probes chase", "16", "116", MT4G, "memory.l1_latency"),
    ("L2, 1 MB: cycles a step", "probes chase", "1024", "287.5", MT4G, "memory.l2_latency"),
    ("last level cache, 64 MB: cycles a step", "probes chase", "65536", "–", "", "`memory.mall_latency` is guessed from a chase that others published (545), and from how far that source is below MT4G"),
    ("memory, 512 MB, twice what the last level cache holds: cycles a step", "cold probes chase", "524288", "900; half of all below 876", MT4G, "memory.memory_latency"),
    ("LDS: cycles a step", "probes lds", "4", "51.3", MT4G, "lds.latency"),
    ("scalar cache, 4 KB: cycles a step", "probes scalar", "4", "48; 68", f"{MT4G}; {TABLE}", "memory.scalar_latency"),
    ("L2 by scalar loads, 1 MB: cycles a step", "probes scalar", "1024", "182", TABLE, ""),
    ("last level cache by scalar loads, 64 MB: cycles a step", "probes scalar", "65536", "419", TABLE, ""),
    ("an atomic that returns, one lane: cycles", "probes atomic", "1", "382", "a public table of benchmarks, MI300X; it does not show its kernels", ""),
    ("an atomic that returns, 14,592 lanes at one address: cycles", "probes atomic", "14592", "1937", "that table of benchmarks; it does not say how many lanes", ""),
    ("an atomic that returns, 524,288 lanes at one address: cycles", "probes atomic", "524288", "162,800", TABLE, ""),
    ("64 MB read from the last level cache: TB/s, launch and all", "probes read", "64", "5.8", MT4G, "memory.mall_rate"),
    ("512 MB read from memory: TB/s, launch and all", "cold probes read", "512", "4.0; 4.1", f"{MT4G}; BabelStream, MI300X", "`memory.memory_rate` is made of BabelStream's"),
    ("512 MB written to memory: TB/s, launch and all", "cold probes write", "512", "4.4", MT4G, "none; the clock has one rate for both ways"),
    ("an empty launch between events: microseconds", "probes launches", "1", "3.2 to 3.6", TABLE, f"the event cost, {EVENT_COST}, is made of it"),
    ("two empty launches between events: microseconds", "probes launches", "2", "–", "", "`launch.dependent` is in it"),
)
# Attention that others have timed, and that stands on no page yet: what, figures of others, source, why there is no prediction.
NOT_RUN = (
    ("FlyDSL's two kernels of the table above", "[ROCm/FlyDSL#1155](https://github.com/ROCm/FlyDSL/pull/1155)", "FlyDSL compiles them from sources that this tree does not hold; an earlier one, written down by hand, is in "
     "[timing-model.md](timing-model.md#flydsls-dual-wave-attention)"),
    ("CK's forward attention, fp16, 24 heads, head dim 128: 85.3 TFLOPS at 1,024 keys, 100.7 at 4,096, 107.4 at 12,288", "[ROCm/rocm-libraries#5798](https://github.com/ROCm/rocm-libraries/pull/5798)", "CK's gfx12 code objects are in no package; [predicted_rdna4.md](../bench/predicted_rdna4.md#forward-attention) has own kernels of these shapes"),
    ("paged decode: 8, 12 and 31 µs at 1,024, 4,096 and 16,384 keys", "[vllm-project/vllm#58156](https://github.com/vllm-project/vllm/pull/58156)", "it ran on gfx1100, which is no target here"),
)


def read_table(file: pathlib.Path) -> tuple[str, list[dict]]:
    """What the first line says, "clock <id>" of predictions, and the rows."""
    lines = file.read_text(encoding="utf-8").splitlines()
    names, *rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return lines[0].removeprefix("# ").removeprefix("clock "), [dict(zip(names, row, strict=True)) for row in rows]


def is_time(text: str) -> bool:
    return re.fullmatch(r"\d+\.\d+", text) is not None


def constant_of(row: dict) -> str:
    """The constant that was made of a row, so that it is no evidence."""
    if row["program"] in STREAMS and row["kind"] == "memory":
        return "transfer rate"
    return "launch.dependent" if row["program"] == "floydwarshall" else ""


class Pair:
    """A prediction beside a measured time."""

    def __init__(self, row: dict, run: str, predicted: str):
        self.program, self.size, self.kind, self.run = row["program"], row["size"], row["kind"], run
        self.least, self.mean, self.predicted = float(row["least"]), float(row["mean"]), float(predicted)
        self.ratio, self.constant = self.predicted / self.least, constant_of(row)

    def reason(self, own: list["Pair"]) -> str:
        """What is known; {own} in it is the ratio of own programs beside the same program: at all sizes that the reason is of."""
        sizes, why = next(((sizes, why) for program, sizes, why in REASONS if re.fullmatch(program, self.program) and re.search(sizes, self.size)), ("", "not known"))
        ratios = [pair.ratio for pair in own if pair.program == self.program and re.search(sizes, pair.size)]
        return why.replace("{own}", " to ".join(sorted({f"{min(ratios):.2f}", f"{max(ratios):.2f}"})) if ratios else "not run")


def figures(pairs: list[Pair]) -> tuple[float, float, float, float]:
    ratios = [pair.ratio for pair in pairs]
    within = [sum(abs(ratio - 1) <= part for ratio in ratios) / len(ratios) for part in (0.2, 0.5)]
    return statistics.median(ratios), *within, statistics.pstdev(math.log2(ratio) for ratio in ratios)


def pairs_of_originals(data: pathlib.Path) -> list[Pair]:
    measured = {(row["program"], row["size"]): row for row in read_table(data / "measured.tsv")[1]}
    return [Pair(measured[row["program"], row["size"]], "", row["predicted"]) for row in read_table(data / "originals.tsv")[1] if is_time(row["predicted"])]


def ratios_by_kind(pairs: list[Pair]) -> list[dict]:
    """Predicted ÷ measured, of rows that no constant was made of: what docs/timing-model.md prints."""
    rows = []
    for kind in KINDS:
        scored = [pair for pair in pairs if pair.kind == kind and not pair.constant]
        ratios = [pair.ratio for pair in scored]
        rows.append({"kind": kind, "rows": str(len(scored)), "median": f"{statistics.median(ratios):.2f}", "least": f"{min(ratios):.2f}", "most": f"{max(ratios):.2f}", "spread": f"{figures(scored)[3]:.2f}"})
    return rows


def score_row(what: str, pairs: list[Pair]) -> str:
    if not pairs:
        return f"| {what} | 0 | – | – | – | – |"
    median, near, far, spread = figures(pairs)
    return f"| {what} | {len(pairs)} | {median:.2f} | {near:.0%} | {far:.0%} | {spread:.2f} |".replace("%", " %")


def table(head: str, rows: list[str]) -> str:
    return "\n".join([head, re.sub(r"[^|]+", "---", head), *rows])


def weighted(pairs: list[Pair]) -> float:
    """Mean error, weighted by the measured mean: what MGPUSim's authors quote."""
    return sum(abs(pair.predicted - pair.mean) for pair in pairs) / sum(pair.mean for pair in pairs)


def scores(groups: list[tuple[str, list[Pair]]]) -> str:
    rows = []
    for name, pairs in groups:
        rows += [score_row(name, pairs), score_row(f"{name}, rows that no constant was made of (parts of the memory model were: below)", [pair for pair in pairs if not pair.constant]),
                 score_row(f"{name}, {4 * EVENT_COST:.1f} µs and longer", [pair for pair in pairs if pair.least >= 4 * EVENT_COST])]
        for kind in KINDS:
            of_kind = [pair for pair in pairs if pair.kind == kind]
            rows.append(score_row(f"{name}, {kind}", of_kind))
            if any(pair.constant for pair in of_kind):
                rows.append(score_row(f"{name}, {kind}, rows that no constant was made of", [pair for pair in of_kind if not pair.constant]))
    rows.append("| originals, by the clock of 28 November 2026 (bf4eb831), before rows were looked at, with an event cost of 3.1 µs, which eight rows gave; nothing else in it was made with these rows | 253 | 1.05 | 53 % | 84 % | 0.54 |")
    near, far, spread = GOALS
    rows.append(f"| goal | | | {near:.0%} | {far:.0%} | {spread} |".replace("%", " %"))
    rows.append(f"| second goal; the originals have {figures(groups[-1][1])[1]:.1%} within ±20 % | | | 75 % | 95 % | 0.30 |".replace("% w", " % w"))
    return table("| predicted ÷ measured | rows | median | within ±20 % | within ±50 % | spread (log2) |", rows)


def by_program(groups: list[tuple[str, list[Pair]]]) -> str:
    rows = []
    for program in dict.fromkeys(pair.program for _, pairs in groups for pair in pairs):
        cells = []
        for _, pairs in groups:
            ratios = [pair.ratio for pair in pairs if pair.program == program]
            cells.append(f"{len(ratios)} | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f}" if ratios else "– | – | –")
        run = next((pair.run for pair in groups[0][1] if pair.program == program), "")
        rows.append(f"| {program} | {f'`{run}`: {PATTERNS[run]}' if run else '–'} | {' | '.join(cells)} |")
    head = "| program | own program of its pattern |" + "".join(f" {name}: rows | median | from, to |" for name, _ in groups)
    return table(head, rows)


def worst(groups: list[tuple[str, list[Pair]]]) -> str:
    pairs = sorted((pair for _, pairs in groups[-1:] for pair in pairs), key=lambda pair: -abs(math.log2(pair.ratio)))[:10]
    return table("| program | size | measured, µs | predicted | ratio | what is known |",
                 [f"| {pair.program} | {pair.size} | {pair.least:.1f} | {pair.predicted:.1f} | {pair.ratio:.2f} | {pair.reason(groups[0][1])} |" for pair in pairs])


def word_about(constant: str) -> str:
    if not re.fullmatch(r"[a-z_0-9]+[.][a-z_0-9]+", constant):
        return constant or "none"
    return f"`{constant}` is {'fitted to' if constant.endswith('latency') else 'made of'} it"


def probes(own: dict) -> str:
    rows = []
    for label, run, size, others, source, constant in PROBES:
        microseconds = float(own[run, size])
        if run.endswith(("read", "write")):
            value = f"{int(size) * 2**20 / microseconds / 1e6:.1f}"
        else:
            value = f"{microseconds:.2f}" if run.endswith("launches") else f"{microseconds * GHZ * 1e3:.0f}"
        rows.append(f"| {label} | {value} | {others} | {source} | {word_about(constant)} |")
    return table("| probe | clock | others | source | constant |", rows)


def streams(own: dict) -> str:
    """Why streams of the table stay below the rates that they are made of: their time has a launch in it."""
    launch = float(own["probes launches", "1"])

    def without_launch(run: str, size: str, first_line: tuple[str, str]) -> tuple[float, float, float]:
        way = float(own[first_line])
        rest = float(own[run, size]) - launch - way
        return way, rest, int(size) * 2**20 / rest / 1e6

    way, rest, rate = without_launch("probes read", "64", ("probes chase", "65536"))
    return f"""**Streams have a launch in their time.** 64 MB take {float(own["probes read", "64"]):.2f} µs. An empty launch between events takes {launch:.2f} of these, and the first line's way from the last level cache another {way:.2f} ({way * GHZ * 1e3:.0f} cycles).
The remaining {rest:.2f} µs are {rate:.1f} TB/s, beside MT4G's 5.8, of which `memory.mall_rate` is made. Without the launch and the first line's way 512 MB are read at {without_launch("cold probes read", "512", ("cold probes chase", "524288"))[2]:.1f} TB/s, as they must: `memory.memory_rate` is made of BabelStream's figure.
The clock has one rate of memory for both ways, so that it writes no faster than it reads. MT4G wrote at 4.4 TB/s, a tenth faster than it read, and no constant of the clock says so."""


def attention(tree: pathlib.Path) -> str:
    """Kernels whose published figure is a speed, or a share of time that matrix pipes work; as ratios of times."""
    errors = json.loads((tree / "src/simgpu/checkers/clock/model_error.json").read_text(encoding="utf-8"))
    names = {"whole_kernels": "whole kernels (AITER, Triton, loops of known mixes): how busy matrix pipes are", "real_kernels": "real kernels (AITER, Triton): throughput at the power limit",
             "single_wave_duty": "loops of a wave, matrix and vector: how busy matrix pipes are", "quoted": "whole and real kernels: the error that other pages quote"}
    return table("| kind | figures | predicted ÷ measured: from | to |",
                 [f"| {name} | {errors[kind]['anchors']} | {1 / (1 + float(errors[kind]['too_high_percent']) / 100):.2f} | {1 / (1 - float(errors[kind]['too_low_percent']) / 100):.2f} |" for kind, name in names.items()])


def one_card(tree: pathlib.Path) -> str:
    """AITER's kernel beside its own times by length: whatever the engine clock was, it is the same in each row at the power limit."""
    _, found = read_table(tree / "bench/silicon/attention.tsv")
    ghz = {row["keys"]: int(row["cycles"]) / float(row["aiter"]) / 1e3 for row in found}
    rows = [f"| {row['keys']} | {row['flexible']} | {row['flash']} | {row['aiter']} | {row['cycles']} | {ghz[row['keys']]:.3f} | {ghz[row['keys']] / ghz['8192']:.2f} |" for row in found]
    return table("| keys | FlyDSL, flexible: µs | FlyDSL, flash | AITER | AITER's cycles, predicted | GHz that makes them equal | predicted ÷ measured, if 8,192 keys are 1 |", rows)


def at_the_power_limit(tree: pathlib.Path) -> float:
    """Predicted ÷ measured of one_card's row of 8,192 keys, if that card ran at its power limit: by the law of timing-model.md."""
    law = (tree / "docs/timing-model.md").read_text(encoding="utf-8")
    idle, slope, delivered = (float(re.search(rf"^\| power.{name} \| ([\d.]+) \|", law, re.MULTILINE)[1]) for name in ("idle", "slope", "delivered"))
    kernels = json.loads((tree / "bench/aiter_anchors.json").read_text(encoding="utf-8"))
    busy = next(row["steady_matrix_busy"] for row in kernels if (row["target"], row["mask"], row["keys"]) == ("gfx950", "full", 8192))
    row = next(row for row in read_table(tree / "bench/silicon/attention.tsv")[1] if row["keys"] == "8192")
    return int(row["cycles"]) / (delivered * (idle - slope * 100 * busy)) / float(row["aiter"])


def untried(alone: list[dict], chosen: list[dict]) -> str:
    """How many rows of each kind are no row of the score."""
    names = {(row["program"], row["size"]) for row in chosen}
    kinds = [row["kind"] for row in alone if (row["program"], row["size"]) not in names]
    return ", ".join(f"{kinds.count(kind)} of {kind}" for kind in KINDS if kind in kinds)


def every_row(measured: list[dict], groups: list[tuple[str, list[Pair]]]) -> str:
    found = [{(pair.program, pair.size): pair for pair in pairs} for _, pairs in groups]
    rows = []
    for row in measured:
        pairs = [pairs.get((row["program"], row["size"])) for pairs in found]
        if any(pairs):
            cells = " | ".join(f"{pair.predicted:.2f} ({pair.ratio:.2f})" if pair else "–" for pair in pairs)
            rows.append(f"| {row['program']} {row['size']} | {row['kind']} | {row['least']} | {cells} | {constant_of(row)} |")
    return table("| row | kind | measured | " + " | ".join(name for name, _ in groups) + " | no evidence: this is made of it |", rows)


def page(tree: pathlib.Path) -> str:
    data = tree / "bench/silicon"
    _, measured = read_table(data / "measured.tsv")
    clock, own = read_table(data / "own.tsv")
    originals_clock, originals = read_table(data / "originals.tsv")
    by_name = {(row["program"], row["size"]): row for row in measured}
    alone = [row for row in measured if row["kind"] in KINDS]
    own_pairs = [Pair(by_name[row["beside"], row["size"]], row["run"], row["predicted"]) for row in own if row["beside"] != "probe"]
    chain, held_out = ([pair for pair in own_pairs if pair.program == program] for program in ("floydwarshall", "heteromark_fir"))
    groups = [("own programs", [pair for pair in own_pairs if pair.kind in KINDS])]
    ran = [row for row in originals if is_time(row["predicted"])] if originals_clock == clock else []
    if ran:
        groups.append(("originals", pairs_of_originals(data)))
    own_times = {(row["run"], row["size"]): row["predicted"] for row in own}
    left_out = [row for row in originals if not is_time(row["predicted"])]
    of_originals = (f"{len(ran)} of {len(originals)} chosen rows of the originals ran" + (f" ({len(left_out)} did not: {'; '.join(sorted({row['predicted'] for row in left_out}))})" if left_out else "")
                    if ran else f"**The originals were not run on this clock** ({clock}; last on {originals_clock})")
    last = groups[-1]
    of_transfer_rate = sum(pair.constant == "transfer rate" for pair in last[1])
    nodes = [int(pair.size.split("_")[0]) for pair in chain]
    steps = "; ".join(f"{(b.predicted - a.predicted) / (to - start):.2f} µs from {start} to {to} nodes (measured {(b.least - a.least) / (to - start):.2f})"
                      for a, b, start, to in zip(chain, chain[1:], nodes, nodes[1:]))
    text = f"""# The clock beside measured times

**No row of the score has a matrix instruction, LDS DMA, an atomic or the power limit in it: what attention does most is judged [elsewhere](#attention).** {of_originals}. \
{len(alone)} of {sum(row['kind'] != 'held out' for row in measured)} measured rows are of kernels alone, and {len(groups[0][1])} of these have a program of the same pattern in this tree. A row that did not run is in no figure.

**Ratios are predicted ÷ measured time:** 1.20 says that the clock takes a fifth longer than the GPU did, 0.80 that it takes a fifth less. A row is within ±20 % if its ratio is 0.80 to 1.20, and within ±50 % if it is 0.50 to 1.50\
{f"; {sum(2 / 3 <= pair.ratio <= 1.5 for pair in last[1]) / len(last[1]):.1%} of the {last[0]} are between 2/3 and 3/2".replace("%", " %")}.

Made by `./dev bench silicon`; `./dev test` holds the page against its tables ([bench/silicon](../bench/silicon)) and runs the first row of each own program again (within 1 %); a longer test runs every row (within 2 %), and fails where the clock's code is another. Predictions of the score come from a simulated GPU ({BOARD}, an MI300A, with
`wavejit sim --cycles --warm --event-cost {EVENT_COST}`; clock {clock}, a hash of its sources). Others measured the times beside them: sarchlab/mgpusim (MIT), d01e70d5, `gpu_perf_scripts/mi300a.csv`, the least of 51 runs of 22 HIP programs. Other tables name their GPU and source.

* **Own programs** ([bench/silicon](../bench/silicon)) have the access patterns, workgroups and sizes of the originals, and other code: a row says how far the clock is off together with how far the programs differ.
* **Originals** are 16 of those 22 programs themselves, the ones that time kernels alone, compiled by clang 22 (theirs: ROCm's) from a clone that this tree does not hold: `./dev bench silicon <clone>`. The rows chosen are the smaller ones, of up to a
  minute of processor time each; the {len(alone) - len(originals)} larger ones were not tried: {untried(alone, originals)}. On these the GPU's rates fall, of transposes to 0.4 TB/s, and the clock has one rate of memory and no TLB: the score says nothing of such sizes.
* Rows that took less than 6 µs are **launch**; streams, copies, transposes, stencils and transforms that move 16 MB and more, both ways together, are **memory**; nbody is **compute**; all others are **cache**, whatever they move. Programs with copies from and to the host inside their times ({sum(row['kind'] == 'host copies' for row in measured)} rows) and
  the copies themselves ({sum(row['kind'] == 'link' for row in measured)}) are no test of the clock; of these, bfs, bitonicsort, fastwalshtransform, nw and pagerank have no program of their pattern here.

## The score

Spread is the standard deviation of log2 of the ratios: 0.29 is a factor of 1.22 up or down.

{scores(groups)}

Others publish these errors of their simulators:

| simulator | error | on | source |
|---|---|---|---|
| MGPUSim | 16.4 %, weighted by time | 206 rows of 19 programs of this MI300A, by which it was calibrated; its own rows in d01e70d5 (61, an earlier state): median 1.28, 28 % within ±20 %, 72 % within ±50 %, spread 0.66 | [#260](https://github.com/sarchlab/mgpusim/pull/260), `comparison_m9.1_v2.csv` |
| MGPUSim | cache latencies 32 %, fp32 throughput 10 to 18 %, an empty kernel 1 to 44 % | 8,522 configurations of an MI300X | [#286](https://github.com/sarchlab/mgpusim/pull/286) |
| rocjitsu | not public: spread of log2, and a tolerance of 20 % | some 300 PyTorch and Triton cases, MI355X | [its pages on timing](https://github.com/ROCm/rocm-systems/tree/develop/emulation/rocjitsu) |
| this clock | {weighted(last[1]) * 100:.1f} %, weighted by time | {len(last[1])} rows, {last[0]}, beside the measured mean as MGPUSim's | this page |

## Rows that are no evidence

* **The event cost** of {EVENT_COST} µs is made of no row here. Others timed launches without work on an MI300X, between two events, at 3.2 to 3.6 µs ([below](#probes)); this clock predicts {float(own_times['probes launches', '1']) - EVENT_COST:.2f} µs of that, and the rest of the middle, 3.4, is the event cost.
  It is in every row, and a quarter at most of rows of {4 * EVENT_COST:.1f} µs and longer. Until 30 November 2026 it was 3.1 µs, the median of what the clock of bf4eb831 did not predict in eight rows, vectoradd and relu up to 8,192 elements. Whoever changed it knew that 2.7 to 3.1 µs all bring more rows within ±20 % than 3.1 did.
* **The transfer rate** of a die, to and from the last level cache and memory (`memory.mall_rate`), is made of the figure of MT4G, a public tool that measures the caches of a GPU, and of streams of 17 to 134 MB. So the `memory` rows of {', '.join(STREAMS)} ({of_transfer_rate} here) are no evidence: no stream is. What is left of `memory` are stencils and transforms.
* **`launch.dependent`** is made of floydwarshall's and bitonicsort's times by length. Neither is scored.
  floydwarshall has a launch a node, so that the difference of two sizes says what one more launch takes. By own `chain over` it takes {steps}.
* **`launch.workgroup`**, 6.1 cycles of a die for each workgroup that begins, is the slope of floydwarshall's launches over their workgroups, from 512 to 4,096 nodes: 5.6 to 6.7, and 6.0 to 6.1 from 1,024 on. Rows of simpleconvolution and relu, which it brings closer, led to it, and it was not made of them.
* **No row of the MI300A is held out any more.** After bf4eb831 the model of memory was changed where rows were off, those in brackets: it chooses sets of caches by mixed bits (kmeans), keeps L2 warm between launches (matrixmultiplication), gives each workgroup lines of its own (vectoradd), has a scalar cache (fir, simpleconvolution, nbody), lets a die's workgroups fill L2 together (spmv_csr_scalar), ends a launch with its last workgroup where all run at once (fft1D_512), begins workgroups one after the other (simpleconvolution, relu), lets the last round of workgroups have memory to itself (matrixtranspose), has an L1 of four sets, as AMD's Wave says (kmeans), looks for the lines of both workgroups of a compute unit (matrixmultiplication), and lets nobody have a line before it has come (none). Latencies are MT4G's, not of these rows.

## By program

{by_program(groups)}

The ten that are furthest off ({last[0]}):

{worst(groups)}

## Probes

Probes are own programs ([probes.hip](../bench/silicon/probes.hip)) on a simulated MI300X with all its compute units, at {GHZ} GHz. Rows of memory run cold, all others with what they read in the last level cache. Where a constant is made of the figure, agreement says that the model adds up, and no more.

{probes(own_times)}

{streams(own_times)}

The table is `gpu_perf_scripts/calibration/mi300x_ground_truth.csv` of 7155c64f (MIT), which gives no more of its programs than names. Its figures above were worked out from its times: `cache_latency` has 131,072 steps or four laps; it walks by scalar loads, because
its first level ends at 16 KB, and each step has its loop's arithmetic in it. So its 182 and 419 cycles are of other instructions than the clock's. `atomic_operations` has 2,048 workgroups of 256 lanes and takes 77.5 µs a step, 20 cycles for each wave: LLVM made one atomic of a wave's, all of them at one address. Empty launches are those of
`int32_throughput` with one workgroup: a line through its lengths says what no work at all would take.

**Atomics at one address wait for each other, and the clock does not know it.** No row of the score has one.

Nothing else of that table (8,522 rows in its last version) was used but a filter of 64 taps (`heteromark_fir`, means of three runs). No part and no constant of the clock was made with it: these rows are **held out**, though MI300A rows of such a filter led to the scalar cache. Own `taps line` stands beside them, on {PRODUCT}:

{table("| elements | measured, µs | predicted | ratio |", [f"| {pair.size.split('_')[0]} | {pair.least:.1f} | {pair.predicted:.1f} | {pair.ratio:.2f} |" for pair in held_out])}

## Attention

[timing-model.md](timing-model.md#the-error-to-quote) has each figure for AITER's, Triton's and FlyDSL's kernels and for loops, with its source, and those of barriers, toggles and deletions. Published speeds, and shares of busy time, are ratios of times here:

{attention(tree)}

FlyDSL's authors timed three kernels on one card (gfx950, batch 2, 32 heads, head dim 128, no mask). AITER's code object, from its package, was predicted by this clock. By the law of the power limit ([timing-model.md](timing-model.md#the-clock-at-the-power-limit)) rows of 4,096 keys and more come out at {at_the_power_limit(tree):.2f} of the measured time; HipKittens measured AITER's kernel a quarter faster than these authors did. Which card and which limit theirs was is not told, so the last column compares rows with each other only. Their row of 32,768 keys is left out: its prediction takes too long for a test. At what engine clock shorter rows ran is not published; no event cost is added here.

{one_card(tree)}

These were not run:

{table("| what | source | why not |", [f"| {what} | {source} | {why} |" for what, source, why in NOT_RUN])}

## Every row

Microseconds; in brackets predicted ÷ measured.

{every_row(measured, groups)}
"""
    return text
