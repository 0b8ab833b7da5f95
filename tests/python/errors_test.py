# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad input: an exception of the right class that names the field, and nothing launched."""
import inspect
import re
import unittest

import numpy

import wavejit

ENGINE = wavejit.Engine("sim:gfx950")
Q = numpy.ones((1, 8, 2, 64), numpy.float16)
K = numpy.ones((1, 32, 1, 64), numpy.float16)


class Tensor:
    """A DLPack tensor as another library would hand it over."""

    def __init__(self, device=(10, 0), code=2, bits=16, shape=(1, 8, 2, 64), strides=None, says=None, raises=None, read_only=False):
        self.device, self.code, self.bits, self.shape = device, code, bits, list(shape)
        self.strides = list(strides or wavejit._arrays.dense_strides(shape))
        self.says, self.raises = says or device, raises
        self.array = ENGINE.empty(shape, "fp16")

    def __dlpack_device__(self):
        return self.says

    def __dlpack__(self, *, stream=None, max_version=None):
        if self.raises:
            raise self.raises
        return wavejit._wavejit.export_dlpack(self, self.array.data_ptr, self.code, self.bits, self.shape, self.strides, *self.device, True)


def kernels_used():
    counts = ENGINE.statistics()
    return counts["memory_hits"] + counts["disk_hits"] + counts["compiled"]


class Refused(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(kernels_used(), 0)  # nothing was launched

    def refuses(self, kind, words, function, *arguments, **given):
        with self.assertRaisesRegex(kind, words) as caught:
            function(*arguments, **given)
        if issubclass(kind, wavejit.Error):
            self.assertIs(type(caught.exception), kind)
            self.assertEqual((caught.exception.status, caught.exception.detail), (kind.status, str(caught.exception)))

    def test_dtypes(self):
        bad = wavejit.InvalidArgument
        self.refuses(bad, "q: dtype float64; accepted: fp16, bf16, e4m3, int8, fp32$", ENGINE.attention_forward, Q.astype(float), K, K)
        self.refuses(bad, "k: dtype fp32; accepted: fp16, bf16, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, int8$", ENGINE.attention_forward, *[each.astype(numpy.float32) for each in (Q, K, K)])
        self.refuses(bad, 'q: dtype uint16; accepted: fp16, bf16, e4m3, int8, fp32 .with dtype="bf16" such numbers are its bits', ENGINE.attention_forward, Q.view(numpy.uint16), K, K)
        self.refuses(bad, "q: dtype e5m2; accepted: fp16, bf16, e4m3, int8, fp32$", ENGINE.attention_forward, Tensor(code=12, bits=8), K, K)
        self.refuses(bad, "k: dtype fp32; accepted: fp16, e4m3, e5m2, e4m3_fnuz, e5m2_fnuz, int8$", ENGINE.attention_forward, Q, K.astype(numpy.float32), K)
        self.refuses(bad, "v: dtype int32; accepted: fp16$", ENGINE.attention_forward, Q, K, ENGINE.empty(K.shape, "int32"))
        self.refuses(bad, "bias: dtype float64; accepted: fp16, fp32$", ENGINE.attention_forward, Q, K, K, bias=numpy.zeros((8, 32)))
        self.refuses(bad, "out: dtype int32; accepted: fp16, fp32, e4m3, e4m3_fnuz, int8$", ENGINE.attention_forward, Q, K, K, ENGINE.empty(Q.shape, "int32"))
        self.refuses(bad, "out: dtype bf16; accepted: fp16, fp32, e4m3, e4m3_fnuz, int8$", ENGINE.attention_forward, Q, K, K, "bf16")
        self.refuses(bad, "scores: dtype float64; accepted: fp16, bf16, fp32$", ENGINE.softmax_lse, numpy.zeros((1, 1, 2, 64)))
        self.refuses(bad, "q: dtype fp16; accepted: bf16", ENGINE.attention_forward, Q, K, K, dtype="bf16")
        self.refuses(bad, "dtype: dtype fp8; accepted: fp16, bf16, e4m3$", ENGINE.attention_forward, Q, K, K, dtype="fp8")
        self.refuses(bad, "lse: dtype fp16; accepted: fp32", ENGINE.attention_forward, Q, K, K, lse=numpy.zeros((1, 2, 8), numpy.float16))
        self.refuses(bad, "key_lengths: dtype float64; accepted: integers", ENGINE.attention_forward, Q, K, K, key_lengths=[1.5])
        self.refuses(bad, "key_lengths: a number beyond int32", ENGINE.attention_forward, Q, K, K, key_lengths=[1 << 40])
        self.refuses(bad, "q: dtype float16x2", ENGINE.attention_forward, lanes_of_two(), K, K)
        self.refuses(bad, "q: dtype complex64", ENGINE.attention_forward, Tensor(code=5, bits=64), K, K)
        self.refuses(bad, "foreign byte order", ENGINE.attention_forward, Q.astype(">f2"), K, K)

    def test_what_no_kernel_has(self):
        """Head dim 512, blocks of quantised numbers, outputs of 8 bits, dropout: by name, with what there is."""
        for target in ("gfx950", "gfx942"):
            with wavejit.Engine(f"sim:{target}") as engine:
                self.refuses(wavejit.Unsupported, f"head dim 512 has no kernel on {target}; use head dim 256, 192/128, 128 or 64", engine.attention_forward, *(numpy.ones((1, 8, 2, 512), Q.dtype) for _ in range(3)))
                self.refuses(wavejit.InvalidArgument, "k: dtype uint8; accepted: fp16, e4m3, e5m2", engine.attention_forward, Q, K.view(numpy.uint8), K)
                self.refuses(wavejit.InvalidArgument, "o_scale is missing beside out of e4m3; accepted: ", engine.attention_forward, Q, K, K, "e4m3")
            for word, answer in (("cache=q8_0", "no type of K and V; accepted: cache=e4m3"), ("cache=q4_0", "no type of K and V; accepted: cache=e4m3"),
                                 ("out=e4m3", "not known .did you mean .o=e4m3."), ("dropout=0.1", "not known; accepted: ")):  # fmt: skip
                self.refuses(wavejit.InvalidArgument, f"'{word}' .* is {answer}", wavejit.explain, f"attention_forward fp16 b1 q1 k64 h8 d128 {word}", target=target)

    def test_shapes(self):
        bad = wavejit.InvalidArgument
        self.refuses(bad, r"q: shape \(8, 2, 64\); accepted: \[batch, length, heads, head dim\]", ENGINE.attention_forward, Q[0], K, K)
        self.refuses(bad, "k.sizes", ENGINE.attention_forward, Q, numpy.ones((2, 32, 1, 64), numpy.float16), K)
        self.refuses(bad, "out: shape", ENGINE.attention_forward, Q, K, K, numpy.zeros(3, numpy.float16))
        self.refuses(bad, "^out.sizes", ENGINE.attention_forward, Q, K, K, numpy.zeros_like(K))
        self.refuses(bad, "lse: shape", ENGINE.attention_forward, Q, K, K, lse=numpy.zeros(16, numpy.float32))
        self.refuses(bad, "bias: shape", ENGINE.attention_forward, Q, K, K, bias=numpy.zeros(8, numpy.float16))
        self.refuses(bad, r"key_lengths: shape \(2,\); accepted: \[sequences\], which is \[1\]", ENGINE.attention_forward, Q, K, K, key_lengths=[3, 4])
        self.refuses(bad, r"block_table: shape \(2, 1\)", ENGINE.attention_forward, Q, K, K, block_table=[[0], [0]], key_lengths=[3])
        self.refuses(bad, "max_key_length is missing", ENGINE.attention_forward, Q, K, K, block_table=[[0]], key_lengths=ENGINE.array([3], "int32"))
        self.refuses(bad, "table_starts without block_table", ENGINE.attention_forward, Q, K, K, table_starts=[0, 1])
        self.refuses(bad, "block_table: .*inhomogeneous", ENGINE.attention_forward, Q, K, K, block_table=[[0], [0, 1]], key_lengths=[3])
        self.refuses(bad, r"query_starts: shape \(1,\); accepted: \[sequences \+ 1\]", ENGINE.attention_forward, Q, K, K, query_starts=[0])
        self.refuses(bad, r"key_starts: shape \(3,\); accepted: .* which is \[2\]", ENGINE.attention_forward, Q, K, K, query_starts=[0, 8], key_starts=[0, 8, 9])
        self.refuses(TypeError, "shape: 'abc'", ENGINE.empty, "abc", "fp16")
        self.refuses(bad, "window = 5", ENGINE.attention_forward, Q, K, K, window=5)
        self.refuses(bad, "shape = ", ENGINE.empty, (-1, 2), "fp16")
        self.refuses(wavejit.Unsupported, "head dim", ENGINE.attention_forward, *(numpy.ones((1, 8, 4, 264), Q.dtype) for _ in range(3)))

    def test_names_are_those_of_the_call(self):
        """Where C has another name, more dimensions, or an address."""
        q, k, fp32 = numpy.ones((1, 5, 4, 64), numpy.float16), numpy.ones((1, 6, 2, 64), numpy.float16), numpy.float32
        latent, rows = numpy.ones((1, 5, 16, 576), numpy.float16), numpy.ones((1, 6, 1, 576), numpy.float16)
        entries = numpy.zeros((1, 5, 3), numpy.int32)

        def ones(*shape):
            return numpy.ones(shape, fp32)

        def forward(**words):
            return ENGINE.attention_forward(q, k, k, **words)

        def latently(**words):
            return ENGINE.attention_latent(latent, rows, scale=0.1, **words)

        def backward(**words):
            return ENGINE.attention_backward(**{"q": q, "k": k, "v": k, "out": q, "lse": ones(1, 4, 5), "d_out": q, **words})

        lists = wavejit.BlockLists(indices=numpy.zeros((1, 3, 1, 3), numpy.int32))
        for call, words, told in (
            (forward, {"sinks": ones(3)}, r"sinks.sizes\[0\] = 3; accepted: 4 \(q.sizes\[2\]\)$"),
            (forward, {"sinks": ones(1, 3)}, r"sinks\.sizes\[1\] = 3; accepted: 4 "),
            (forward, {"alibi": ones(3)}, r"alibi.sizes\[0\] = 3; accepted: 4 \(q.sizes\[2\]\)$"),
            (forward, {"out": numpy.ones((1, 7, 4, 64), numpy.float16)}, r"out\.sizes\[1\] \(length\) = 7; accepted: 5 "),
            (forward, {"bias": ones(5, 7)}, r"bias\.sizes\[1\] = 7; accepted: 6 "),
            (forward, {"mask": numpy.ones((3, 5, 6), bool)}, r"mask\.sizes\[0\] = 3; accepted: 1 or 4 "),
            (forward, {"k_scale": 2.0}, r"k_scale: given; accepted: None beside k of fp16: only caches of 8 bits have scales$"),
            (forward, {"window": (3.5, 1)}, r"window = \(3\.5, 1\); accepted: \(left, right\), each an integer from 0 to 2147483647, or None for no limit$"),
            (forward, {"window": (1 << 40, None)}, r"window = \(1099511627776, None\); accepted"),
            (forward, {"local_chunk": 4}, "local_chunk: given; accepted: local_chunk with causal and without window$"),
            (forward, {"indices": entries, "second_k": k, "second_v": k, "second_indices": entries}, "second_indices: given; accepted: None, or slots beside indices with slots = True$"),
            (forward, {"lists": lists}, r"lists\.shape\[1\] = 3; accepted: 1, 2"),
            (latently, {"sinks": ones(3)}, r"sinks.sizes\[0\] = 3; accepted: 16 \(q.sizes\[2\]\)$"),
            (latently, {"out": numpy.ones((1, 7, 16, 512), numpy.float16)}, r"out\.sizes\[1\] = 7; accepted: 5 "),
            (latently, {"row_scales": "in_rows"}, "row_scales: given; accepted: none beside k of fp16"),
            (backward, {"d_out": numpy.ones((1, 7, 4, 64), numpy.float16)}, r"d_out\.sizes\[1\] = 7; accepted: 5 "),
            (backward, {"sinks": ones(4), "d_sinks": ones(1, 3)}, r"d_sinks\.sizes\[1\] = 3; accepted: 4 "),
            (backward, {"d_sinks": True}, "sinks: None; accepted: the sinks of the forward call, beside d_sinks$"),
            (backward, {"delta": ones(1, 4, 5)}, "out: given; accepted: None beside a delta"),
        ):
            with self.subTest(told), self.assertRaisesRegex((wavejit.InvalidArgument, wavejit.Unsupported), f"^{told}") as caught:
                call(**words)
            self.assertNotIn("0x", str(caught.exception))

    def test_each_name_of_c_has_one_of_python(self):
        for ours, theirs in {pair for names in wavejit._fields.C_NAMES.values() for pair in names.items()}:
            told = wavejit._errors.error_of(1, f"{theirs}.sizes[1] = 3; accepted: 4 ({theirs}.sizes[2])").detail
            ours = ours if "[" in ours or ours not in ("outs", "lses") else f"{ours}[0]"
            self.assertEqual(told, f"{ours}.sizes[1] = 3; accepted: 4 ({ours}.sizes[2])")
        # Lines have words of their own, which are those of C.
        self.refuses(wavejit.Unsupported, "^descriptor: bool_mask beside local chunks", wavejit.explain, "attention_forward bf16 b1 q64 k64 h2 d64 causal chunked=64 bool_mask=1", target="gfx950")
        # A library's path, a line's words and another status stay as they are.
        for status, text in ((1, "'sink=x' in 'attention_forward o=y' is no word"), (8, "o.sizes[1] = 3"), (13, "attention_forward bf16 b1 q1 k64 h2 d64 sink")):
            self.assertEqual(wavejit._errors.error_of(status, text).detail, text)

    def test_numbers_that_the_host_knows(self):
        """Lists and numpy arrays: checked without check_lengths, and the field that was given is the one that is named."""
        bad, call = wavejit.InvalidArgument, ENGINE.attention_forward
        packed = {"query_starts": [0, 5, 8], "key_starts": [0, 20, 32]}
        two, cache = numpy.ones((2, 1, 2, 64), numpy.float16), numpy.ones((4, 16, 1, 64), numpy.float16)
        paged = {"block_table": [[3, 1], [0, 99]], "key_lengths": [20, 16]}
        listed = {"block_table": [3, 1, 0], "table_starts": [0, 2, 3], "key_lengths": [20, 16]}
        for words, given, pattern in (
            ((Q, K, K), {"key_lengths": [-1]}, r"^key_lengths\[0\] = -1; accepted: 0 … 32, the keys of the sequence"),
            ((Q, K, K), {"key_lengths": numpy.array([33])}, r"^key_lengths\[0\] = 33; accepted: 0 … 32"),
            ((two, *[numpy.ones((2, 50, 1, 64), numpy.float16)] * 2), {"key_lengths": [-1, 50]}, r"^key_lengths\[0\] = -1; accepted: 0 … 50"),
            ((Q, K, K), {"first_keys": [33]}, r"^first_keys\[0\] = 33; accepted: 0 … 32, the rows of k and v"),
            ((Q, K, K), {"first_keys": [30], "key_lengths": [3]}, r"^key_lengths\[0\] = 3; accepted: 0 … 2"),
            ((Q, K, K), packed | {"query_starts": [0, 5, 3]}, r"^query_starts\[2\] = 3; accepted: 5 … 8 .after 5, and q has 8 rows"),
            ((Q, K, K), packed | {"query_starts": [1, 5, 8]}, r"^query_starts\[0\] = 1; accepted: 0"),
            ((Q, K, K), packed | {"query_starts": [0, 5, 9]}, r"^query_starts\[2\] = 9; accepted: 5 … 8"),
            ((Q, K, K), packed | {"max_query_length": 4}, r"^query_starts\[1\] = 5; accepted: 0 … 4 .after 0, max_query_length = 4"),
            ((Q, K, K), packed | {"key_starts": [0, -1, 32]}, r"^key_starts\[1\] = -1; accepted: 0 … 32"),
            ((Q, K, K), packed | {"key_starts": [5, 20, 32]}, r"^key_starts\[0\] = 5; accepted: 0"),
            ((Q, K, K), packed | {"key_starts": [0, 20, 40]}, r"^key_starts\[2\] = 40; accepted: 20 … 32 .after 20, and k has 32 rows"),
            ((Q, K, K), packed | {"key_lengths": [21, 1]}, r"^key_lengths\[0\] = 21; accepted: 0 … 20"),
            ((two, cache, cache), paged | {"block_table": [[3, -1], [0, 99]]}, r"^block_table\[0\]\[1\] = -1; accepted: 0 … 3, the pages of the cache"),
            ((two, cache, cache), paged | {"block_table": [[3, 1], [4, 0]]}, r"^block_table\[1\]\[0\] = 4; accepted: 0 … 3"),
            ((two, cache, cache), paged | {"key_lengths": [33, 1]}, r"^key_lengths\[0\] = 33; accepted: 0 … 32, the keys of the sequence's 2 pages"),
            ((two, cache, cache), paged | {"max_key_length": 19}, r"^key_lengths\[0\] = 20; accepted: 0 … 19"),
            ((two, cache, cache), paged | {"key_lengths": [20, -5]}, r"^key_lengths\[1\] = -5"),
            ((two, cache, cache), listed | {"table_starts": [0, 2, 2]}, r"^key_lengths\[1\] = 16; accepted: 0, the keys of the sequence's 0 pages"),
            ((two, cache, cache), listed | {"table_starts": [0, 2, 4]}, r"^table_starts\[2\] = 4; accepted: 2 … 3"),
            ((two, cache, cache), listed | {"block_table": [3, 1, 7]}, r"^block_table\[2\] = 7; accepted: 0 … 3"),
        ):
            with self.subTest(pattern):
                self.refuses(bad, pattern, call, *words, **given)
        self.refuses(bad, r"^key_lengths\[0\] = 65; accepted: 0 … 64", ENGINE.softmax_lse, numpy.zeros((1, 1, 2, 64), numpy.float32), key_lengths=[65])
        for causal in ("yes", None, 2):
            self.refuses(bad, f"^causal = {causal!r}; accepted: True, False", call, Q, K, K, causal=causal)

    def test_layouts(self):
        bad = wavejit.InvalidArgument
        rows = ENGINE.array(numpy.ones((1, 8, 2, 128), numpy.float16))
        self.refuses(bad, r"q.strides\[3\]", ENGINE.attention_forward, rows[..., ::2], K, K)
        numbers = ENGINE.array([1, 2, 3, 4], "int32")[::2]
        self.refuses(bad, "query_starts: strides", ENGINE.attention_forward, Q, K, K, query_starts=numbers, key_lengths=[4], max_query_length=8)
        self.refuses(bad, "negative|strides", ENGINE.attention_forward, Tensor(strides=(1024, -128, 64, 1)), K, K)
        array = ENGINE.array(Q)
        self.refuses(bad, "^out.data = .*memory that q does not use", ENGINE.attention_forward, array, K, K, array)

    def test_devices(self):
        bad = wavejit.InvalidArgument
        self.refuses(bad, "q: a tensor on rocm:3; accepted: rocm:0", ENGINE.attention_forward, Tensor(device=(10, 3)), K, K)
        self.refuses(bad, "q: a tensor on cuda:0; accepted: rocm:0, or host memory", ENGINE.attention_forward, Tensor(device=(2, 0)), K, K)
        self.refuses(bad, "q: its capsule is on device", ENGINE.attention_forward, Tensor(device=(2, 0), says=(10, 0)), K, K)
        self.refuses(bad, "k: its __dlpack__ says: it needs a gradient", ENGINE.attention_forward, Q, Tensor(raises=BufferError("it needs a gradient")), K)
        other = wavejit.Engine("sim:gfx942")
        self.refuses(bad, "v: an array on sim:gfx942; accepted: sim:gfx950", ENGINE.attention_forward, Q, K, other.array(K))
        self.refuses(wavejit.NoDevice, "hip|HIP", wavejit.Engine, "hip:7", log_level="off")
        self.refuses(wavejit.NoDevice, "options.device", wavejit.Engine, "sim:gfx1")
        self.refuses(wavejit.NoDevice, "device: 'gfx942' is a target; accepted: 'sim:gfx942' for a simulated GPU, or 'hip'", wavejit.Engine, "gfx942")

    def test_memory(self):
        bad = wavejit.InvalidArgument
        freed = ENGINE.array(Q)
        freed.free()
        self.assertTrue(freed.is_freed)
        self.refuses(bad, "q: a freed array", ENGINE.attention_forward, freed, K, K)
        self.refuses(bad, "array: a freed array", freed.numpy)
        self.refuses(bad, "array: a freed array", freed.__dlpack__)
        self.refuses(bad, "array: a freed array", lambda: freed[0])
        fixed = numpy.zeros_like(Q)
        fixed.flags.writeable = False
        self.refuses(bad, "out: memory for reading only", ENGINE.attention_forward, Q, K, K, fixed)
        self.refuses((wavejit.OutOfMemory), "memory", ENGINE.empty, (1 << 44,), "fp16")
        self.refuses(bad, "workspace", ENGINE.attention_forward, Q, numpy.ones((1, 2100, 1, 64), numpy.float16), numpy.ones((1, 2100, 1, 64), numpy.float16), splits=2,
                     workspace=ENGINE.empty((16,), "fp32"))
        self.refuses(bad, "bytes 0 … 64 of an allocation of 8", wavejit._wavejit.DeviceMemory(ENGINE._open(), 8).copy_in, 0, bytes(64))

    def test_types_of_python(self):
        self.refuses(TypeError, "q: a str; accepted: a DeviceArray, a numpy array", ENGINE.attention_forward, "q", K, K)
        self.refuses(TypeError, "k: a list", ENGINE.attention_forward, Q, [1], K)
        self.refuses(TypeError, "stream: a str", ENGINE.attention_forward, Q, K, K, stream="default")
        self.refuses(wavejit.InvalidArgument, "stream = 1; accepted", ENGINE.attention_forward, Q, K, K, stream=1)
        self.refuses(TypeError, "workspace: a ndarray", ENGINE.attention_forward, Q, K, K, workspace=Q)
        self.refuses(TypeError, r"^attention_forward: 'scal' is no argument \(did you mean 'scale'\?\); accepted: q, k, v, out, scale, ", ENGINE.attention_forward, Q, K, K, scal=1)
        for other, own in (("sm_scale", "scale"), ("window_size", "window"), ("is_causal", "causal"), ("cu_seqlens_q", "query_starts")):
            for ask in (ENGINE.attention_forward, ENGINE.attention_forward_call):
                self.refuses(TypeError, f"^attention_forward: '{other}' is no argument; use {own}; accepted: q, k, v, ", ask, Q, K, K, **{other: 1})
        self.refuses(TypeError, "^cache_append: 'colour' is no argument; accepted: k, v, ", ENGINE.cache_append, K, K, K, K, [1], colour="red")
        known = {name for kind in wavejit._family_calls.FAMILIES.values() for name in inspect.signature(kind).parameters}
        self.assertEqual(set(wavejit._other_names.OTHER_NAMES.values()) - known, set())
        self.assertEqual(set(wavejit._other_names.OTHER_NAMES) & known, set())
        self.refuses(wavejit.InvalidArgument, "scale = 'x'; accepted: a number that fp32 holds", ENGINE.attention_forward, Q, K, K, scale="x")
        self.refuses(wavejit.InvalidArgument, "splits = 1.5; accepted: an integer of 64 bits", ENGINE.attention_forward, Q, K, K, splits=1.5)
        self.refuses(wavejit.InvalidArgument, "splits = ", ENGINE.attention_forward, Q, K, K, splits=1 << 40)
        self.refuses(wavejit.InvalidArgument, "splits", ENGINE.attention_forward, Q, K, K, splits=-1)
        self.refuses(wavejit.InvalidArgument, "softcap", ENGINE.attention_forward, Q, K, K, softcap=-1.0)
        self.refuses(wavejit.InvalidArgument, "compile = 'soon'; accepted: 'wait', 'never', 'behind'", ENGINE.attention_forward, Q, K, K, compile="soon")
        self.refuses(wavejit.InvalidArgument, "key_lengths", ENGINE.attention_forward, Q, K, K, key_lengths=[33], check_lengths=True)

    def test_integers_are_integers(self):
        """What operator.index takes, in every argument that is one, and nothing that can only be made an integer."""
        pages, latent = numpy.ones((4, 16, 1, 64), numpy.float16), numpy.ones((1, 1, 16, 576), numpy.float16)

        def forward(**words):
            return ENGINE.attention_forward(Q, K, K, **words)

        def append(**words):
            return ENGINE.cache_append(K, K, pages, pages.copy(), list(range(32)), rotary="halves", rotary_base=1e4, positions=list(range(32)), **words)

        def backward(**words):
            return ENGINE.attention_backward(Q, K, K, Q, numpy.ones((1, 2, 8), numpy.float32), Q, **words)

        def indexer(**words):
            return ENGINE.sparse_indexer(None, None, None, scores=numpy.zeros((1, 2, 5), numpy.float32), **words)

        def lists(**words):
            numbers = {"indices": numpy.zeros(1, numpy.int32), "starts": [0, 1], "shape": (1, 1, 1)}
            return forward(lists=wavejit.BlockLists(**{**numbers, **words}))

        def latently(**words):
            return ENGINE.attention_latent(latent, K, scale=1.0, **words)

        calls = ((forward, ("splits", "causal_prefix", "max_query_length", "max_key_length", "max_total_keys", "launches")), (lambda **words: forward(causal=True, **words), ("local_chunk",)),
                 (append, ("rotary_dim",)), (indexer, ("top_k",)), (latently, ("value_dim", "splits", "launches")),
                 (backward, ("causal_prefix", "max_query_length", "max_key_length")), (lists, ("rows", "keys")))
        for call, fields in calls:
            for field in fields:
                for given in ("3", numpy.float32(2.7), 2.0, numpy.array([2]), 1j):
                    with self.subTest(field=field, given=given):
                        self.refuses(wavejit.InvalidArgument, f"^(lists.)?{field} = {re.escape(repr(given))}; accepted: (an integer|None, 1, 2)", call, **{field: given})
        self.refuses(wavejit.InvalidArgument, "^lists.shape = '1'; accepted: an integer", lists, shape=(1, 1, "1"))
        for field in ("causal", "check_lengths", "bias_by_tile"):
            for given in ("3", 2.7, 1.0, -1, None):
                self.refuses(wavejit.InvalidArgument, f"^{field} = {given!r}; accepted: True, False$", forward, **{field: given})
        self.refuses(wavejit.InvalidArgument, "^slots = '3'; accepted: True, False$", forward, indices=numpy.zeros((1, 8, 3), numpy.int32), slots="3")
        for call, field in ((forward, "compile"), (forward, "score_rounding"), (forward, "launches"), (append, "rotary"), (latently, "row_scales")):
            self.refuses(wavejit.InvalidArgument, rf"^{field} = \['x'\]; accepted: ", call if field != "rotary" else lambda rotary: ENGINE.cache_append(K, K, pages, pages, list(range(32)), rotary=rotary), **{field: ["x"]})
        self.refuses(wavejit.InvalidArgument, "^sums_before = 3; accepted: a list of 'dq', 'dk_dv'$", backward, sums_before=3)
        self.assertTrue(ENGINE.attention_forward_call(Q, K, K, splits=numpy.int64(1), causal=numpy.True_, window=(numpy.int8(3), None)).supported())

    def test_numbers_are_what_fp32_holds(self):
        """A scale that fp32 rounds to 0 would be the default one, and a softcap none."""
        e4m3 = ENGINE.empty(K.shape, "e4m3")
        for given, told in ((1e-50, "1e-50"), (1e39, "1e.39"), (10**400, "10{79}…")):
            for field in ("scale", "softcap"):
                self.refuses(wavejit.InvalidArgument, f"^{field} = {told}; accepted: a number that fp32 holds", ENGINE.attention_forward, Q, K, K, **{field: given})
            self.refuses(wavejit.InvalidArgument, f"^k_scale = {told}; accepted: a number that fp32 holds", ENGINE.attention_forward, Q, e4m3, e4m3, k_scale=given)

    def test_flags_of_c_have_pythons_names(self):
        self.refuses(wavejit.InvalidArgument, "^bias_by_tile = True without a bias; accepted: it beside a bias$", ENGINE.attention_forward, Q, K, K, bias_by_tile=True)
        self.refuses(wavejit.InvalidArgument, "^scale = 0; accepted: the model's, such as ((?!WAVEJIT).)*$", ENGINE.attention_latent, numpy.ones((1, 1, 16, 576), Q.dtype), numpy.ones((1, 9, 1, 576), Q.dtype), scale=None)

    def test_options_and_lines(self):
        self.refuses(TypeError, "'colour' is no option; accepted: device", wavejit.Engine, "sim:gfx950", colour="red")
        self.refuses(wavejit.InvalidArgument, "pipeline", wavejit.Engine, "sim:gfx950", pipeline="none")
        self.refuses(TypeError, "log_level: a float", wavejit.Engine, "sim:gfx950", log_level=1.5)
        self.refuses(TypeError, "on_compile: a str", wavejit.Engine, "sim:gfx950", on_compile="x")
        self.refuses(wavejit.InvalidArgument, "without a zero byte", wavejit.Engine, "sim:gfx950\0")
        self.refuses(wavejit.InvalidArgument, "attention", wavejit.explain, "attention", target="gfx950")
        self.refuses(wavejit.InvalidArgument, "gfx1", wavejit.explain, "attention_forward bf16 b1 q64 k64 h2 d64", target="gfx1")
        self.refuses(TypeError, "descriptors: a int", ENGINE.prepare, [3])
        self.refuses(TypeError, "descriptors: a int", ENGINE.prepare, 3)
        self.refuses(TypeError, "descriptor: a int", wavejit.explain, 3)
        self.refuses(TypeError, "targets: a int", wavejit.prebuild, [], 950)
        self.refuses(wavejit.InvalidArgument, "jobs = -1", ENGINE.prepare, [], jobs=-1)
        self.refuses(wavejit.InvalidArgument, "jobs = 'x'", wavejit.prebuild, [], "gfx950", jobs="x")
        self.refuses(TypeError, "progress: a str", ENGINE.prepare, [], progress="bar")

    def test_closed_engine(self):
        with wavejit.Engine("sim:gfx950") as engine:
            array = engine.array(Q)
            call = engine.attention_forward_call(array, array, array)
        self.assertTrue(engine.is_closed)
        for use in (call.launch, array.numpy, engine.statistics, engine.synchronize, lambda: engine.array(Q)):
            self.refuses(wavejit.InvalidArgument, "engine: it is closed", use)
        engine.close()

    def test_capsules(self):
        capsule = ENGINE.array(Q).__dlpack__()
        wavejit._wavejit.BorrowedTensor(capsule)
        self.refuses(wavejit.InvalidArgument, "no DLPack capsule, or one that was used", wavejit._wavejit.BorrowedTensor, capsule)
        self.refuses(wavejit.InvalidArgument, "no DLPack capsule", wavejit._wavejit.BorrowedTensor, 5)
        self.refuses(TypeError, "'x' is no field", wavejit._wavejit.calls.softmax_lse(ENGINE._open()).set_number, "x", 1)


class Serving(unittest.TestCase):
    def test_what_is_not_loaded(self):
        engine = wavejit.Engine("sim:gfx950", cache_mode="off")
        with self.assertRaises(wavejit.NotReady):
            engine.attention_forward(Q, K, K, compile="never")
        engine.seal()
        with self.assertRaisesRegex(wavejit.Sealed, "attention_forward fp16 b1 q8 k32 h2/1 d64"):
            engine.attention_forward(Q, K, K)

    def test_classes_are_those_of_python_too(self):
        self.assertTrue(issubclass(wavejit.InvalidArgument, ValueError))
        self.assertTrue(issubclass(wavejit.OutOfMemory, MemoryError))
        statuses = [kind.status for kind in wavejit._errors._CLASSES.values()]
        self.assertEqual(statuses, list(range(1, 14)))
        self.assertEqual(wavejit._wavejit.status_text(13), "sealed")
        self.assertIs(type(wavejit._errors.error_of(99, "x")), wavejit.Error)


def lanes_of_two():
    """What export_dlpack does not make: two elements that count as one."""
    import ctypes

    tensor = Tensor()
    capsule = tensor.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # version (8), context and deleter (16), flags (8), data (8), device (8), ndim (4), code and bits (2)
    ctypes.c_uint16.from_address(get(capsule, b"dltensor_versioned") + 8 + 16 + 8 + 8 + 8 + 4 + 2).value = 2
    tensor.__class__ = type("Vectors", (Tensor,), {"__dlpack__": lambda self, **_: capsule})
    return tensor


if __name__ == "__main__":
    unittest.main()
