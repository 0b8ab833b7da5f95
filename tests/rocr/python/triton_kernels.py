# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Triton, written for these tests from the mathematics. Attention's forward is bench/triton_attention.py's."""
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, columns, x_row, y_row, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * x_row + at, mask=at < columns, other=float("-inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * y_row + at, (weights / tl.sum(weights, 0)).to(y.dtype.element_ty), mask=at < columns)


@triton.jit
def layer_norm_rows(x, y, scale, shift, means, inverses, columns, x_row, epsilon, BLOCK: tl.constexpr):
    """A row in pieces of BLOCK columns: once for the mean, once for the variance, once for the result."""
    row = tl.program_id(0)
    x += row * x_row
    y += row * x_row
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        centred = tl.where(at < columns, tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32) - mean, 0.0)
        squares += centred * centred
    inverse = tl.rsqrt(tl.sum(squares, 0) / columns + epsilon)
    tl.store(means + row, mean)
    tl.store(inverses + row, inverse)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        visible = at < columns
        centred = tl.load(x + at, mask=visible, other=0.0).to(tl.float32) - mean
        result = centred * inverse * tl.load(scale + at, mask=visible, other=0.0) + tl.load(shift + at, mask=visible, other=0.0)
        tl.store(y + at, result.to(y.dtype.element_ty), mask=visible)


@triton.jit
def layer_norm_gradient(x, gradient, scale, means, inverses, x_gradient, scale_gradient, shift_gradient, columns, x_row, BLOCK: tl.constexpr):
    """The gradient of a row's x; those of scale and shift are sums over rows, by atomic additions."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    visible = at < columns
    inverse = tl.load(inverses + row)
    normal = (tl.load(x + row * x_row + at, mask=visible, other=0.0).to(tl.float32) - tl.load(means + row)) * inverse
    normal = tl.where(visible, normal, 0.0)
    above = tl.load(gradient + row * x_row + at, mask=visible, other=0.0).to(tl.float32)
    weighted = above * tl.load(scale + at, mask=visible, other=0.0)
    along = tl.sum(weighted * normal, 0) / columns
    level = tl.sum(weighted, 0) / columns
    tl.store(x_gradient + row * x_row + at, ((weighted - level - normal * along) * inverse).to(x_gradient.dtype.element_ty), mask=visible)
    tl.atomic_add(scale_gradient + at, above * normal, mask=visible)
    tl.atomic_add(shift_gradient + at, above, mask=visible)


@triton.jit
def product(a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
            GROUP: tl.constexpr, SUM: tl.constexpr, PRECISION: tl.constexpr):
    """c = a · b. Tiles are taken GROUP rows of tiles at a time, so that neighbours share what is in the cache."""
    place = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    band = place // (GROUP * tiles_n)
    height = min(tiles_m - band * GROUP, GROUP)
    tile_m = band * GROUP + (place % (GROUP * tiles_n)) % height
    tile_n = (place % (GROUP * tiles_n)) // height
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=SUM)
    for first in range(0, k, BLOCK_K):
        at = first + depth
        left = tl.load(a + rows[:, None] * a_row + at[None, :] * a_column, mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * b_row + columns[None, :] * b_column, mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, out_dtype=SUM, input_precision=PRECISION)
    tl.store(c + rows[:, None] * c_row + columns[None, :], total.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def scaled_product(a, a_scales, b, b_scales, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A_KIND: tl.constexpr, B_KIND: tl.constexpr,
                   A_PACKED: tl.constexpr, B_PACKED: tl.constexpr):
    """Elements of 8 or 4 bits with a scale for every 32 of K: one tile. b and its scales lie by columns."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    a_depth, b_depth, blocks = tl.arange(0, K // A_PACKED), tl.arange(0, K // B_PACKED), tl.arange(0, K // 32)
    left = tl.load(a + rows[:, None] * (K // A_PACKED) + a_depth[None, :])
    right = tl.load(b + columns[None, :] * (K // B_PACKED) + b_depth[:, None])
    left_scales = tl.load(a_scales + rows[:, None] * (K // 32) + blocks[None, :])
    right_scales = tl.load(b_scales + columns[:, None] * (K // 32) + blocks[None, :])
    total = tl.dot_scaled(left, left_scales, A_KIND, right, right_scales, B_KIND)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def running_sums(x, y, columns, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.store(y + row * columns + at, tl.cumsum(values, 0, reverse=REVERSE), mask=at < columns)


@triton.jit
def sorted_rows(x, y, COLUMNS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    tl.store(y + row * COLUMNS + at, tl.sort(tl.load(x + row * COLUMNS + at)))


@triton.jit
def places_of_maxima(x, y, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(y + row, tl.argmax(tl.load(x + row * columns + at, mask=at < columns, other=float("-inf")), 0))


@triton.jit
def counts(values, bins, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(values + at, mask=at < count, other=0), 1, mask=at < count)


@triton.jit
def transposed(x, y, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=(i[:, None] < rows) & (j[None, :] < columns))
    tl.store(y + j[:, None] * rows + i[None, :], tl.trans(tile), mask=(j[:, None] < columns) & (i[None, :] < rows))


@triton.jit
def functions(x, y, count, BLOCK: tl.constexpr):
    """Several functions of each element: what the compiler takes from AMD's device library."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < count, other=1.0)
    result = tl.sin(v) + tl.cos(v) * tl.sqrt(tl.abs(v)) + tl.exp2(-v * v) + tl.log(1.0 + v * v) + tl.erf(v) + tl.sigmoid(v) + tl.floor(v)
    tl.store(y + at, result, mask=at < count)


@triton.jit
def attention_gradients_of_keys(q, k, v, o_gradient, statistics, delta, k_gradient, v_gradient, tokens, scale, scale_log2e,
                                D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """One tile of keys against all rows that see it. Heads lie one after another, (tokens, D) each; statistics in log2."""
    head = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    base = head * tokens * D
    at_keys = base + columns[:, None] * D + dims[None, :]
    visible_keys = columns < tokens
    keys = tl.load(k + at_keys, mask=visible_keys[:, None], other=0.0)
    values = tl.load(v + at_keys, mask=visible_keys[:, None], other=0.0)
    k_total = tl.zeros([BLOCK_N, D], tl.float32)
    v_total = tl.zeros([BLOCK_N, D], tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.program_id(1) * BLOCK_N // BLOCK_M * BLOCK_M
    for first in range(begin, tokens, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        visible_rows = rows < tokens
        at_rows = base + rows[:, None] * D + dims[None, :]
        query = tl.load(q + at_rows, mask=visible_rows[:, None], other=0.0)
        above = tl.load(o_gradient + at_rows, mask=visible_rows[:, None], other=0.0)
        level = tl.load(statistics + head * tokens + rows, mask=visible_rows, other=0.0)
        weights = tl.math.exp2(tl.dot(keys, tl.trans(query), input_precision="ieee") * scale_log2e - level[None, :])
        seen = visible_keys[:, None] & visible_rows[None, :]
        if CAUSAL:
            seen = seen & (columns[:, None] <= rows[None, :])
        weights = tl.where(seen, weights, 0.0)
        v_total = tl.dot(weights.to(values.dtype), above, v_total, input_precision="ieee")
        slope = tl.dot(values, tl.trans(above), input_precision="ieee") - tl.load(delta + head * tokens + rows, mask=visible_rows, other=0.0)[None, :]
        k_total = tl.dot((weights * slope).to(keys.dtype), query, k_total, input_precision="ieee")
    tl.store(k_gradient + at_keys, k_total * scale, mask=visible_keys[:, None])
    tl.store(v_gradient + at_keys, v_total, mask=visible_keys[:, None])


@triton.jit
def attention_gradients_of_rows(q, k, v, o_gradient, statistics, delta, q_gradient, tokens, scale, scale_log2e,
                                D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """One tile of rows against all keys that it sees."""
    head = tl.program_id(0)
    first_row = tl.program_id(1) * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    base = head * tokens * D
    at_rows = base + rows[:, None] * D + dims[None, :]
    visible_rows = rows < tokens
    query = tl.load(q + at_rows, mask=visible_rows[:, None], other=0.0)
    above = tl.load(o_gradient + at_rows, mask=visible_rows[:, None], other=0.0)
    level = tl.load(statistics + head * tokens + rows, mask=visible_rows, other=0.0)
    shift = tl.load(delta + head * tokens + rows, mask=visible_rows, other=0.0)
    total = tl.zeros([BLOCK_M, D], tl.float32)
    end = tokens
    if CAUSAL:
        end = min(tokens, first_row + BLOCK_M)
    for first in range(0, end, BLOCK_N):
        columns = first + tl.arange(0, BLOCK_N)
        at_keys = base + columns[:, None] * D + dims[None, :]
        keys = tl.load(k + at_keys, mask=columns[:, None] < tokens, other=0.0)
        values = tl.load(v + at_keys, mask=columns[:, None] < tokens, other=0.0)
        weights = tl.math.exp2(tl.dot(query, tl.trans(keys), input_precision="ieee") * scale_log2e - level[:, None])
        seen = (columns[None, :] < tokens) & visible_rows[:, None]
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        weights = tl.where(seen, weights, 0.0)
        slope = weights * (tl.dot(above, tl.trans(values), input_precision="ieee") - shift[:, None])
        total = tl.dot(slope.to(keys.dtype), keys, total, input_precision="ieee")
    tl.store(q_gradient + at_rows, total * scale, mask=visible_rows[:, None])
