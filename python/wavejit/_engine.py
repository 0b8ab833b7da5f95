# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine: a device, its loaded kernels, its arrays, and the calls."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _arrays, _device, _dtypes, _offline, _progress, _wavejit
from ._arrays import DeviceArray
from ._calls import Call
from ._errors import InvalidArgument, error_of_lines
from ._family_calls import FamilyCalls
from ._progress import Progress

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ._profile import Profile
    from ._sweep import SweepResult


class Prepared(NamedTuple):
    """What became of one line of `Engine.prepare`. `status` 0: its kernel is loaded; else, with `strict=False`, `failure` says why not.

    >>> import wavejit
    >>> (prepared,) = wavejit.Engine("sim:gfx950").prepare("softmax_lse fp32 b1 h1 q1 k64")
    >>> prepared.descriptor, prepared.status, prepared.failure
    ('softmax_lse fp32 b1 h1 q1 k64', 0, '')
    """

    descriptor: str
    status: int
    failure: str


class Engine(FamilyCalls):
    """A device with the kernels that were loaded on it. Any thread may use it; the GIL is free while it compiles, launches
    and waits.

    device
        "hip" (default), "hip:<number>", "sim:<target>", such as "sim:gfx950" and "sim:gfx1201", "sim:gfx950x8:1". "hip" is never simulated.
    cache_dir
        Where compiled kernels are kept: $XDG_CACHE_HOME/wavejit, else ~/.cache/wavejit.
    on_compile
        A function that gets a dict for each kernel that was fetched or compiled: descriptor, kernel_spec, origin ("disk",
        "compiled", None when it failed), status, detail and nanoseconds by phase. On the thread that did the work.
    on_log
        A function that gets (level, line) instead of standard error. It must not call wavejit.
    options
        By the names of wavejit_engine_options: cache_mode, cache_layers (a list of paths), cache_limit, pipeline,
        kv_splits, log_level, miss_log and more. True and False are "on" and "off". What is not given is the environment's
        (docs/environment.md).

    Raises NoDevice when the device is not there, InvalidArgument for a value that an option does not take, TypeError for an
    option that is none.

    >>> import numpy, wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> q = numpy.ones((1, 16, 4, 64), numpy.float16)      # [batch, length, heads, head dim]
    >>> k = v = numpy.ones((1, 48, 2, 64), numpy.float16)  # 2 query heads read each kv head
    >>> out = engine.attention_forward(q, k, v, causal=True)
    >>> out.shape, float(out.numpy().max())
    ((1, 16, 4, 64), 1.0)
    """

    # ---- arrays

    def array(self, host: Any, dtype: Any = None) -> DeviceArray:
        """A copy of a numpy array, a nested list or a DLPack tensor in host memory, on the device.

        `dtype`: "fp16", "bf16", "fp32" or "int32". 16-bit integers are taken for the bits of "bf16" or "fp16". ml_dtypes'
        bfloat16 needs no `dtype`. Nothing is rounded: another type is an error.
        """
        import numpy

        kind = None if dtype is None else _dtypes.named(dtype)
        if isinstance(host, (list, tuple, int, float)):
            host = numpy.asarray(host, None if kind is None or kind is _dtypes.BF16 else kind.host)
        if isinstance(host, DeviceArray):
            raise TypeError("host: a DeviceArray; accepted: what lies in host memory")
        array, _ = _arrays.on_device(self, host, "host", 0, kind, copies=True)
        if array._memory is None or not isinstance(array._memory, _wavejit.DeviceMemory):
            raise InvalidArgument("host: a tensor on the device; accepted: host memory (from_dlpack takes device tensors)")
        return array

    def empty(self, shape: Sequence[int], dtype: Any) -> DeviceArray:
        """Device memory with whatever stands in it."""
        return _arrays.allocate(self, shape, _dtypes.named(dtype))

    def from_dlpack(self, tensor: Any, stream: object = None) -> DeviceArray:
        """A ROCm tensor of another library on this device, without a copy: wrapped once, used in many calls.

        `stream` is the one on which it will be used; the other library makes it wait for the tensor's data.
        """
        return _arrays.borrow(self, tensor, "tensor", _device.stream_number(stream))

    # ---- what is told of calls

    def explain(self, problem: str | Call, **options: Any) -> list[str]:
        """`wavejit.explain` of a descriptor, or of a call's, for this engine's target. Options are this function's, not the
        engine's."""
        return _offline.explain(problem.describe() if isinstance(problem, Call) else problem, self._target, **options)

    def profile(self, subject: str | os.PathLike[str] | Call, *, settings: Mapping[str, Any] | None = None, timeline: str | os.PathLike[str] | None = None,
                **options: Any) -> Profile:
        """`wavejit.profile` on this engine's device, with its options beneath those given here: where the time of a call
        goes, as the simulated GPU predicts it. In a notebook the result shows its page.

        Raises InvalidArgument on a real GPU: `device="sim:gfx950"` asks a simulated one.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> rows = engine.empty((1, 64, 2, 64), "bf16")
        >>> profile = engine.profile(engine.attention_forward_call(rows, rows, rows))
        >>> profile.subject, 0 < profile.longest.busy["matrix pipe"] < 1
        ('attention_forward bf16 b1 q64 k64 h2 d64', True)
        """
        from . import _profile

        self._open()
        return _profile.profiled(subject, options, self._options, settings=settings, timeline=timeline)

    def sweep(self, descriptors: Iterable[str] | str | None = None, **words: Any) -> SweepResult:
        """`wavejit.sweep` on this engine's device, in a process of its own, with the engine's options beneath those given here.

        >>> import wavejit
        >>> wavejit.Engine("sim:gfx950").sweep("softmax_lse fp32 b1 h1 q1 k64").passed
        1
        """
        from . import _sweep

        self._open()
        return _sweep.swept(descriptors, self._options, words)

    # ---- serving

    def prepare(self, descriptors: Iterable[str] | str, *, strict: bool = True, jobs: int = 0, progress: Progress | bool | None = None) -> list[Prepared]:
        """Compiles or fetches, and loads, what the lines need, `jobs` at a time (0: all cores).

        A line that fails leaves the others alone. Then the error of the first is raised, which names every line that failed and why:
        a sealed engine would refuse their calls. With `strict=False` nothing is raised for a line, and each one's status is in the
        result. `progress` is told as `wavejit.prebuild` tells it (done, total, compiled, from_disk, present, failed, descriptor, failure).

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> try:
        ...     engine.prepare("attention_forward bf16 b1 q1 k64 h1 d512")
        ... except wavejit.Unsupported as error:
        ...     print(error.detail.splitlines()[0])
        prepare: 1 of 1 lines could not be prepared:
        >>> [line.status for line in engine.prepare("attention_forward bf16 b1 q1 k64 h1 d512", strict=False)]
        [2]
        """
        if not isinstance(strict, bool):
            raise TypeError(f"strict: a {type(strict).__name__}; accepted: True, False")
        lines = _offline.lines_of(descriptors)
        with _progress.told(progress, "prepare") as told:
            answers = self._open().prepare(lines, _offline.jobs_of(jobs), told)
        prepared = [Prepared(line, status, failure) for line, (status, failure) in zip(lines, answers)]
        failed = [line for line in prepared if line.status != 0]
        if strict and failed:
            told_lines = "".join(f"\n'{line.descriptor}': {line.failure}" for line in failed)
            raise error_of_lines(failed[0].status, f"prepare: {len(failed)} of {len(prepared)} lines could not be prepared:{told_lines}")
        return prepared

    def seal(self) -> None:
        """From now on a call whose kernel is not loaded raises Sealed: nothing is read from disk or compiled."""
        self._open().seal()

    def unseal(self) -> None:
        """Undoes `seal`."""
        self._open().unseal()

    def trim(self) -> None:
        """Waits for the device and gives back the engine's own workspaces."""
        self._open().trim()

    def statistics(self) -> dict[str, Any]:
        """Counters of calls, hits, compiles and the cache, and `kernels`: each that was fetched or compiled, with its phases.

        They add up: calls + prepared = memory_hits + disk_hits + misses.
        """
        import json

        counters: dict[str, Any] = json.loads(self._open().statistics_json())
        return counters
