# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backward call: gradients of attention."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _lengths, _wavejit
from ._arrays import DeviceArray
from ._calls import BSHD, SequencesCall

if TYPE_CHECKING:
    from ._opened_device import OpenedDevice


class AttentionBackwardCall(SequencesCall):
    """dq, dk and dv of softmax(scale · Q·Kᵀ + mask) · V with their arguments. `dq`, `dk` and `dv` are the outputs.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> rows, lse = engine.empty((1, 128, 8, 128), "bf16"), engine.empty((1, 8, 128), "fp32")
    >>> call = engine.attention_backward_call(rows, rows, rows, rows, lse, rows, causal=True)
    >>> call.dq.shape, call.workspace_bytes()
    ((1, 128, 8, 128), 4096)
    """

    _call: _wavejit.AttentionBackwardCall
    _outputs = ("dq", "dk", "dv")
    dq: Any
    dk: Any
    dv: Any

    def __init__(self, engine: OpenedDevice, q: Any, k: Any, v: Any, out: Any, lse: Any, d_out: Any, dq: Any = None, dk: Any = None, dv: Any = None, *,
                 d_lse: Any = None, gradients: str | None = None, scale: float | None = None, causal: bool = False,
                 window: Sequence[int | None] | None = None, causal_prefix: int | None = None, softcap: float | None = None, alibi: Any = None,
                 query_starts: Any = None, key_starts: Any = None, key_lengths: Any = None, max_query_length: int | None = None,
                 max_key_length: int | None = None, workspace: DeviceArray | None = None, compile: str = "wait", dtype: Any = None,
                 stream: object = None) -> None:
        super().__init__(engine, _wavejit.AttentionBackwardCall(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype)
        inputs = {field: self._tensor(field, given, element, shape=BSHD, dimensions=(4,))
                  for field, given in (("q", q), ("k", k), ("v", v), ("out", out), ("d_out", d_out))}
        for field, given in (("lse", lse), ("d_lse", d_lse)):
            if given is not None or field == "lse":
                self._tensor(field, given, _dtypes.FP32, shape="[batch, heads, rows]", dimensions=(3, 4), lead=False)
        written = []
        for field, given, like in (("dq", dq, "q"), ("dk", dk, "k"), ("dv", dv, "v")):
            if given is None:
                given = _arrays.allocate(engine, inputs[like].shape, inputs[like]._dtype if gradients is None else _dtypes.named(gradients, "gradients"))
            in_fp32 = str(getattr(given, "dtype", "")).endswith(("fp32", "float32"))
            self._tensor(field, given, None if in_fp32 else element, shape=BSHD, dimensions=(4,), output=True)
            written.append(given)
        self.dq, self.dk, self.dv = written

        sequences = self._starts(inputs["q"], query_starts, key_starts)
        self._numbers("key_lengths", key_lengths, sequences, "sequences")
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
        if alibi is not None:
            self._slopes(alibi)
        if softcap is not None:
            self._call.set_number("softcap", softcap)
        self._mask(causal, window, causal_prefix)
        if workspace is not None:
            self._give_workspace(workspace)
        self._scale_and_flags(scale, compile)

    def workspace_bytes(self) -> int:
        """Device memory that the call uses beside its arrays: one fp32 a row of q and head, and sums of runs where a sequence has several."""
        return self._call.workspace_bytes()
