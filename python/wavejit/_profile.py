# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a kernel's time goes, as a simulated GPU predicts it: what `wavejit profile` and `compare` do, as objects."""
from __future__ import annotations

import html
import os
import pathlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _offline, _program
from ._calls import Call
from ._errors import InvalidArgument


@dataclass(frozen=True)
class Waited:
    """An instruction before which waves waited long, or a cluster of them (first to last, between jumps and barriers).

    `waits`: the part of all waves' time by cause; `total` their sum.

    >>> import wavejit
    >>> profile = wavejit.profile("softmax_lse fp32 b1 h1 q1 k64", device="sim:gfx950")
    >>> longest = profile.longest.longest_waits[0]
    >>> longest.text[:2], max(longest.waits, key=longest.waits.get)
    ('s_', 'vector memory')
    """

    offset: int
    """Bytes from the kernel's beginning; of a cluster its first instruction's."""
    text: str
    """Disassembly; empty for a cluster."""
    kind: str
    """As in `Launch.issued`: matrix, load, wait, …; empty for a cluster."""
    waits: dict[str, float]

    @property
    def total(self) -> float:
        """Part of all waves' time."""
        return sum(self.waits.values())


@dataclass(frozen=True)
class Launch:
    """One kernel's launch. Parts are of 0 to 1; `json` has everything that the program told of it (docs/profile.md).

    >>> import wavejit
    >>> profile = wavejit.profile("softmax_lse fp32 b1 h1 q1 k64", device="sim:gfx950")
    >>> (launch,) = profile.launches
    >>> launch.kernel, launch.grid, launch.spilled_bytes
    ('softmax_lse_fp32_fp32_resident_vectors_gfx950', (1, 1, 1), 0)
    >>> 0 < launch.waits["vector memory"] < 1, launch.issued["transcendental"] > 0
    (True, True)
    """

    kernel: str
    target: str
    cycles: int
    """Predicted, of the whole grid."""
    cycles_before: int
    """What it waits for the launch before it: a guess; 0 for the first."""
    grid: tuple[int, ...]
    """Workgroups."""
    waves_of_workgroup: int
    matrix_busy: float
    """Part of the whole device's time in which matrix pipes are busy."""
    steady_matrix_busy: float
    """The same in the middle half of a sampled compute unit's time."""
    busy: dict[str, float]
    """Part of a sampled compute unit's time, by unit: matrix pipe, vector port, LDS, vector memory, scalar."""
    waits: dict[str, float]
    """Part of waves' time by what they waited for: barrier, LDS, vector memory, matrix pipe, …; the rest is `issuing`."""
    idle: dict[str, float]
    """Part of SIMDs' time in which neither matrix pipe nor vector port worked, by what the foremost wave waited for."""
    issued: dict[str, int]
    """Instructions that sampled waves issued, by kind: matrix, plain, transcendental, load, …"""
    written: dict[str, int]
    """Instructions of the kernel's code, by kind."""
    instructions: int
    code_bytes: int
    vgprs: int
    agprs: int
    sgprs: int
    lds_bytes: int
    spilled_bytes: int
    """A lane's."""
    resident_workgroups: int
    """On a compute unit at once."""
    limited_by: str
    """What allows no more of them: registers, LDS, …"""
    longest_waits: list[Waited]
    clusters: list[Waited]
    json: dict[str, Any] = field(repr=False)

    @property
    def issuing(self) -> float:
        """Part of waves' time in which they waited for nothing."""
        return max(0.0, 1.0 - sum(self.waits.values()))


@dataclass(frozen=True)
class ModelError:
    """How far the clock was off: in percent for whole kernels that no constant of it was taken from. `programs` has launches without matrix
    instructions, by what takes their time ("kind"): how many ("rows"), and predicted over measured time ("median", "least", "most").
    `text` says what fits the profile.

    >>> import wavejit
    >>> profile = wavejit.profile("softmax_lse fp32 b1 h1 q1 k64", device="sim:gfx950")
    >>> profile.model_error.root_mean_square_percent > 1, profile.model_error.text[:23]
    (True, 'predicted, not measured')
    >>> [program["kind"] for program in profile.model_error.programs]
    ['compute', 'cache', 'memory', 'launch']
    """

    kernels: int
    too_low_percent: float
    too_high_percent: float
    root_mean_square_percent: float
    programs: list[dict[str, Any]]
    text: str


@dataclass(frozen=True, repr=False)
class _Page:
    page: str
    """The report for a browser: one HTML document with its data inside, which fetches nothing."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        pathlib.Path(path).write_text(self.page, encoding="utf-8")

    def _repr_html_(self) -> str:
        # A document of its own in the notebook's: its styles and scripts see nothing outside.
        return (f'<iframe sandbox="allow-scripts" style="width: 100%; height: 50em; border: 0" title="{html.escape(repr(self))}" '
                f'srcdoc="{html.escape(self.page)}"></iframe>')


@dataclass(frozen=True, repr=False)
class Profile(_Page):
    """What a simulated GPU predicts of a call or of a kernel in a file; its page in a notebook. Predicted, never measured.

    >>> import wavejit
    >>> profile = wavejit.profile("attention_forward bf16 b1 q64 k64 h2 d64", device="sim:gfx950")
    >>> profile.cycles > 1000, profile.longest.issued["matrix"] > 0, profile.page[:15]
    (True, True, '<!doctype html>')
    """

    subject: str
    """The canonical descriptor, or the file."""
    settings: str
    device_name: str
    target: str
    kernel_spec: str
    key: str
    cycles: int
    """Predicted, of all launches and of the waits between them."""
    workgroups: int
    """The workgroups of all launches."""
    workgroups_run: int
    """Those that the clock looked at."""
    launches: list[Launch]
    model_error: ModelError
    json: dict[str, Any]
    """Everything that the program told."""

    @property
    def longest(self) -> Launch:
        """The launch that takes longest."""
        return max(self.launches, key=lambda launch: launch.cycles)

    def __repr__(self) -> str:
        return f"wavejit.Profile({self.subject!r}, {self.cycles} cycles predicted on {self.target})"


@dataclass(frozen=True)
class Difference:
    """A row of a comparison, as text. `verdict` of B: "better", "worse", or empty where nobody can say.

    >>> import wavejit
    >>> lines = "softmax_lse fp32 b1 h1 q1 k64", "softmax_lse fp32 b2 h1 q1 k64"
    >>> row = wavejit.compare(*lines, device="sim:gfx950").differences[1]
    >>> row.name, row.a, row.b, row.difference
    ('launches', '1', '1', 'same')
    """

    name: str
    a: str
    b: str
    difference: str
    verdict: str


@dataclass(frozen=True, repr=False)
class Comparison(_Page):
    """Two profiles side by side; the page has both below a table of `differences`. Those of `a` and `b` have no page of
    their own.

    >>> import wavejit
    >>> compared = wavejit.compare("attention_forward bf16 b1 q64 k64 h2 d64", "attention_forward bf16 b1 q64 k128 h2 d64", device="sim:gfx950")
    >>> compared.differences[0].name, compared.differences[0].verdict, compared.b.cycles > compared.a.cycles
    ('cycles', 'worse', True)
    """

    a: Profile
    b: Profile
    differences: list[Difference]

    def __repr__(self) -> str:
        return f"wavejit.Comparison({self.a!r}, {self.b!r})"


def profile(subject: str | os.PathLike[str] | Call, *, device: str | None = None, settings: Mapping[str, Any] | None = None,
            timeline: str | os.PathLike[str] | None = None, **options: Any) -> Profile:
    """Predicts where the time of a call, or of any compiler's kernel, goes. Seconds for long problems: only the workgroups
    that the clock looks at run, and there are no results.

    It is the program of the package, `wavejit profile`, in a process of its own; docs/profile.md explains the figures.

    subject
        A descriptor, a call (`Engine.attention_forward_call`), whose descriptor counts, or a file with a code object.
    device
        A simulated one: "sim:gfx950"; WAVEJIT_DEVICE's by default.
    settings
        Of a code object its launch: kernel (its name), grid and workgroup (a number or up to three), lds (bytes), arguments
        (["buffer:1MiB", "i32:64"]).
    timeline
        A file for Perfetto: 24576 cycles of a compute unit.
    options
        By an engine's names. A word of `pipeline` that means nothing to the kernel is refused (`stagger=off` on a generic one).

    Raises InvalidArgument for a device that is not simulated and for what cannot be right, Unsupported, CompileFailed,
    NoDevice, IoError for `timeline`.

    >>> import wavejit
    >>> launch = wavejit.profile("softmax_lse fp32 b1 h1 q1 k64", device="sim:gfx950").longest
    >>> abs(launch.issuing + sum(launch.waits.values()) - 1) < 0.01, sorted(launch.busy)[:2]
    (True, ['LDS', 'matrix pipe'])
    """
    return profiled(subject, {"device": device, **options}, None, settings=settings, timeline=timeline)


def profiled(subject: str | os.PathLike[str] | Call, options: Mapping[str, Any], of_engine: Mapping[str, str] | None, *,
             settings: Mapping[str, Any] | None = None, timeline: str | os.PathLike[str] | None = None) -> Profile:
    """The same with the options of an engine beneath those of the call."""
    words = ["profile", _subject("subject", subject), *_settings("settings", "--set", settings)]
    if timeline is not None:
        words.append(f"--timeline={os.fspath(timeline)}")
    json, page = _told_with_page(words, options, of_engine)
    return _profile(json, page)


def compare(a: str | os.PathLike[str] | Call, b: str | os.PathLike[str] | Call | None = None, *, a_settings: Mapping[str, Any] | None = None,
            b_settings: Mapping[str, Any] | None = None, device: str | None = None, **options: Any) -> Comparison:
    """Two calls or kernels side by side, as a simulated GPU predicts them. `b` None: `a` again, with other settings.

    Settings are a code object's launch as in `profile`, and how a kernel is made: device, pipeline, kv_splits, lowering.
    `options` are for both. Raises what `profile` raises.

    >>> import wavejit
    >>> line = "attention_forward bf16 b1 q64 k64 h2 d64"
    >>> compared = wavejit.compare(line, a_settings={"device": "sim:gfx942"}, b_settings={"device": "sim:gfx950"})
    >>> compared.a.target, compared.b.target
    ('gfx942', 'gfx950')
    """
    words = ["compare", _subject("a", a)] + ([] if b is None else [_subject("b", b)])
    words += _settings("a_settings", "--set-a", a_settings) + _settings("b_settings", "--set-b", b_settings)
    json, page = _told_with_page(words, {"device": device, **options}, None)
    return Comparison(page=page, a=_profile(json["a"], ""), b=_profile(json["b"], ""), differences=[Difference(**row) for row in json["differences"]])


def _subject(name: str, given: str | os.PathLike[str] | Call) -> str:
    if isinstance(given, Call):
        return given.describe()
    try:
        (text,) = _offline.texts_of(name, [os.fspath(given)], "")
    except TypeError:
        raise TypeError(f"{name}: a {type(given).__name__}; accepted: a descriptor, a call, a file's name") from None
    if text.startswith("-"):
        raise InvalidArgument(f"{name} = {text!r}; accepted: a descriptor, or a file's name that does not begin with '-'")
    return text


def _settings(name: str, flag: str, given: Mapping[str, Any] | None) -> list[str]:
    words = []
    for key, value in (given or {}).items():
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        (text,) = _offline.option_texts({f"{name}[{key!r}]": value}).values() if value is not None else ("",)
        words.append(f"{flag}={key.replace('_', '-')}={text}")
    return words


def _told_with_page(words: list[str], options: Mapping[str, Any], of_engine: Mapping[str, str] | None) -> tuple[dict[str, Any], str]:
    with tempfile.TemporaryDirectory(prefix="wavejit-") as folder:
        page = pathlib.Path(folder, "page.html")
        json = _program.answer(_program.command([*words, f"--html={page}"], options, of_engine))
        return json, page.read_text(encoding="utf-8")


def _profile(json: dict[str, Any], page: str) -> Profile:
    parts = json["predicted_cycles_parts"]
    return Profile(page=page, subject=json["subject"], settings=json["settings"], device_name=json["device_name"], target=json["target"],
                   kernel_spec=json["kernel_spec"], key=json["key"], cycles=json["predicted_cycles"], workgroups=json["workgroups"]["of"],
                   workgroups_run=json["workgroups"]["run"], launches=[_launch(launch, part["wait"]) for launch, part in zip(json["launches"], parts)],
                   model_error=ModelError(**json["model_error"]), json=json)


def _launch(json: dict[str, Any], before: int) -> Launch:
    unit, waves, mix, code = json["compute_unit"], json["waves"], json["mix"], json["static"]
    cycles = max(unit["cycles"], 1)
    simds = cycles * unit["simds"]
    busy = {"matrix pipe": unit["matrix_busy"] / simds, "vector port": unit["port_busy"] / simds, "LDS": unit["lds_busy"] / cycles,
            "vector memory": unit["address_busy"] / cycles, "scalar": unit["scalar_busy"] / simds}
    whole = waves["cycles"]
    return Launch(kernel=json["kernel"], target=json["target"], cycles=json["cycles"], cycles_before=before, grid=tuple(json["grid"]),
                  waves_of_workgroup=json["waves_of_workgroup"], matrix_busy=json["matrix_busy"], steady_matrix_busy=json["steady_matrix_busy"], busy=busy,
                  waits=_parts(waves["waited"], whole), idle=_parts(unit["idle"], simds), issued={kind: counts["issued"] for kind, counts in mix.items()},
                  written={kind: counts["static"] for kind, counts in mix.items()}, instructions=code["instructions"], code_bytes=code["code_bytes"],
                  vgprs=json["vgprs"], agprs=code["agprs"], sgprs=code["sgprs"], lds_bytes=json["lds_bytes"], spilled_bytes=code["private_bytes"],
                  resident_workgroups=json["occupancy"]["resident"], limited_by=json["occupancy"]["limited_by"],
                  longest_waits=[Waited(one["offset"], one["text"], one["kind"], _parts(one["waited"], whole)) for one in json["instructions"]],
                  clusters=[Waited(one["first"], "", "", _parts(one["waited"], whole)) for one in json["clusters"]], json=json)


def _parts(cycles: dict[str, int], whole: float) -> dict[str, float]:
    """Longest first."""
    return {name: count / max(whole, 1) for name, count in sorted(cycles.items(), key=lambda item: -item[1])}
