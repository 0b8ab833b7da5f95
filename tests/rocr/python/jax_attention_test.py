# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wavejit.jax with JAX's ROCm plug-in on a simulated GPU: XLA's stream, XLA's memory, forward and gradients, against float64.

    wavejit sim --target gfx942x2 -- python3 jax_attention_test.py

XLA's autotuner must be off (XLA_FLAGS=--xla_gpu_autotune_level=0): it runs every candidate.
"""
import sys

import jax
import numpy
from jax import numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
from jax_test import attention_in_float64

import wavejit.jax
from judge import Judge


def drawn(seed, *shape):
    return jnp.asarray(numpy.random.default_rng(seed).standard_normal(shape), jnp.bfloat16)


def wide(array):
    return numpy.asarray(array.astype(jnp.float32)).astype(numpy.float64)


def near(judge, name, got, want, decibels=40):
    """As vectors, as tests/jax has it."""
    judge.cases += 1
    judge.elements += want.size
    got = wide(got)
    error = numpy.square(got - want).sum()
    found = 10 * numpy.log10(numpy.square(want).sum() / max(error, 1e-300)) if numpy.isfinite(error) else -numpy.inf
    judge.largest[name] = min(judge.largest.get(name, numpy.inf), found)
    if found < decibels:
        judge.wrong.append(f"{name}: {found:.1f} decibels")


def main():
    device = jax.devices()[0]
    if device.platform not in ("rocm", "gpu"):
        sys.exit(f"jax_attention_test.py: JAX computes on {device}, not on the simulated GPU")
    judge = Judge()
    q, k, v, d_out = drawn(1, 1, 64, 2, 64), drawn(2, 1, 64, 2, 64), drawn(3, 1, 64, 2, 64), drawn(4, 1, 64, 2, 64)
    for causal in (False, True):
        # XLA's own kernels in front and behind, on the same stream.
        def layer(q, k, v, causal=causal):
            return 2 * wavejit.jax.attention(q / 2, k, v, causal=causal)

        want = attention_in_float64(wide(q / 2), wide(k), wide(v), 2 * wide(d_out), causal)
        out, pull_back = jax.vjp(jax.jit(layer), q, k, v)
        name = "causal " if causal else ""
        near(judge, f"{name}O", out, 2 * want[0])
        for part, got, wanted, factor in zip(("dQ", "dK", "dV"), pull_back(d_out), want[1:], (0.5, 1, 1)):
            near(judge, f"{name}{part}", got, factor * wanted)

    scanned = jax.jit(lambda q: jax.lax.scan(lambda q, _: (wavejit.jax.dot_product_attention(q, k, v, is_causal=True), None), q, length=3)[0])(q)
    step = wide(q)
    for _ in range(3):
        step = wide(jnp.asarray(attention_in_float64(step, wide(k), wide(v), step, True)[0], jnp.bfloat16))
    near(judge, "scan", scanned, step)

    # Keys that are split: the workspace is XLA's.
    one, keys = drawn(5, 1, 1, 4, 64), drawn(6, 1, 2500, 4, 64)
    split, whole = (jax.jit(lambda q, k, splits=splits: wavejit.jax.attention(q, k, k, splits=splits))(one, keys) for splits in (3, 1))
    near(judge, "split keys", split, attention_in_float64(wide(one), wide(keys), wide(keys), wide(one), False)[0])
    if numpy.asarray(split).tobytes() != numpy.asarray(whole).tobytes():
        judge.wrong.append("split keys: other bits than whole ones")

    starts = jnp.array([0, 5, 20], jnp.int32)  # read on the device alone
    packed = wavejit.jax.attention(q[:, :24], k[:, :24], v[:, :24], query_starts=starts, key_starts=starts)
    for first, last in ((0, 5), (5, 20)):
        near(judge, "packed", packed[:, first:last], attention_in_float64(*(wide(each[:, first:last]) for each in (q, k, v, q)), False)[0])
    if numpy.asarray(packed[:, 20:].astype(jnp.float32)).any():
        judge.wrong.append("packed: rows that are nobody's are not 0")
    # Each of two devices computes its half, on its own engine and stream.
    mesh = jax.make_mesh((2,), ("data",))
    spread = jax.device_put(drawn(8, 4, 24, 2, 64), NamedSharding(mesh, PartitionSpec("data")))
    sharded = jax.shard_map(lambda x: 2 * wavejit.jax.attention(x, x, x, causal=True), mesh=mesh, in_specs=PartitionSpec("data"), out_specs=PartitionSpec("data"))
    halves, dx = jax.jit(sharded)(spread), jax.jit(jax.grad(lambda x: sharded(x).astype(jnp.float32).sum()))(spread)
    x = wide(spread)
    want = attention_in_float64(x, x, x, numpy.full_like(x, 2), True)
    near(judge, "two devices, O", halves, 2 * want[0])
    near(judge, "two devices, dX", dx, sum(want[1:]))
    engines = [wavejit.jax.engine("rocm", ordinal) for ordinal in range(2)]
    if [engine.device for engine in engines] != ["hip:0", "hip:1"] or min(engine.statistics()["calls"] for engine in engines) == 0:
        judge.wrong.append(f"two devices: {[(engine.device, engine.statistics()['calls']) for engine in engines]}")

    try:
        jax.block_until_ready(wavejit.jax.attention(*(drawn(7, 1, 8, 2, 60),) * 3))
        judge.wrong.append("head dim 60: not refused")
    except Exception as error:  # noqa: BLE001: XLA's own class
        if "60" not in str(error):
            judge.wrong.append(f"head dim 60: {error}")
    for line in judge.wrong:
        print("WRONG:", line)
    print(f"wavejit.jax, JAX {jax.__version__} on {device.device_kind}, {wavejit.jax.engine('rocm').device_name}: {judge.cases} results, {judge.elements} elements, {len(judge.wrong)} wrong; "
          f"nearest to the limit of 40 decibels: {min(judge.largest.values()):.1f}")
    return 1 if judge.wrong or judge.cases == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
