# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many problems, each against float64: what `wavejit sweep` does, as objects (docs/sweep.md)."""
from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from . import _offline, _program, _progress
from ._errors import InvalidArgument
from ._progress import Progress

# "[3/8] ok     generic …"
_DONE = re.compile(r"\[(\d+)/(\d+)\] ((\S+).*)")
_VERDICTS = ("ok", "FAILED", "aside")


@dataclass(frozen=True)
class SweepOutcome:
    """One problem on one pipeline, and how far its result was from float64.

    "of bound": as a part of what is allowed, 1 is the limit. Errors are of the first schedule's results.

    >>> import wavejit
    >>> (outcome,) = wavejit.sweep("softmax_lse fp32 b1 h1 q1 k64", device="sim:gfx950").outcomes
    >>> outcome.descriptor, outcome.verdict, outcome.ran, outcome.elements_out_of_bound
    ('softmax_lse fp32 b1 h1 q1 k64', 'ok', 'whole', 0)
    """

    line: int
    """The number of the descriptor among those that were given, from 1."""
    descriptor: str
    pipeline: str
    """As asked for, "default" if it was not."""
    verdict: str
    """One of "ok", "FAILED" and "aside": it did not run."""
    reason: str
    """What did not pass, or why it did not run."""
    kernel_spec: str
    key: str
    ran: str
    """All of it ("whole"), or which part ran."""
    schedules: str
    """Wave schedules of the simulated GPU, with blanks between."""
    rows: int
    rows_compared: int
    max_error: float
    error_of_bound: float
    """The largest of all elements, each against its own bound."""
    error_of_bound_at: str
    elements_out_of_bound: int
    row_rms_of_expected: float | None
    """The worst row's error over what rounding leads to expect, 1. None: the family has no such expectation (gradients)."""
    rms_of_largest: float
    """The RMS error of all elements in units of the largest expected one: what `--limits rocmlir` goes by."""
    least_row_cosine: float
    rows_out_of_bound: int
    lse_error: float
    lse_error_of_bound: float
    lse_out_of_bound: int
    not_finite_exact: int
    not_finite_result: int
    compile_ms: float
    """0: the kernel was there."""
    run_ms: float
    """The host's time; on a simulated GPU the simulation is part of it."""
    reference_ms: float

    @property
    def ok(self) -> bool:
        """Whether it ran and passed."""
        return self.verdict == "ok"


@dataclass(frozen=True)
class NotUnderstood:
    """A line that is no problem: its number from 1, its text, and why.

    >>> import wavejit
    >>> reason = wavejit.sweep("softmax", device="sim:gfx950").not_understood[0].reason
    >>> reason.partition(";")[0], reason.endswith("(did you mean 'softmax_lse'?)")
    ("descriptor: word 1 'softmax' (column 1)", True)
    """

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class SweepResult:
    """What became of every problem of a sweep; a table in a notebook.

    >>> import wavejit
    >>> swept = wavejit.sweep("softmax_lse fp32 b1 h1 q1 k64", device="sim:gfx950")
    >>> swept.outcomes[0].rows_compared, swept.outcomes[0].error_of_bound < 1
    (1, True)
    """

    device_name: str
    target: str
    passed: int
    failed: int
    set_aside: dict[str, int]
    """Reason and how many did not run for it: not supported, too much memory, …"""
    seconds: float
    outcomes: list[SweepOutcome]
    not_understood: list[NotUnderstood]

    @property
    def ok(self) -> bool:
        """Whether something passed, nothing failed, and every line was understood. What was set aside beside it does not count."""
        return self.passed > 0 and self.failed == 0 and not self.not_understood

    @property
    def worst(self) -> SweepOutcome | None:
        """The outcome that came closest to its bound, or furthest beyond it."""
        return max((outcome for outcome in self.outcomes if outcome.rows_compared), key=lambda outcome: outcome.error_of_bound, default=None)

    def __str__(self) -> str:
        return (f"{self.device_name}: {self.passed} passed, {self.failed} failed, {sum(self.set_aside.values())} set aside, "
                f"{len(self.not_understood)} lines not understood, in {self.seconds:.1f} s")

    def _repr_html_(self) -> str:
        head = ("", "problem", "pipeline", "max error", "of bound", "row RMS", "LSE error", "run")
        rows = [(outcome.verdict, outcome.descriptor, outcome.pipeline, *_figures(outcome)) for outcome in self.outcomes]
        rows += [("?", line.text, "", line.reason, *[""] * 4) for line in self.not_understood]
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return f"<p>{html.escape(str(self))}</p><table><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>{body}</table>"


def _figures(outcome: SweepOutcome) -> tuple[str, ...]:
    if not outcome.rows_compared:
        return (outcome.reason, "", "", "", "")
    return (f"{outcome.max_error:.3g}", f"{outcome.error_of_bound:.0%}", "-" if outcome.row_rms_of_expected is None else f"{outcome.row_rms_of_expected:.2f}", f"{outcome.lse_error:.2g}",
            f"{outcome.run_ms:.0f} ms")


def sweep(descriptors: Iterable[str] | str | None = None, *, device: str | None = None, pipelines: Iterable[str] | str = (),
          schedules: Iterable[str] | str = (), check: bool = False, filter: str | None = None, up_to_keys: int | None = None,
          beyond_keys: int | None = None, shard: tuple[int, int] | None = None, sample: float | str | None = None,
          memory_budget: int | str | None = None, csv: str | os.PathLike[str] | None = None, progress: Progress | bool | None = None,
          **options: Any) -> SweepResult:
    """Runs problems on a device and compares each result, element by element, with attention in float64.

    It is the program of the package, `wavejit sweep`, in a process of its own: the GIL is free meanwhile, an interrupt ends
    it, and a crash is an exception. docs/sweep.md has the bounds.

    descriptors
        Lines such as "attention_forward bf16 b1 q64 k256 h8/2 d128 causal". None: the published list, which takes minutes.
    device
        "sim:gfx950", "hip", …; WAVEJIT_DEVICE's by default.
    pipelines, schedules
        One or several of "auto", "generic", "dualwave", "interleaved"; of "in_order", "reverse", "random" (simulated devices
        only, with ":<seed>" or without). The bits must be the same under all.
    check
        Simulated devices only: under every check, with results as late as they may arrive. A finding is a failure.
    filter, up_to_keys, beyond_keys, shard
        Only problems whose descriptor the regular expression finds; of at most, or more than, this many keys; part P of N,
        (1, 12).
    sample
        Problems of up to this many multiplications (2e9) run whole, of longer ones chosen workgroups; "all": everything.
    memory_budget
        Bytes, or "12G": problems that take more device memory are set aside. Half of the host's memory by default.
    csv
        A file that gains a row of every figure as each problem ends.
    progress
        A function that gets a dict after each problem (done, total, line: a row of the table, verdict: "ok", "FAILED",
        "aside" or None for a line that is no problem). True: a bar, if tqdm is installed. What it raises ends the sweep.
    options
        By an engine's names, as Engine takes them.

    Problems that fail are in the result, not raised. Raises InvalidArgument for a value that cannot be right, NoDevice,
    IoError for `csv`, CompileFailed, DeviceError.

    >>> import wavejit
    >>> swept = wavejit.sweep(["softmax_lse fp32 b1 h1 q1 k64", "softmax_lse of nothing"], device="sim:gfx950")
    >>> swept.passed, swept.failed, swept.not_understood[0].line, swept.ok
    (1, 0, 2, False)
    """
    return swept(descriptors, None, {"device": device, "pipelines": pipelines, "schedules": schedules, "check": check, "filter": filter,
                                     "up_to_keys": up_to_keys, "beyond_keys": beyond_keys, "shard": shard, "sample": sample,
                                     "memory_budget": memory_budget, "csv": csv, "progress": progress, **options})


def swept(descriptors: Iterable[str] | str | None, of_engine: Mapping[str, str] | None, given: dict[str, Any]) -> SweepResult:
    """The same with the options of an engine beneath what is given: words of `sweep` and options."""
    words, lines, progress = ["sweep"], None, given.pop("progress", None)
    if descriptors is not None:
        lines = _offline.lines_of(descriptors)
        if not lines or any("\n" in line for line in lines):
            raise InvalidArgument("descriptors: none, or one of several lines; accepted: lines of text, or None for the published list")
        words += ["--list", "-"]
    for field, flag in (("pipelines", "--pipeline"), ("schedules", "--schedule")):
        words += [f"{flag}={text}" for text in _offline.texts_of(field, given.pop(field, ()), "names")]
    if given.pop("check", False):
        words.append("--check")
    for name in ("filter", "up_to_keys", "beyond_keys", "shard", "sample", "memory_budget", "csv"):
        value = given.pop(name, None)
        if isinstance(value, (tuple, list)):
            value = "/".join(map(str, value))
        if value is not None:
            words.append(f"--{name.replace('_', '-')}={value}")
    with _progress.told(progress, "sweep", "problem") as told:

        def take(line: str) -> bool:
            done = _DONE.fullmatch(line)
            if done is None:
                return False
            if told is not None:
                told({"done": int(done[1]), "total": int(done[2]), "line": done[3], "verdict": done[4] if done[4] in _VERDICTS else None})
            return True

        # Exit code 1: a problem failed; 2: a line is none; 4: nothing ran. They have an answer, except where it could not begin.
        json = _program.answer(_program.command(words, given, of_engine), (0, 1, 2, 4), None if lines is None else "\n".join(lines) + "\n", take)
    return SweepResult(device_name=json["device_name"], target=json["target"], passed=json["passed"], failed=json["failed"], set_aside=json["set_aside"],
                       seconds=json["seconds"], outcomes=[_outcome(one) for one in json["outcomes"]],
                       not_understood=[NotUnderstood(**line) for line in json["lines_not_understood"]])


def _outcome(json: dict[str, Any]) -> SweepOutcome:
    # JSON has no infinities: they are words there.
    figures: dict[str, Any] = {field.name: float(json[field.name]) if field.type == "float" else json[field.name] for field in fields(SweepOutcome)}
    return SweepOutcome(**figures)
