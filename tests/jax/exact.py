# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention in float64: by numpy, and by JAX's own operations, which JAX differentiates. How near to it a result must be."""
import unittest

import jax
import numpy
import reference
from jax import numpy as jnp

import wavejit.jax


def draw(seed, *shape, dtype=jnp.bfloat16):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float32).astype(dtype)


def wide(*arrays):
    """In float64."""
    with jax.enable_x64(True):
        return tuple(jnp.asarray(numpy.asarray(each.astype(jnp.float32)), jnp.float64) for each in arrays)


def forward(q, k, v, key_lengths=None, **words):
    """[B, S, H, D] and LSE [B, H, S] in numpy's float64: the reference of tests/python, sequence by sequence."""
    words["prefix"] = words.pop("causal_prefix", None)
    words = {name: numpy.where(numpy.asarray(each), 0, -numpy.inf) if name == "bias" and each.dtype == jnp.bool_ else each if name not in TENSORS else in_float64(each)
             for name, each in words.items()}
    q, k, v = (in_float64(each) for each in (q, k, v))
    results = []
    for sequence in range(q.shape[0]):
        length = k.shape[1] if key_lengths is None else int(key_lengths[sequence])
        own = {name: each[min(sequence, each.shape[0] - 1)] if name == "bias" or (name == "alibi" and each.ndim == 2) else each for name, each in words.items()}
        results.append(reference.attention(q[sequence], k[sequence, :length], v[sequence, :length], **own))
    return tuple(numpy.stack(each) for each in zip(*results))


TENSORS = ("bias", "alibi", "sinks")


def in_float64(array):
    return array if isinstance(array, numpy.ndarray) and array.dtype == numpy.float64 else numpy.asarray(jnp.asarray(array).astype(jnp.float32), numpy.float64)


def attention(q, k, v, scale=None, causal=False, window=None, causal_prefix=None, softcap=None, bias=None, alibi=None, sinks=None, key_lengths=None):
    """[B, S, H, D] and LSE [B, H, S], by definition; rows that see nothing are 0."""
    group = q.shape[2] // k.shape[2]
    k, v = (jnp.repeat(each, group, 2) for each in (k, v))
    x = jnp.einsum("bihd,bjhd->bhij", q, k) * (q.shape[3] ** -0.5 if scale is None else scale)
    rows, keys = x.shape[2:]
    lengths = jnp.full(q.shape[0], keys) if key_lengths is None else jnp.asarray(key_lengths, jnp.int64)
    column = jnp.arange(keys)[None, None, None, :]
    prefix = (lengths - rows)[:, None, None, None] if causal_prefix is None else causal_prefix
    diagonal = jnp.arange(rows)[None, None, :, None] + prefix
    if softcap is not None:
        x = softcap * jnp.tanh(x / softcap)
    if bias is not None:
        x = x + bias
    if alibi is not None:
        x = x - jnp.reshape(alibi, (-1, x.shape[1], 1, 1)) * jnp.abs(column - diagonal)
    seen = column < lengths[:, None, None, None]
    if causal:
        seen = seen & (column <= diagonal)
    if window is not None:
        left, right = window
        seen = seen if left is None else seen & (column >= diagonal - left)
        seen = seen if right is None else seen & (column <= diagonal + right)
    least = -1e30
    x = jnp.where(seen, x, least)
    if sinks is not None:
        x = jnp.concatenate([x, jnp.broadcast_to(jnp.reshape(sinks, (1, -1, 1, 1)), (*x.shape[:3], 1))], 3)
    lse = jax.nn.logsumexp(x, -1)
    weights = jnp.exp(x - lse[..., None])[..., :keys] * jnp.broadcast_to(seen, (*x.shape[:3], keys))
    return jnp.einsum("bhij,bjhd->bihd", weights, v), jnp.where(lse < least / 2, -jnp.inf, lse)


class Case(unittest.TestCase):
    maxDiff = None

    def near(self, found, want, decibels=44):
        """As vectors: in bf16 each element is wrong by up to 2^-9 of itself, 59 decibels at best."""
        found, want = numpy.asarray(found, numpy.float64), numpy.asarray(want, numpy.float64)
        self.assertEqual(found.shape, want.shape)
        infinite = numpy.isinf(want)
        self.assertTrue(numpy.array_equal(found[infinite], want[infinite]))
        error = numpy.square(found[~infinite] - want[~infinite]).sum()
        self.assertTrue(numpy.isfinite(error))
        self.assertGreater(numpy.square(want[~infinite]).sum(), 0)
        self.assertGreater(10 * numpy.log10(numpy.square(want[~infinite]).sum() / max(error, 1e-300)), decibels)

    def same_bits(self, found, want):
        found, want = numpy.asarray(found), numpy.asarray(want)
        self.assertEqual((found.dtype, found.shape), (want.dtype, want.shape))
        self.assertEqual(found.tobytes(), want.tobytes())

    def both_near(self, found, want, decibels=44):
        for one, other in zip(found, want, strict=True):
            self.near(one, other, decibels)


__all__ = ["Case", "attention", "draw", "wavejit", "wide"]
