# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine: a device, its loaded kernels, and the calls."""
from __future__ import annotations

import atexit
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from . import _arrays, _device, _documented, _dtypes, _offline, _progress, _wavejit
from ._append import CacheAppendCall
from ._arrays import DeviceArray
from ._backward import AttentionBackwardCall
from ._calls import ORIGINS, Call
from ._errors import Error, InvalidArgument, NoDevice, error_of_lines
from ._forward import AttentionForwardCall
from ._indexer import SparseIndexerCall
from ._latent import AttentionLatentCall
from ._merge import AttentionMergeCall
from ._other_names import refuse_unknown
from ._progress import Progress
from ._softmax import SoftmaxLseCall

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from ._profile import Profile
    from ._sweep import SweepResult

# The families by their names: a new one is a class and a row.
FAMILIES: dict[str, type[Call]] = {"attention_forward": AttentionForwardCall, "attention_backward": AttentionBackwardCall, "softmax_lse": SoftmaxLseCall,
                                  "sparse_indexer": SparseIndexerCall, "attention_latent": AttentionLatentCall, "cache_append": CacheAppendCall,
                                  "attention_merge": AttentionMergeCall}
# Calls over borrowed memory that nobody has waited for. When there are this many, the device is waited for.
KEPT_CALLS = 256


# Engines whose threads may call Python: at its end they no longer do.
_calling_back: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _forget_callbacks() -> None:
    for engine in list(_calling_back):
        if engine._handle is not None:
            engine._handle.forget_callbacks()


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


Words = ParamSpec("Words")
Answer = TypeVar("Answer")
Made = TypeVar("Made", bound=Call)


def _made(kind: type[Made], engine: Engine, given: tuple[Any, ...], words: dict[str, Any]) -> Made:
    """A call of its own words. A word that is none of them is refused by the family's name, not by a class's."""
    try:
        return kind(engine, *given, **words)
    except TypeError:
        family = next(name for name, each in FAMILIES.items() if each is kind)
        refuse_unknown(family, list(inspect.signature(kind).parameters)[1:], words)
        raise


def _with_words_of(make: Callable[Concatenate[Engine, Words], Call]) -> Callable[[Callable[..., Answer]], Callable[Concatenate[Engine, Words], Answer]]:
    """A method of Engine takes a call's arguments, which stand in one place: `__init__` of the call. Readers, help() and type
    checkers see them. What is said of them comes from one table (_documented.py)."""
    signature = inspect.signature(make)
    family = next((name for name, kind in FAMILIES.items() if kind is make), None)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def named(method: Callable[..., Answer]) -> Callable[Concatenate[Engine, Words], Answer]:
        parameters = [itself, *list(signature.parameters.values())[1:]]
        if method.__name__ == family and method.__doc__ is not None:
            method.__doc__ = _documented.with_arguments(method.__doc__, family, [each.name for each in parameters[1:]])
        method.__signature__ = signature.replace(parameters=parameters, return_annotation=inspect.signature(method).return_annotation)  # type: ignore[attr-defined]
        return method

    return named


class Engine:
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

    def __init__(self, device: str | None = None, *, cache_dir: Any = None, on_compile: Callable[[dict[str, Any]], object] | None = None,
                 on_log: Callable[[int, str], object] | None = None, **options: Any) -> None:
        for field, function in (("on_compile", on_compile), ("on_log", on_log)):
            if function is not None and not callable(function):
                raise TypeError(f"{field}: a {type(function).__name__}; accepted: a function")
        told = None
        if on_compile is not None:
            function = on_compile

            def told(event: dict[str, Any]) -> None:
                event["origin"] = ORIGINS.get(event["origin"], event["origin"])
                function(event)

        texts = _offline.option_texts({"device": device, "cache_dir": cache_dir, **options})
        self._handle: _wavejit.EngineHandle | None = None
        self._device = _device.chosen(texts.get("device"))
        if self._device in _wavejit.targets():
            raise NoDevice(f"device: {self._device!r} is a target; accepted: 'sim:{self._device}' for a simulated GPU, or 'hip'")
        # For the program of the package, where it works for this engine: what that misses is no news of this one.
        self._options = {**texts, "device": self._device, "miss_log": ""}
        self._handle = _wavejit.EngineHandle(texts, told, on_log)
        self._target = self._handle.target()
        self._kept: set[Any] = set()
        self._plans: dict[Any, Any] = {}  # calls that wavejit.torch has checked, by shapes; empty once closed
        self._torch_calls: dict[str, Any] = {}  # the same, as the extension remembers them
        if told is not None or on_log is not None:
            _calling_back.add(self)

    # ---- what it is

    @property
    def device(self) -> str:
        return self._device

    @property
    def device_name(self) -> str:
        """For people."""
        return self._open().device_name()

    @property
    def target(self) -> str:
        """ "gfx950" """
        return self._target

    @property
    def is_simulated(self) -> bool:
        return _device.is_simulated(self._device)

    @property
    def ordinal(self) -> int:
        """The device's number: of ROCm tensors that the engine takes and gives."""
        return _device.ordinal(self._device)

    @property
    def is_closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Waits for the device and lets go of it; arrays that still live keep their memory. Also the end of `with`."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                handle.synchronize()
            finally:
                self._kept.clear()
                self._plans.clear()
                self._torch_calls.clear()
                handle.forget_callbacks()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"wavejit.Engine({self._device!r})" + (" (closed)" if self.is_closed else "")

    def _open(self) -> _wavejit.EngineHandle:
        if self._handle is None:
            raise InvalidArgument("engine: it is closed; accepted: an open one")
        return self._handle

    def _keep(self, call: Any) -> None:
        """Borrowed memory stays until the device has done what was launched over it."""
        if len(self._kept) >= KEPT_CALLS:
            self.synchronize()
        self._kept.add(call)

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

    # ---- calls

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

    def synchronize(self) -> None:
        """Waits for all work of the device. A kernel that failed is told here."""
        handle = self._open()
        kept, self._kept = self._kept, set()
        try:
            handle.synchronize()
        except Error:
            self._kept |= kept
            raise

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
