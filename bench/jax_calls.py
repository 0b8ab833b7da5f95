#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call of wavejit.jax costs the host beside a foreign call of XLA's that does nothing, into empty HIP functions: the best of some rounds.

    PYTHONPATH=<build>/python LD_PRELOAD=<build>/bench/libamdhip64.so.7 jax_calls.py     (./dev bench python)

The memory of JAX's CPUs stands for the device's. Both programs have so many calls one after the other, over the same arrays, and the
same handler serves as on ROCm, but for its question for the stream. Launches of JAX's own around them are in both.
"""
import os
import tempfile
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy
from jax import numpy as jnp

import wavejit
import wavejit.jax
from wavejit import _wavejit
from wavejit.jax import _ffi

CALLS, ROUNDS, REPEATS = 64, 40, 20
TARGETS = {"nothing": "wavejit_nothing", "attention": "wavejit_attention_forward_in_place"}


def program(target):
    """CALLS of them, each with the result of the one before."""
    attributes = {"scale": numpy.float32(0), "softcap": numpy.float32(0), "mask": numpy.int32(1), "flags": numpy.int32(0), "window_left": numpy.int32(0),
                  "window_right": numpy.int32(0), "causal_prefix": numpy.int64(0), "max_query_length": numpy.int64(0), "max_key_length": numpy.int64(0),
                  "given": numpy.int64(0), "splits": numpy.int32(0)}

    def run(q, k, v):
        for _ in range(CALLS):
            (q,) = jax.ffi.ffi_call(TARGETS[target], [jax.ShapeDtypeStruct(q.shape, q.dtype)])(q, k, v, **attributes)
        return q

    return jax.jit(run)


def microseconds(run, arrays):
    """Microseconds of one run of the whole program, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(REPEATS):
            result = run(*arrays)
        jax.block_until_ready(result)
        best = min(best, (time.perf_counter_ns() - begin) / 1000 / REPEATS)
    return best


def main() -> None:
    handlers = _wavejit.jax_handlers(_ffi._minor_version())["cpu"]
    for name in TARGETS.values():
        jax.ffi.register_ffi_target(name, handlers[name], platform="cpu")
    with tempfile.TemporaryDirectory() as cache, wavejit.Engine("hip", cache_dir=cache, log_level="error") as engine:
        _wavejit.give_jax_engine("rocm", 0, engine._open())
        q, k = jnp.zeros((1, 64, 8, 128), jnp.bfloat16), jnp.zeros((1, 256, 2, 128), jnp.bfloat16)
        programs = {name: program(name) for name in TARGETS}
        for run in programs.values():
            jax.block_until_ready(run(q, k, k))
        before = engine.statistics()["calls"]
        jax.block_until_ready(programs["attention"](q, k, k))
        if engine.statistics()["calls"] != before + CALLS:
            raise SystemExit("jax_calls.py: XLA left out calls")
        found = {name: [] for name in programs}
        for _ in range(3):  # in turns
            for name, run in programs.items():
                found[name].append(microseconds(run, (q, k, k)))
        nothing, attention = (min(found[name]) / CALLS for name in ("nothing", "attention"))
        print(f"an empty foreign call of XLA's, {CALLS} of them in a program {nothing:7.2f} us")
        print(f"attention_forward in its place                       {attention:7.2f} us, {attention - nothing:.2f} more")


if __name__ == "__main__":
    main()
