# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention in float64, written from wavejit.h alone: one sequence at a time, no tricks."""
import numpy


def bf16_bits(values: numpy.ndarray) -> numpy.ndarray:
    """The nearest bf16, ties to even, as bits."""
    wide = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    return ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype(numpy.uint16)


def from_bf16_bits(bits: numpy.ndarray) -> numpy.ndarray:
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)


def attention(q, k, v, *, scale=None, causal=False, window=None, prefix=None, chunk=None, softcap=None, bias=None, alibi=None, sinks=None):
    """q [Sq, Hq, D], k [Sk, Hkv, D], v [Sk, Hkv, Dv] in float64: (out [Sq, Hq, Dv], lse [Hq, Sq])."""
    queries, heads, dim = q.shape
    keys = k.shape[0]
    k, v = (numpy.repeat(each, heads // each.shape[1], axis=1) for each in (k, v))
    x = numpy.einsum("ihd,jhd->hij", q, k) * (dim**-0.5 if scale is None else scale)
    row, column = numpy.arange(queries)[:, None], numpy.arange(keys)[None, :]
    diagonal = row + (keys - queries if prefix is None else prefix)
    if softcap is not None:
        x = softcap * numpy.tanh(x / softcap)
    if bias is not None:
        x = x + bias
    if alibi is not None:
        x = x - alibi[:, None, None] * numpy.abs(column - diagonal)
    hidden = numpy.zeros((queries, keys), bool)
    if causal:
        hidden |= column > diagonal
    if chunk is not None:
        hidden |= column // chunk != diagonal // chunk
    if window is not None:
        left, right = window
        hidden |= (left is not None) and column < diagonal - left
        hidden |= (right is not None) and column > diagonal + right
    x = numpy.where(hidden, -numpy.inf, x)
    if sinks is not None:
        x = numpy.concatenate([x, numpy.broadcast_to(sinks[:, None, None], (heads, queries, 1))], axis=2)
    if x.shape[2] == 0:
        return numpy.zeros((queries, heads, v.shape[2])), numpy.full((heads, queries), -numpy.inf)
    largest = x.max(axis=2, keepdims=True)
    largest = numpy.where(numpy.isfinite(largest), largest, 0)
    weights = numpy.exp(x - largest)
    total = weights.sum(axis=2, keepdims=True)
    with numpy.errstate(divide="ignore"):
        lse = (numpy.log(total) + largest)[..., 0]
    weights = weights / numpy.where(total == 0, 1, total)
    return numpy.einsum("hij,jhd->ihd", weights[:, :, :keys], v), lse
