# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for JAX: through XLA's foreign-function interface, on XLA's own stream, with gradients.

    import jax, wavejit.jax
    from jax import numpy as jnp

    wavejit.jax.use("sim:gfx950")                          # for JAX's CPUs; JAX on ROCm needs no such line
    q = jnp.ones((1, 64, 8, 128), jnp.bfloat16)            # [batch, length, heads, head dim]
    k = v = jnp.ones((1, 256, 2, 128), jnp.bfloat16)       # 4 query heads read each kv head
    out = jax.jit(wavejit.jax.dot_product_attention)(q, k, v)

`dot_product_attention` is jax.nn's; `attention` has wavejit's own words: packed sequences, pages, sinks, slopes, the log-sum-exp. Both trace: jit, grad,
vmap over what becomes batch, scan, shard_map, and lowering where there is no device. docs/jax.md begins there.
"""
from __future__ import annotations

COMMAND = "python -m pip install jax"

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"wavejit.jax: the package {error.name} is not installed; accepted: `{COMMAND}`", name=error.name) from error

from ._attention import attention
from ._engines import engine, use
from ._ffi import TRIED, register
from ._nn import dot_product_attention

__all__ = ["TRIED", "attention", "dot_product_attention", "engine", "use"]

register()
