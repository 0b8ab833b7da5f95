# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls of an engine: one of any family by its name, and a method for each."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from . import _documented
from ._append import CacheAppendCall
from ._backward import AttentionBackwardCall
from ._calls import Call
from ._errors import InvalidArgument
from ._forward import AttentionForwardCall
from ._indexer import SparseIndexerCall
from ._latent import AttentionLatentCall
from ._merge import AttentionMergeCall
from ._opened_device import OpenedDevice
from ._other_names import refuse_unknown
from ._softmax import SoftmaxLseCall

# The families by their names: a new one is a class and a row.
FAMILIES: dict[str, type[Call]] = {"attention_forward": AttentionForwardCall, "attention_backward": AttentionBackwardCall, "softmax_lse": SoftmaxLseCall,
                                  "sparse_indexer": SparseIndexerCall, "attention_latent": AttentionLatentCall, "cache_append": CacheAppendCall,
                                  "attention_merge": AttentionMergeCall}

Words = ParamSpec("Words")
Answer = TypeVar("Answer")
Made = TypeVar("Made", bound=Call)


def _made(kind: type[Made], engine: OpenedDevice, given: tuple[Any, ...], words: dict[str, Any]) -> Made:
    """A call of its own words. A word that is none of them is refused by the family's name, not by a class's."""
    try:
        return kind(engine, *given, **words)
    except TypeError:
        family = next(name for name, each in FAMILIES.items() if each is kind)
        refuse_unknown(family, list(inspect.signature(kind).parameters)[1:], words)
        raise


def _with_words_of(make: Callable[Concatenate[OpenedDevice, Words], Call]) -> Callable[[Callable[..., Answer]], Callable[Concatenate[FamilyCalls, Words], Answer]]:
    """A method of Engine takes a call's arguments, which stand in one place: `__init__` of the call. Readers, help() and type
    checkers see them. What is said of them comes from one table (_documented.py)."""
    signature = inspect.signature(make)
    family = next((name for name, kind in FAMILIES.items() if kind is make), None)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def named(method: Callable[..., Answer]) -> Callable[Concatenate[FamilyCalls, Words], Answer]:
        parameters = [itself, *list(signature.parameters.values())[1:]]
        if method.__name__ == family and method.__doc__ is not None:
            method.__doc__ = _documented.with_arguments(method.__doc__, family, [each.name for each in parameters[1:]])
        method.__signature__ = signature.replace(parameters=parameters, return_annotation=inspect.signature(method).return_annotation)  # type: ignore[attr-defined]
        return method

    return named


class FamilyCalls(OpenedDevice):
    """A method for each family's call over an opened device. `Engine` has them."""

    def call(self, family: str, *given: Any, **words: Any) -> Call:
        """A call of any family, not launched: to ask about it (`supported`, `is_ready`, `describe`), to `prepare` its kernels, and to launch it often at
        the cost of the C call (`launch`, `run`).

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> call = engine.call("softmax_lse", engine.empty((1, 1, 1, 64), "fp32"))
        >>> call.describe(), call.run().shape
        ('softmax_lse fp32 b1 h1 q1 k64', (1, 1, 1, 64))
        """
        if family not in FAMILIES:
            raise InvalidArgument(f"family = {family!r}; accepted: {', '.join(FAMILIES)}")
        return _made(FAMILIES[family], self, given, words)

    @_with_words_of(AttentionForwardCall)
    def attention_forward(self, *given: Any, **words: Any) -> Any:
        """out = softmax(scale · Q·Kᵀ + mask) · V. Returns `out`, or (out, lse) with `lse`. Asynchronous on `stream`.

        Arrays are DeviceArrays or ROCm tensors of the engine's device, which are not copied. On simulated devices also
        numpy arrays and tensors in host memory: inputs are copied to the device, outputs given by the caller are copied back
        before this returns.

        {arguments}

        Raises InvalidArgument (names the field), Unsupported, NotReady, Sealed, CompileFailed, LaunchFailed, OutOfMemory;
        TypeError for what is no array.

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> rows = numpy.ones((1, 40, 2, 64), numpy.float16)
        >>> out, lse = engine.attention_forward(rows, rows, rows, scale=0.0, lse=True)
        >>> bool(numpy.allclose(lse.numpy(), numpy.log(40)))
        True
        """
        return self.call("attention_forward", *given, **words).run()

    @_with_words_of(AttentionForwardCall)
    def attention_forward_call(self, *given: Any, **words: Any) -> AttentionForwardCall:
        """The call without its launch, with the words of `attention_forward`: to ask about it (`supported`, `is_ready`,
        `describe`, `workspace_bytes`), and to launch it often at the cost of the C call.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> rows = engine.empty((1, 128, 8, 128), "bf16")
        >>> call = engine.attention_forward_call(rows, rows, rows, causal=True)
        >>> call.supported(), call.describe()
        (True, 'attention_forward bf16 b1 q128 k128 h8 d128 causal')
        """
        return _made(AttentionForwardCall, self, given, words)

    @_with_words_of(AttentionBackwardCall)
    def attention_backward(self, *given: Any, **words: Any) -> tuple[Any, ...]:
        """Gradients of `attention_forward`: (dq, dk, dv), and those of sinks and of a bias behind them. Asynchronous on `stream`.

        No atomic additions: a sequence's gradients have the same bits alone, in any batch and packed.

        {arguments}

        Without d_sinks, sinks are not needed: they stand in the LSE.

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> rows = numpy.ones((1, 40, 2, 64), numpy.float16)
        >>> out, lse = engine.attention_forward(rows, rows, rows, lse=True)
        >>> dq, dk, dv = engine.attention_backward(rows, rows, rows, out, lse, rows)
        >>> float(abs(dq.numpy()).max()), float(dv.numpy()[0, 0, 0, 0])
        (0.0, 1.0)
        """
        gradients: tuple[Any, ...] = self.call("attention_backward", *given, **words).run()
        return gradients

    @_with_words_of(AttentionBackwardCall)
    def attention_backward_call(self, *given: Any, **words: Any) -> AttentionBackwardCall:
        """The call without its launch, with the words of `attention_backward`, as `attention_forward_call` is.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> rows, lse = engine.empty((1, 64, 4, 64), "fp16"), engine.empty((1, 4, 64), "fp32")
        >>> engine.attention_backward_call(rows, rows, rows, rows, lse, rows).describe()
        'attention_backward fp16 b1 q64 k64 h4 d64'
        """
        return _made(AttentionBackwardCall, self, given, words)

    @_with_words_of(AttentionLatentCall)
    def attention_latent(self, *given: Any, **words: Any) -> Any:
        """Latent attention (MLA, absorbed): out = softmax(scale · Q·Kᵀ + mask) · V, V being the first columns of K. Returns
        `out`, or (out, lse) with `lse`. `wavejit.latent` has it with the argument lists of FlashMLA and AITER.

        {arguments}

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> q, k = numpy.ones((1, 1, 12, 576), numpy.float16), numpy.ones((1, 40, 1, 576), numpy.float16)
        >>> out, lse = engine.attention_latent(q, k, scale=0.0, lse=True)
        >>> out.shape, bool(numpy.allclose(lse.numpy(), numpy.log(40)))
        ((1, 1, 12, 512), True)
        """
        return self.call("attention_latent", *given, **words).run()

    @_with_words_of(AttentionLatentCall)
    def attention_latent_call(self, *given: Any, **words: Any) -> AttentionLatentCall:
        """The call without its launch, with the words of `attention_latent`, as `attention_forward_call` is.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> q, pages = engine.empty((1, 1, 16, 576), "bf16"), engine.empty((8, 64, 1, 576), "bf16")
        >>> call = engine.attention_latent_call(q, pages, scale=0.1, block_table=[[3, 1]], key_lengths=[100])
        >>> call.supported(), call.describe()
        (True, 'attention_latent bf16 b1 q1 k100 h16 d576/512 layout=paged:64 scale=0.1')
        """
        return _made(AttentionLatentCall, self, given, words)

    @_with_words_of(SoftmaxLseCall)
    def softmax_lse(self, *given: Any, **words: Any) -> Any:
        """Softmax along the keys of raw scores [B, H, Sq, Sk]: weights, with `lse` (weights, lse), without weights lse.

        {arguments}

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> weights = engine.softmax_lse(numpy.zeros((1, 1, 2, 64), numpy.float32))
        >>> float(weights.numpy()[0, 0, 0, 0])
        0.015625
        """
        return self.call("softmax_lse", *given, **words).run()

    @_with_words_of(SoftmaxLseCall)
    def softmax_lse_call(self, *given: Any, **words: Any) -> SoftmaxLseCall:
        """The call without its launch, with the words of `softmax_lse`, as `attention_forward_call` is.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> call = engine.softmax_lse_call(engine.empty((1, 1, 1, 64), "fp32"))
        >>> call.supported(), call.describe()
        (True, 'softmax_lse fp32 b1 h1 q1 k64')
        """
        return _made(SoftmaxLseCall, self, given, words)

    @_with_words_of(SparseIndexerCall)
    def sparse_indexer(self, *given: Any, **words: Any) -> Any:
        """The keys that each query row is to attend to: `indices` int32 [B, Sq, top_k], ascending, −1 behind the last.

        Of score[b, i, j] = key_scales[b, j] · Σ over heads h of relu(queries[b, i, h] · keys[b, j]) · weights[b, i, h]
        the largest top_k are chosen, of equal ones the lower key. The same row has the same list whatever the batch.

        {arguments}

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> scores = numpy.array([[[0.5, 2.0, -1.0, 2.0, 0.25]]], numpy.float32)
        >>> engine.sparse_indexer(None, None, None, 3, scores=scores).numpy()[0, 0].tolist()
        [0, 1, 3]
        """
        return self.call("sparse_indexer", *given, **words).run()

    @_with_words_of(SparseIndexerCall)
    def sparse_indexer_call(self, *given: Any, **words: Any) -> SparseIndexerCall:
        """The call without its launch, with the words of `sparse_indexer`, as `attention_forward_call` is.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> queries, keys = engine.empty((4, 1, 64, 128), "bf16"), engine.empty((4, 3000, 128), "bf16")
        >>> engine.sparse_indexer_call(queries, keys, engine.empty((4, 1, 64), "fp32"), 2048).describe()
        'sparse_indexer bf16 b4 q1 k3000 h64 top=2048'
        """
        return _made(SparseIndexerCall, self, given, words)

    @_with_words_of(CacheAppendCall)
    def cache_append(self, *given: Any, **words: Any) -> Any:
        """New keys and values into a cache, with rotary embedding on the way; the turned queries are returned, or None.

        {arguments}

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> cache = engine.array(numpy.zeros((4, 16, 1, 8), numpy.float16))
        >>> keys = numpy.arange(16, dtype=numpy.float16).reshape(2, 1, 8)
        >>> engine.cache_append(keys, None, cache, None, [17, -1])
        >>> cache.numpy()[1, 1, 0].tolist(), float(cache.numpy().sum())
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 28.0)
        """
        return self.call("cache_append", *given, **words).run()

    @_with_words_of(CacheAppendCall)
    def cache_append_call(self, *given: Any, **words: Any) -> CacheAppendCall:
        """The call without its launch, with the words of `cache_append`, as `attention_forward_call` is.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> k, pages = engine.empty((64, 8, 128), "bf16"), engine.empty((100, 16, 8, 128), "bf16")
        >>> engine.cache_append_call(k, k, pages, engine.empty((100, 16, 8, 128), "bf16"), list(range(64))).describe()
        'cache_append bf16 b1 q64 h8 d128 page=16'
        """
        return _made(CacheAppendCall, self, given, words)

    @_with_words_of(AttentionMergeCall)
    def attention_merge(self, *given: Any, **words: Any) -> Any:
        """Results of several calls over different keys of the same queries become that of one call over all keys: (out, lse), or out
        with `lse=False`. Of a prefix that sequences share, of keys that stand on several devices.

        {arguments}

        Parts are merged in order, in f32. One whose lse is −∞ saw no key, and changes nothing. Sinks belong into one of the calls.

        >>> import numpy, wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> ones, zeros = numpy.ones((1, 2, 8), numpy.float16), numpy.zeros((2, 1), numpy.float32)
        >>> out, lse = engine.attention_merge([ones, 3 * ones], [zeros, zeros])
        >>> out.numpy()[0, 0, :3].tolist(), round(float(lse.numpy()[0, 0]), 4)
        ([2.0, 2.0, 2.0], 0.6931)
        """
        return self.call("attention_merge", *given, **words).run()

    @_with_words_of(AttentionMergeCall)
    def attention_merge_call(self, *given: Any, **words: Any) -> AttentionMergeCall:
        """The call without its launch, with the words of `attention_merge`, as `attention_forward_call` is."""
        return _made(AttentionMergeCall, self, given, words)

    # ---- questions about a call: older names. `Engine.call(…)` answers them for every family

    @_with_words_of(AttentionForwardCall)
    def describe(self, *given: Any, **words: Any) -> str:
        """The call as a problem descriptor."""
        return self.call("attention_forward", *given, **words).describe()

    @_with_words_of(AttentionForwardCall)
    def supported(self, *given: Any, **words: Any) -> bool:
        """Whether there is a kernel for the call. Raises InvalidArgument for one that cannot be right."""
        return self.call("attention_forward", *given, **words).supported()

    @_with_words_of(AttentionForwardCall)
    def is_ready(self, *given: Any, **words: Any) -> bool:
        """Whether the call's kernel is loaded."""
        return self.call("attention_forward", *given, **words).is_ready()

    @_with_words_of(SoftmaxLseCall)
    def softmax_lse_describe(self, *given: Any, **words: Any) -> str:
        """The call of `softmax_lse` as a problem descriptor.

        >>> import wavejit
        >>> engine = wavejit.Engine("sim:gfx950")
        >>> engine.softmax_lse_describe(engine.empty((1, 8, 16, 512), "bf16"), "fp32", causal=True)
        'softmax_lse bf16 b1 h8 q16 k512 weights=fp32 causal'
        """
        return self.call("softmax_lse", *given, **words).describe()

    @_with_words_of(SoftmaxLseCall)
    def softmax_lse_supported(self, *given: Any, **words: Any) -> bool:
        """Whether there is a kernel for the call of `softmax_lse`."""
        return self.call("softmax_lse", *given, **words).supported()

    @_with_words_of(SoftmaxLseCall)
    def softmax_lse_is_ready(self, *given: Any, **words: Any) -> bool:
        """Whether the kernel of the call of `softmax_lse` is loaded."""
        return self.call("softmax_lse", *given, **words).is_ready()
