# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What needs no device: explain, supported, targets, prebuild."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _progress, _wavejit
from ._errors import InvalidArgument, speaking_of_lines
from ._progress import Progress


# enum wavejit_kernel_form
KERNEL_FORMS = {"ir": 0, "isa": 1}


def option_texts(given: dict[str, Any]) -> dict[str, str]:
    """Options as wavejit.h takes them: numbers, paths, True ("on") and False ("off") become text; None leaves one out."""
    texts = {}
    for name, value in given.items():
        if value is None:
            continue
        if name == "cache_dir":
            name = "cache_directory"
        if isinstance(value, bool):
            value = "on" if value else "off"
        elif isinstance(value, (list, tuple)):
            value = ":".join(os.fspath(part) for part in value)
        elif isinstance(value, int):
            value = str(value)
        try:
            text = os.fspath(value)
        except TypeError:
            raise TypeError(f"{name}: a {type(value).__name__}; accepted: text, a number, a path, True, False") from None
        if isinstance(text, bytes) or "\0" in text:
            raise InvalidArgument(f"{name} = {text!r}; accepted: text without a zero byte")
        texts[name] = text
    return texts


def lines_of(descriptors: Iterable[str] | str) -> list[str]:
    return texts_of("descriptors", descriptors, "lines of text")


def texts_of(field: str, given: Iterable[str] | str, accepted: str) -> list[str]:
    """One text, or several."""
    if not isinstance(given, (str, Iterable)):
        raise TypeError(f"{field}: a {type(given).__name__}; accepted: {accepted}")
    texts = [given] if isinstance(given, str) else list(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{field}: a {type(text).__name__}; accepted: {accepted}")
        if "\0" in text:
            raise InvalidArgument(f"{field}: {text!r}; accepted: text without a zero byte")
    return texts


def jobs_of(jobs: int) -> int:
    if not isinstance(jobs, int) or not 0 <= jobs < 1 << 31:
        raise InvalidArgument(f"jobs = {jobs!r}; accepted: a number of threads, or 0 for all cores")
    return jobs


def supported() -> list[str]:
    """Lines of what this version does, from its own tables: a line for each target and kernel family.

    >>> import wavejit
    >>> any(line.startswith("gfx950 ") for line in wavejit.supported())
    True
    """
    return _wavejit.supported()


def targets() -> list[str]:
    """The targets that all families have kernels for. supported() tells of others, too.

    >>> import wavejit
    >>> "gfx942" in wavejit.targets()
    True
    """
    return _wavejit.targets()


def explain(descriptor: str, target: str | None = None, **options: Any) -> list[str]:
    """The route of a problem: what was chosen, its key, whether it is on disk, why each other route was refused.

    `descriptor` is a line such as "attention_forward bf16 b1 q4096 k4096 h64/8 d128 causal" (docs/problem-descriptors.md).
    Without `target`, it is WAVEJIT_DEVICE's. No device is opened and nothing is compiled.
    Raises InvalidArgument for a line that is none, Unsupported for one that no kernel does.

    >>> import wavejit
    >>> route = wavejit.explain("attention_forward bf16 b1 q64 k64 h2 d64", target="gfx950")
    >>> any("generic" in line for line in route)
    True
    """
    (line,) = texts_of("descriptor", [descriptor], "a line of text")
    (name,) = texts_of("target", [target or ""], "the name of a target")
    with speaking_of_lines():
        return _wavejit.explain(line, name, option_texts(options))


def prebuild(descriptors: Iterable[str] | str | None, targets: str | Iterable[str], *, output: str | os.PathLike[str] | None = None, archive: bool = False,
             verify: bool = False, jobs: int = 0, progress: Progress | bool | None = True, **options: Any) -> dict[str, int]:
    """Compiles what the lines need into the cache, and from there into `output` (a folder, or one file with `archive`).

    Needs neither a GPU nor HIP. `descriptors` None: every combination without windows, modifiers and pages. `targets`:
    "gfx950", ["gfx942", "gfx950"] or "all". `verify`: compiles nothing and looks whether everything is there. `jobs`:
    compiles at a time, 0 for all cores. `progress`: a function that gets a dict (done, total, compiled, copied, present,
    failed, refused, kernel_spec, failure, descriptor, target) after each kernel, from threads of the library, one at a
    time; True: a bar, if tqdm is installed. What it raises is raised here, once the work is over.

    Returns the counts of kernels: total, compiled, copied, present, failed, and of refused lines. Raises the error of the
    first kernel that failed, else of the first line that was refused; the others are done all the same.

    >>> import tempfile, wavejit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = "softmax_lse fp32 b1 h1 q1 k64"
    ...     counts = wavejit.prebuild(line, "gfx950", progress=False, cache_dir=folder)
    >>> counts["total"], counts["compiled"]
    (1, 1)
    """
    names = ",".join(texts_of("targets", targets, "names of targets"))
    lines = None if descriptors is None else lines_of(descriptors)
    with _progress.told(progress, "prebuild") as told, speaking_of_lines():
        return _wavejit.prebuild(lines, names, bool(verify), jobs_of(jobs), None if output is None else os.fspath(output), bool(archive), told, option_texts(options))


def kernel_texts(descriptor: str, target: str | None = None, form: str = "isa", **options: Any) -> list[tuple[str, str]]:
    """The kernels of a problem as (spec, text), in the order in which they run. They are made anew, without a device.

    `form`: "isa", the machine code, an instruction a line; "ir", the LLVM IR that the template emits.
    Raises what a compile would.

    >>> import wavejit
    >>> ((spec, text),) = wavejit.kernel_texts("softmax_lse fp32 b1 h1 q1 k64", "gfx950")
    >>> spec.split()[:2], "s_endpgm" in text
    (['softmax_lse', 'fp32'], True)
    """
    if form not in KERNEL_FORMS:
        raise InvalidArgument(f"form = {form!r}; accepted: {', '.join(map(repr, KERNEL_FORMS))}")
    (line,) = texts_of("descriptor", [descriptor], "a line of text")
    (name,) = texts_of("target", [target or ""], "the name of a target")
    with speaking_of_lines():
        return _wavejit.kernel_texts(line, KERNEL_FORMS[form], name, option_texts(options))
