# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, scans, indexing, shapes and sorting, with their references."""
import numpy
from tinygrad import Tensor, dtypes
from tinygrad_case import FLOATS, Case, distinct, normal, positive, truth, unit, whole


def log_sum_exp(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    return (numpy.log(numpy.exp(x - top).sum(axis=axis, keepdims=True)) + top).squeeze(axis)


def scattered(target, index, source, add=False):
    """Along the last dimension, one after another, as index says."""
    result = target.copy()
    for at in numpy.ndindex(index.shape):
        place = (*at[:-1], int(index[at]))
        result[place] = result[place] + source[at] if add else source[at]
    return result


def padded(x):
    return numpy.pad(x, ((1, 2), (0, 3)))


# Indices without repetitions along the last dimension: what a scatter leaves is then one thing only.
DISTINCT_ROWS = numpy.array([[3, 0, 6, 2], [5, 4, 1, 0], [2, 6, 3, 1]], dtype=numpy.int32)

CASES = [
    # Reductions
    Case("sum_all", lambda x: x.sum(), lambda x: x.sum(), (normal(37, 29),), FLOATS, 16.0, True),
    Case("sum_long", lambda x: x.sum(), lambda x: x.sum(), (positive(70000),), ("f32",), 64.0),
    Case("sum_rows", lambda x: x.sum(1), lambda x: x.sum(1), (normal(5, 300),), FLOATS, 32.0, True, True),
    Case("sum_columns", lambda x: x.sum(0), lambda x: x.sum(0), (normal(67, 9),), FLOATS, 32.0, True),
    Case("sum_two_axes", lambda x: x.sum((0, 2)), lambda x: x.sum((0, 2)), (normal(4, 5, 6),), FLOATS, 16.0, True),
    Case("mean", lambda x: x.mean(-1), lambda x: x.mean(-1), (normal(6, 65),), FLOATS, 16.0, True),
    Case("maximum_of_rows", lambda x: x.max(1), lambda x: x.max(1), (distinct(6, 11),), FLOATS, 0.0, True),
    Case("minimum_of_columns", lambda x: x.min(0), lambda x: x.min(0), (distinct(11, 6),), FLOATS, 0.0, True),
    Case("product", lambda x: x.prod(1), lambda x: x.prod(1), (positive(6, 9),), FLOATS, 16.0, True),
    Case("variance", lambda x: x.var(1), lambda x: x.var(1, ddof=1), (normal(6, 33),), FLOATS, 32.0, True),
    Case("deviation", lambda x: x.std(1), lambda x: x.std(1, ddof=1), (normal(6, 33),), FLOATS, 32.0, True),
    Case("log_sum_exp", lambda x: x.logsumexp(1), log_sum_exp, (normal(6, 33),), FLOATS, 16.0, True),
    Case("place_of_maximum", lambda x: x.argmax(1), lambda x: x.argmax(1).astype(numpy.int32), (distinct(6, 11),), FLOATS),
    Case("place_of_minimum", lambda x: x.argmin(0), lambda x: x.argmin(0).astype(numpy.int32), (distinct(6, 11),)),
    Case("all_true", lambda x: x.all(1), lambda x: x.all(1), (truth(40, 3),)),
    Case("any_true", lambda x: x.any(1), lambda x: x.any(1), (truth(40, 3),)),
    Case("integer_sum", lambda x: x.sum(1), lambda x: x.sum(1, dtype=numpy.int32), (whole(-10000, 10000, 7, 200),)),
    Case("count_of_true", lambda x: x.sum(), lambda x: x.sum(dtype=numpy.int32), (truth(40, 9),)),
    # Scans
    Case("running_sum", lambda x: x.cumsum(1), lambda x: x.cumsum(1), (normal(5, 70),), FLOATS, 32.0, True, True),
    Case("running_sum_long", lambda x: x.cumsum(0), lambda x: x.cumsum(0), (positive(1500),), ("f32",), 64.0),
    Case("running_sum_of_integers", lambda x: x.cumsum(0), lambda x: x.cumsum(0, dtype=numpy.int32), (whole(-99, 99, 60, 3),)),
    Case("running_product", lambda x: x.cumprod(1), lambda x: x.cumprod(1), (positive(4, 12),), ("f32",), 32.0),
    Case("running_maximum", lambda x: x.cummax(1)[0], lambda x: numpy.maximum.accumulate(x, 1), (distinct(5, 12),), FLOATS, 0.0),
    # Indexing
    Case("slice_with_steps", lambda x: x[1:9:2, ::-1], lambda x: x[1:9:2, ::-1], (normal(10, 7),), FLOATS, 0.0, True),
    Case("rows_by_number", lambda x, i: x[i], lambda x, i: x[i], (normal(11, 7), whole(0, 11, 9)), FLOATS, 0.0, True, True),
    Case("points_by_numbers", lambda x, i, j: x[i, j], lambda x, i, j: x[i, j], (normal(11, 7), whole(0, 11, 20), whole(0, 7, 20)), FLOATS, 0.0, True),
    Case("gather", lambda x, i: x.gather(1, i), lambda x, i: numpy.take_along_axis(x, i, 1), (normal(5, 9), whole(0, 9, 5, 6)), FLOATS, 0.0, True, True),
    Case("scatter", lambda x, s: x.scatter(1, Tensor(DISTINCT_ROWS), s), lambda x, s: scattered(x, DISTINCT_ROWS, s),
         (normal(3, 7), normal(3, 4)), FLOATS, 0.0, True),
    Case("scatter_add", lambda x, i, s: x.scatter_reduce(1, i, s, "sum"), lambda x, i, s: scattered(x, i, s, True),
         (normal(4, 6), whole(0, 6, 4, 9), normal(4, 9)), FLOATS, 16.0, True, True),
    Case("masked", lambda x, m: x.masked_fill(m, -2.0), lambda x, m: numpy.where(m, -2.0, x), (normal(9, 13), truth(9, 13)), FLOATS, 0.0, True),
    Case("one_of_many", lambda i: i.one_hot(7), lambda i: (i[:, None] == numpy.arange(7)).astype(numpy.int32), (whole(0, 7, 30),)),
    Case("upper_triangle", lambda x: x.triu(1), lambda x: numpy.triu(x, 1), (normal(9, 9),), FLOATS, 0.0, True),
    Case("lower_triangle", lambda x: x.tril(-1), lambda x: numpy.tril(x, -1), (normal(9, 7),), FLOATS, 0.0, True),
    Case("diagonal", lambda x: x.diagonal(), lambda x: numpy.diagonal(x), (normal(9, 9),), FLOATS, 0.0),
    Case("numbers_in_order", lambda x: Tensor.arange(500).reshape(20, 25).cast(dtypes.float32) + x, lambda x: numpy.arange(500.0).reshape(20, 25) + x,
         (normal(25),), ("f32",), 1.0),
    # Shapes
    # Without its gradient: that is a view, which tinygrad orders with code for the processor, and needs a compiler for.
    Case("transpose", lambda x: (x * x).permute(2, 0, 1).contiguous(), lambda x: (x * x).transpose(2, 0, 1), (normal(5, 6, 7),), FLOATS, 1.0),
    Case("pad", lambda x: x.pad((0, 3, 1, 2)), padded, (normal(5, 6),), FLOATS, 0.0, True),
    Case("roll", lambda x: x.roll(3, 1), lambda x: numpy.roll(x, 3, 1), (normal(5, 8),), FLOATS, 0.0, True),
    Case("flip", lambda x: x.flip((0, 1)), lambda x: x[::-1, ::-1], (normal(5, 8),), FLOATS, 0.0, True),
    Case("repeat", lambda x: x.repeat(2, 3), lambda x: numpy.tile(x, (2, 3)), (normal(5, 4),), FLOATS, 0.0, True),
    Case("join", lambda x, y: x.cat(y, dim=1), lambda x, y: numpy.concatenate((x, y), 1), (normal(5, 4), normal(5, 3)), FLOATS, 0.0, True),
    Case("stack", lambda x, y: x.stack(y, dim=1), lambda x, y: numpy.stack((x, y), 1), (normal(5, 4), normal(5, 4)), FLOATS, 0.0, True),
    Case("broadcast", lambda x, y: x.expand(6, 5, 4) + y, lambda x, y: x + y, (normal(5, 4), normal(6, 1, 1)), FLOATS, 2.0, True),
    Case("windows", lambda x: x.unfold(1, 4, 2), lambda x: numpy.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::2], (normal(3, 11),), FLOATS, 0.0),
    # Sorting
    Case("sort", lambda x: x.sort(1)[0], lambda x: numpy.sort(x, 1), (distinct(4, 15),), FLOATS, 0.0),
    Case("sort_order", lambda x: x.sort(1)[1], lambda x: numpy.argsort(x, 1).astype(numpy.int32), (distinct(4, 15),)),
    Case("largest_three", lambda x: x.topk(3, 1)[0], lambda x: -numpy.sort(-x, 1)[:, :3], (distinct(4, 15),), ("f32",), 0.0),
    # Several steps in one kernel
    Case("normalise_by_norm", lambda x: x / x.square().sum(1, keepdim=True).sqrt(), lambda x: x / numpy.sqrt((x * x).sum(1, keepdims=True)),
         (normal(6, 21),), FLOATS, 16.0, True),
    Case("cosine_of_sums", lambda x, y: (x.cumsum(1) * y).cos().sum(0), lambda x, y: numpy.cos(x.cumsum(1) * y).sum(0), (unit(5, 9), unit(5, 9)),
         ("f32",), 64.0, True),
]
