# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX and its ROCm plug-in on a simulated GPU: attention forward and its gradient, and what they are made of, against float64.

    wavejit sim --target gfx942 -- python3 jax_test.py

XLA's autotuner must be off (XLA_FLAGS=--xla_gpu_autotune_level=0): it runs every candidate.
"""
import sys

import jax
import numpy
from jax import numpy as jnp

from judge import Judge

# Products in float32 as such: XLA's default on this target rounds their operands.
jax.config.update("jax_default_matmul_precision", "highest")


def attention(q, k, v, causal):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / numpy.sqrt(q.shape[-1]).astype(numpy.float32)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def attention_in_float64(q, k, v, d_out, causal):
    """O, dQ, dK, dV in closed form."""
    scale = 1 / numpy.sqrt(q.shape[-1])
    scores = numpy.einsum("bqhd,bkhd->bhqk", q, k) * scale
    if causal:
        scores = numpy.where(numpy.tril(numpy.ones(scores.shape[-2:], bool)), scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    d_weights = numpy.einsum("bqhd,bkhd->bhqk", d_out, v)
    d_scores = weights * (d_weights - (d_weights * weights).sum(-1, keepdims=True)) * scale
    return (numpy.einsum("bhqk,bkhd->bqhd", weights, v), numpy.einsum("bhqk,bkhd->bqhd", d_scores, k),
            numpy.einsum("bhqk,bqhd->bkhd", d_scores, q), numpy.einsum("bhqk,bqhd->bkhd", weights, d_out))


def main():
    device = jax.devices()[0]
    if device.platform not in ("rocm", "gpu"):
        sys.exit(f"jax_test.py: JAX computes on {device}, not on the simulated GPU")
    judge = Judge()
    random = numpy.random.default_rng(1)
    for causal in (False, True):
        arrays = [random.standard_normal((1, 64, 2, 32)).astype(numpy.float32) for _ in range(4)]
        *inputs, d_out = arrays
        wide = [array.astype(numpy.float64) for array in arrays]
        want = attention_in_float64(*wide, causal)
        name = "causal " if causal else ""
        out, pull_back = jax.vjp(jax.jit(lambda q, k, v, causal=causal: attention(q, k, v, causal)), *inputs)
        judge.compare(f"{name}O", out, want[0], units=64)
        for part, got, wanted in zip(("dQ", "dK", "dV"), pull_back(d_out), want[1:]):
            judge.compare(f"{name}{part}", got, wanted, units=64)
    values = random.standard_normal((37, 129)).astype(numpy.float32)
    wide = values.astype(numpy.float64)
    judge.compare("sum", jnp.sum(values, axis=1), wide.sum(1), units=64)
    judge.compare("softmax", jax.nn.softmax(values), numpy.exp(wide) / numpy.exp(wide).sum(-1, keepdims=True), units=64)
    judge.compare("sort", jnp.sort(values, axis=1), numpy.sort(values, axis=1), units=0)
    judge.compare("product", jnp.dot(values, values.T), wide @ wide.T, units=256)
    for line in judge.wrong:
        print("WRONG:", line)
    print(f"JAX {jax.__version__} on {device.device_kind}: {judge.cases} results, {judge.elements} elements, {len(judge.wrong)} wrong; largest errors: "
          + "; ".join(f"{name}: {error:.1f}" for name, error in sorted(judge.largest.items(), key=lambda each: -each[1])[:4]))
    return 1 if judge.wrong or judge.cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
