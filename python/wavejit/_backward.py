# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backward call: gradients of attention."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _fields, _lengths, _wavejit
from ._arrays import DeviceArray
from ._errors import InvalidArgument
from ._fields import keeps_words
from ._pages import BSHD
from ._sequences import SequencesCall, bias_type

if TYPE_CHECKING:
    from ._opened_device import OpenedDevice


def _is_fp32(given: Any) -> bool:
    """`dtype` says what 16-bit integers mean; f32 is f32."""
    return str(getattr(given, "dtype", "")).endswith(("fp32", "float32"))


class AttentionBackwardCall(SequencesCall):
    """dq, dk and dv of softmax(scale · Q·Kᵀ + mask) · V with their arguments. `dq`, `dk` and `dv` are the outputs.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> rows, lse = engine.empty((1, 128, 8, 128), "bf16"), engine.empty((1, 8, 128), "fp32")
    >>> call = engine.attention_backward_call(rows, rows, rows, rows, lse, rows, causal=True)
    >>> call.dq.shape, call.workspace_bytes()
    ((1, 128, 8, 128), 4096)
    """

    _outputs = ("dq", "dk", "dv", "d_sinks", "d_bias")
    dq: Any
    dk: Any
    dv: Any
    d_sinks: Any
    d_bias: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, q: Any, k: Any, v: Any, out: Any, lse: Any, d_out: Any, dq: Any = None, dk: Any = None, dv: Any = None, *,
                 d_lse: Any = None, delta: Any = None, sinks: Any = None, d_sinks: Any = False, gradients: str | None = None,
                 sums_before: Sequence[str] = (), sums_behind: Sequence[str] = (), scale: float | None = None, causal: bool = False,
                 window: Sequence[int | None] | None = None, causal_prefix: int | None = None, softcap: float | None = None, alibi: Any = None, bias: Any = None, d_bias: Any = False,
                 query_starts: Any = None, key_starts: Any = None, key_lengths: Any = None, max_query_length: int | None = None,
                 max_key_length: int | None = None, workspace: DeviceArray | None = None, compile: str = "wait", dtype: Any = None,
                 stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.attention_backward(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype)
        inputs = {field: self._tensor(field, given, None if field == "out" and _is_fp32(given) else element, shape=BSHD, dimensions=(4,))
                  for field, given in (("q", q), ("k", k), ("v", v), ("out", out), ("d_out", d_out)) if field != "out" or given is not None or delta is None}
        written = []
        for field, given, like in (("dq", dq, "q"), ("dk", dk, "k"), ("dv", dv, "v")):
            if given is None:
                starts = ("query_starts", query_starts) if like == "q" else ("key_starts", key_starts)
                unwritten = 0.0 if _lengths.leave_rows(*starts, inputs[like].shape[1]) else None
                given = _arrays.allocate_output(engine, inputs[like].shape, inputs[like]._dtype if gradients is None else _dtypes.named(gradients, "gradients"),
                                                unwritten)
            self._tensor(field, given, None if _is_fp32(given) else element, shape=BSHD, dimensions=(4,), output=True)
            written.append(given)
        self.dq, self.dk, self.dv = written
        sequences = self._starts(inputs["q"], query_starts, key_starts)
        self._words["lse"] = lse
        self._set(sequences=sequences)
        for name, gradients_of in (("dq", (dq,)), ("dk_dv", (dk, dv))):
            if name in (sums_before or ()) and any(gradient is None for gradient in gradients_of):
                raise InvalidArgument(f"sums_before = {list(sums_before)!r} without {' and '.join(name.split('_'))}; accepted: the sums of the calls before, which this one goes on with")

        self.d_sinks = None
        if d_sinks is not False:
            self.d_sinks = _arrays.allocate(engine, (sequences, inputs["q"].shape[2]), _dtypes.FP32) if d_sinks is True else d_sinks
            self._tensor("d_sinks", self.d_sinks, _dtypes.FP32, shape="[batch, heads]", dimensions=(2,), output=True, lead=False)
        max_query_length = _fields.whole_or_none("max_query_length", max_query_length)
        max_key_length = _fields.whole_or_none("max_key_length", max_key_length)
        known_starts = _lengths.known("query_starts", query_starts)
        _lengths.check_starts("query_starts", known_starts, inputs["q"].shape[1], max_query_length, "q", "max_query_length")
        keys = _lengths.Keys(inputs["k"].shape[1], None, max_key_length, _lengths.known("key_starts", key_starts), _lengths.known("key_lengths", key_lengths), None)
        _lengths.check_keys(keys)
        for field, longest, starts, steps in (("max_query_length", max_query_length, query_starts, _lengths.steps(known_starts)),
                                              ("max_key_length", max_key_length, key_starts, _lengths.steps(keys.starts))):
            if starts is not None:
                self._call.set_number(field, self._longest(field, longest, steps))
            elif longest is not None:
                self._call.set_number(field, longest)
        self.d_bias = None
        if bias is not None:
            array = self._bias(inputs["q"]._dtype, bias, element)
            if d_bias is not False:
                # Rows begin at multiples of 8 elements.
                padded = (*array.shape[:-1], (array.shape[-1] + 7) // 8 * 8)
                self.d_bias = _arrays.allocate(engine, padded, array._dtype)[..., :array.shape[-1]] if d_bias is True else d_bias
                self._tensor("d_bias", self.d_bias, bias_type(self.d_bias, element), shape="that of the bias", dimensions=(2, 3, 4), row_multiple=8, output=True)
        elif d_bias is not False:
            raise InvalidArgument("d_bias without a bias; accepted: bias=… beside it")

    def workspace_bytes(self) -> int:
        """Device memory that the call uses beside its arrays: one fp32 a row of q and head, and sums of runs where a sequence has several."""
        return self._workspace_bytes()
