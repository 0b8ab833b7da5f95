# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m wavejit demo`: one attention call on a simulated GPU, checked against numpy in float64."""
from __future__ import annotations

import argparse
import os
import time


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="wavejit demo", description=__doc__)
    parser.add_argument("--device", default=os.environ.get("WAVEJIT_DEVICE") or "sim:gfx950", help="as Engine takes it (default WAVEJIT_DEVICE, else sim:gfx950)")
    device = parser.parse_args(arguments).device

    import numpy

    import wavejit

    random = numpy.random.default_rng(1)
    q = random.standard_normal((1, 64, 8, 128)).astype(numpy.float16)
    k, v = random.standard_normal((2, 1, 256, 2, 128)).astype(numpy.float16)

    try:
        engine = wavejit.Engine(device)
        on_device = [engine.array(each) for each in (q, k, v)]
        call = engine.attention_forward_call(*on_device, causal=True)
        print(f"device   {device} ({engine.device_name})")
        print(f"problem  {call.describe()}")
        for turn in ("first", "second"):
            began = time.perf_counter()
            report = call.launch_with_report()
            engine.synchronize()
            print(f"{turn:8} {(time.perf_counter() - began) * 1e3:.0f} ms, kernel: {report['origin']}")
        out = call.out.numpy().astype(numpy.float64)
    except wavejit.Error as error:
        print(f"wavejit demo: {error}")
        return 1

    # Row i stands at key i + 256 - 64; 4 query heads read one kv head.
    q64 = q[0].astype(numpy.float64)
    k64, v64 = (numpy.repeat(each[0].astype(numpy.float64), 4, axis=1) for each in (k, v))
    scores = numpy.einsum("ihd,jhd->hij", q64, k64) / numpy.sqrt(128)
    scores[:, numpy.arange(256)[None, :] > numpy.arange(64)[:, None] + 256 - 64] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    exact = numpy.einsum("hij,jhd->ihd", weights, v64)
    largest = numpy.abs(out[0] - exact).max()
    right = bool(numpy.isfinite(out).all() and largest < 4e-3)
    print(f"check    largest error {largest:.1e} beside numpy in float64: {'ok' if right else 'WRONG'}")
    return 0 if right else 1
