# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The softmax of raw scores, as a call."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _arrays, _dtypes, _lengths, _wavejit
from ._calls import Call
from ._fields import keeps_words

if TYPE_CHECKING:
    from ._opened_device import OpenedDevice


class SoftmaxLseCall(Call):
    """The softmax of raw scores with its arguments. `weights` and `lse` are the outputs, or None.

    >>> import wavejit
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> call = engine.softmax_lse_call(engine.empty((1, 8, 16, 64), "bf16"), None, lse=True)
    >>> call.weights, call.lse.shape
    (None, (1, 8, 16))
    """

    _outputs = ("weights", "lse")
    weights: Any
    lse: Any

    @keeps_words
    def __init__(self, engine: OpenedDevice, scores: Any, weights: Any = True, *, lse: Any = False, scale: float | None = None, causal: bool = False,
                 window: Sequence[int | None] | None = None, causal_prefix: int | None = None, key_lengths: Any = None, compile: str = "wait",
                 check_lengths: bool = False, dtype: Any = None, stream: object = None) -> None:
        super().__init__(engine, _wavejit.calls.softmax_lse(engine._open()), stream)
        element = None if dtype is None else _dtypes.named(dtype, accepted=_dtypes.ELEMENTS)
        shape = "[batch, heads, queries, keys]"
        raw = self._tensor("scores", scores, element, shape=shape, dimensions=(4,))
        self.weights = None
        if weights is not None and weights is not False:
            if weights is True or isinstance(weights, str):
                weights = _arrays.allocate(engine, raw.shape, raw._dtype if weights is True else _dtypes.named(weights, "weights", _dtypes.ELEMENTS))
            self._tensor("weights", weights, None, shape=shape, dimensions=(4,), output=True)
            self.weights = weights
        self.lse = self._row_sums(lse, raw.shape[:3])  # type: ignore[arg-type]
        self._set(batch=raw.shape[0])
        _lengths.check_keys(_lengths.Keys(raw.shape[3], None, None, None, _lengths.known("key_lengths", key_lengths), None))
