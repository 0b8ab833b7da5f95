# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuPy's arrays through DLPack on a simulated GPU beneath AMD's runtime: in and out without copies, on streams of CuPy's, against float64.

    wavejit sim --target gfx942 -- python3 cupy_attention_test.py
"""
import sys

import cupy
import numpy
import reference

import wavejit


class Judge:
    def __init__(self):
        self.cases = 0
        self.wrong = []
        self.least = numpy.inf

    def holds(self, name, truth):
        self.cases += 1
        if not truth:
            self.wrong.append(name)

    def near(self, name, got, want, decibels=50):
        """As vectors: fp16 rounds each element by 2^-12 of itself."""
        error = numpy.square(numpy.asarray(got, numpy.float64) - want).sum()
        found = 10 * numpy.log10(numpy.square(want).sum() / max(error, 1e-300)) if numpy.isfinite(error) else -numpy.inf
        self.least = min(self.least, found)
        self.holds(f"{name}: {found:.1f} decibels", found >= decibels)


def in_float64(q, k, v, **words):
    results = [reference.attention(*(cupy.asnumpy(each[i]).astype(numpy.float64) for each in (q, k, v)), **words) for i in range(q.shape[0])]
    return tuple(numpy.stack(each) for each in zip(*results))


def main():
    judge, engine = Judge(), wavejit.Engine("hip")
    random = numpy.random.default_rng(1)
    q, k, v = (cupy.asarray(random.standard_normal(shape).astype(numpy.float16)) for shape in ((2, 24, 4, 64), (2, 40, 2, 64), (2, 40, 2, 64)))
    want, sums = in_float64(q, k, v, causal=True)

    out, lse = engine.attention_forward(q, k, v, causal=True, lse=True)
    back = cupy.from_dlpack(out)
    judge.holds("the result is CuPy's without a copy", back.data.ptr == out._address and back.dtype == cupy.float16 and back.shape == (2, 24, 4, 64))
    judge.near("O", cupy.asnumpy(back), want)
    judge.near("LSE", cupy.asnumpy(cupy.from_dlpack(lse)), sums, 90)

    mine = cupy.zeros_like(q)
    engine.attention_forward(q, k, v, mine, causal=True)
    engine.synchronize()
    judge.holds("an output of CuPy's has the same bits", bool((mine == back).all()))

    # Views of a cache as they lie: heads first, and K and V in turn.
    together = cupy.stack([k, v], axis=1).transpose(0, 1, 3, 2, 4).copy().transpose(0, 1, 3, 2, 4)
    views = engine.attention_forward(q, together[:, 0], together[:, 1], causal=True)
    judge.holds("strided views have the same bits", bool((cupy.from_dlpack(views) == back).all()))

    # A stream of CuPy's: its work in front and behind, nobody waits in between.
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        spread = cupy.zeros((64, *q.shape), cupy.float16)
        for _ in range(8):
            spread += 1
        half = (q + spread[0] - 8) / 2
        result = cupy.empty_like(q)
        engine.attention_forward(half, k, v, result, causal=True, stream=stream)
        doubled = 2 * result
    stream.synchronize()
    judge.near("on a stream", cupy.asnumpy(doubled), 2 * in_float64((q / 2), k, v, causal=True)[0])
    call = engine.attention_forward_call(half, k, v, result, causal=True, stream=stream)
    with stream:
        half[...] = q
        call.launch()
        tripled = 3 * result
    stream.synchronize()
    judge.near("a call that is launched again", cupy.asnumpy(tripled), 3 * want)

    # CuPy waits for what was launched on another stream when it takes a result.
    other = engine.attention_forward(q, k, v, causal=True, stream=stream)
    judge.holds("across streams", bool((cupy.from_dlpack(other) == back).all()))

    lengths = cupy.asarray([40, 17], cupy.int32)
    cut = cupy.asnumpy(cupy.from_dlpack(engine.attention_forward(q, k, v, key_lengths=lengths, max_key_length=None)))
    judge.near("lengths on the device", cut[1], in_float64(q[1:], k[1:, :17], v[1:, :17])[0][0])
    gradients = engine.attention_backward(q, k, v, out, lse, cupy.ones_like(q), causal=True)
    judge.holds("gradients are finite and there", all(bool(cupy.isfinite(cupy.from_dlpack(each)).all()) and bool(cupy.from_dlpack(each).any()) for each in gradients[:3]))

    try:
        engine.attention_forward(q.astype(cupy.float64), k, v)
        judge.holds("float64 is refused", False)
    except wavejit.InvalidArgument as error:
        judge.holds(f"float64 is refused by name: {error}", "q: dtype" in str(error))
    for line in judge.wrong:
        print("WRONG:", line)
    print(f"CuPy {cupy.__version__} on {engine.device_name}: {judge.cases} cases, {len(judge.wrong)} wrong; nearest to the limit of 50 decibels: {judge.least:.1f}")
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
