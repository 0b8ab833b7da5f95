# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls: arguments that were checked and put on the device once, to be asked and launched any number of times."""
from __future__ import annotations

from typing import Any

from . import _arrays, _device, _dtypes, _offline, _wavejit
from ._dtypes import DType
from ._errors import Error, InvalidArgument, error_of
from ._fields import Fields
from ._opened_device import ORIGINS, OpenedDevice

UNSUPPORTED, NOT_READY = 2, 12


class Call(Fields):
    """A call with its arguments: `Engine.call("softmax_lse", …)` makes one, and so does `Engine.softmax_lse_call(…)`.

    It keeps every array that it was given, and host inputs as they were copied when it was made. `launch()` costs what
    the C call costs and next to nothing more; it may be launched any number of times, from any thread.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> call = engine.softmax_lse_call(engine.empty((1, 1, 1, 64), "fp32"))
    >>> call.launch()
    >>> call.launch_with_report()["origin"], call.is_ready()
    ('memory', True)
    """

    _call: _wavejit.NativeCall
    _outputs: tuple[str, ...]

    def __init__(self, engine: OpenedDevice, call: _wavejit.NativeCall, stream: object) -> None:
        self._engine = engine
        self._call = call
        self._launch = call.launch
        self._stream = _device.stream_number(stream)
        super().__init__()

    def launch(self) -> None:
        """Launches on the call's stream and returns; the first launch of a kind may compile. What host arrays were given for
        outputs are written when this returns."""
        if self._engine._handle is None or self._borrows:
            self._before()
        try:
            self._launch(self._stream)
        except Error as error:
            raise self._by_callers_dimensions(error) from None
        if self._borrows:
            self._engine._kept.add(self)  # once more: another thread may have waited for the device in between
        for written in self._written:
            written[0] = self._stream
        if self._copies_back:
            self._copy_back()

    @property
    def results(self) -> Any:
        """What the call writes: one array, a tuple of several, None for none."""
        written = tuple(array for array in (getattr(self, name) for name in self._outputs) if array is not None)
        return written[0] if len(written) == 1 else written or None

    def run(self) -> Any:
        """Launches, and returns the results."""
        self.launch()
        return self.results

    def launch_with_report(self) -> dict[str, Any]:
        """The same as `launch`, and tells which kernel ran, where it came from ("memory", "disk", "compiled") and nanoseconds by phase."""
        self._before()
        try:
            report = self._call.launch_with_report(self._stream)
        except Error as error:
            raise self._by_callers_dimensions(error) from None
        if self._borrows:
            self._engine._kept.add(self)
        report["origin"] = ORIGINS.get(report["origin"], report["origin"])
        for written in self._written:
            written[0] = self._stream
        self._copy_back()
        return report

    def _before(self) -> None:
        self._engine._open()
        if self._borrows:
            self._engine._keep(self)

    @staticmethod
    def _result_type(out: Any, element: DType | None, out_dtype: Any) -> DType | None:
        """What `out` must have: what it says itself, else what its integers are told to mean."""
        if out_dtype is not None:
            wanted = _dtypes.named(out_dtype, "out_dtype", _dtypes.WRITTEN)
            if out is None or isinstance(out, str):
                beside = "without out" if out is None else f"beside out = {out!r}"
                raise InvalidArgument(f"out_dtype = {wanted.name!r} {beside}; accepted: out={wanted.name!r} for a new array, or out_dtype beside yours of 8-bit integers")
            return wanted
        told = _dtypes.of_cache(out)
        return told if told is not None else None if _dtypes.is_fp32(out) else element

    def _row_sums(self, lse: Any, shape: tuple[int, int, int], unwritten: float | None = None) -> Any:
        """lse: False and None for none, True for one of wavejit's own, else the caller's, [batch, heads, rows]."""
        if lse is None or lse is False:
            return None
        given = _arrays.allocate_output(self._engine, shape, _dtypes.FP32, unwritten) if lse is True else lse
        self._tensor("lse", given, _dtypes.FP32, shape="[batch, heads, rows]", dimensions=(3, 4), output=True, lead=False)
        return given

    def _copy_back(self) -> None:
        for host, array in self._copies_back:
            host[...] = array._host_elements().reshape(host.shape)

    def supported(self) -> bool:
        """Whether there is a kernel for it on this target. What else the call would refuse is raised."""
        return self._answer(self._call.supported(), UNSUPPORTED)

    def why_unsupported(self) -> str | None:
        """None, or why there is no kernel for it."""
        status, detail = self._call.supported()
        return self._by_callers_dimensions(error_of(status, detail)).detail if status == UNSUPPORTED else None

    def is_ready(self) -> bool:
        """Whether its kernel is loaded, so that launching it neither reads the disk nor compiles."""
        return self._answer(self._call.ready(), NOT_READY)

    def prepare(self) -> None:
        """Loads its kernels without launching them: from disk, or compiled. `Engine.prepare` does so for many lines at once."""
        self._call.prepare()

    def describe(self) -> str:
        """The call as a problem descriptor: a line for `Engine.prepare` and `wavejit.prebuild`."""
        return self._call.describe()

    def explain(self, **options: Any) -> list[str]:
        """The call's route on the engine's target, as `wavejit.explain` tells it: what was chosen, and why nothing else."""
        return _offline.explain(self.describe(), self._engine.target, **options)

    def _answer(self, answer: tuple[int, str], no: int) -> bool:
        status, detail = answer
        if status not in (0, no):
            raise self._by_callers_dimensions(error_of(status, detail))
        return status == 0

    def _by_callers_dimensions(self, error: Error) -> Error:
        detail = self._in_callers_dimensions(error.detail)
        return error if detail == error.detail else type(error)(detail, error.status)
