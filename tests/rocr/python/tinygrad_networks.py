# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What networks are made of: products of matrices, convolutions, norms, attention, losses; with their references."""
import math

import numpy
from tinygrad import Tensor, dtypes
from tinygrad_case import FLOATS, Case, normal, positive, truth, whole


def softmax(x, axis=-1):
    weights = numpy.exp(x - x.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(axis=-1, keepdims=True))


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / numpy.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def rms_norm(x, weight):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def batch_norm(x, scale, shift, mean, inverse):
    return (x - mean[:, None, None]) * inverse[:, None, None] * scale[:, None, None] + shift[:, None, None]


def attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = numpy.where(mask, scores, -numpy.inf)
    return softmax(scores) @ v


def causal_attention(q, k, v):
    return attention(q, k, v, numpy.tril(numpy.ones((q.shape[-2], k.shape[-2]), bool)))


def convolution(x, weight, stride=1, padding=0, groups=1, dilation=1):
    """x: (batch, channels, height, width), weight: (outputs, channels / groups, rows, columns)."""
    x = numpy.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    rows, columns = (dilation * (size - 1) + 1 for size in weight.shape[2:])
    windows = numpy.lib.stride_tricks.sliding_window_view(x, (rows, columns), (2, 3))
    windows = windows[:, :, ::stride, ::stride, ::dilation, ::dilation]
    per_group, outputs = x.shape[1] // groups, weight.shape[0] // groups
    parts = [
        numpy.tensordot(windows[:, g * per_group : (g + 1) * per_group], weight[g * outputs : (g + 1) * outputs], ((1, 4, 5), (1, 2, 3)))
        for g in range(groups)
    ]
    return numpy.concatenate(parts, -1).transpose(0, 3, 1, 2)


def transposed_convolution(x, weight, stride):
    """weight: (channels, outputs, rows, columns): each input adds its multiple of the weight to the output."""
    batch, _, height, width = x.shape
    _, outputs, rows, columns = weight.shape
    result = numpy.zeros((batch, outputs, (height - 1) * stride + rows, (width - 1) * stride + columns))
    for i in range(height):
        for j in range(width):
            result[:, :, i * stride : i * stride + rows, j * stride : j * stride + columns] += numpy.tensordot(x[:, :, i, j], weight, (1, 0))
    return result


def pooled(x, size, stride, choose):
    return choose(numpy.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride], (4, 5))


def cross_entropy(x, labels):
    return -log_softmax(x)[numpy.arange(len(labels)), labels].mean()


def product(name, m, n, k, kinds=FLOATS, **more):
    return Case(f"product_{name}", lambda a, b: a @ b, lambda a, b: a @ b, (normal(m, k), normal(k, n)), kinds, 16.0, **more)


def product_in_float32(name, m, n, k, **more):
    """Half types with sums in float32: what matrix instructions do."""
    return Case(f"product_{name}", lambda a, b: a.matmul(b, dtype=dtypes.float32), lambda a, b: a @ b, (normal(m, k), normal(k, n)),
                ("f16", "bf16"), 1.0, **more)


MASK = numpy.random.default_rng(5).integers(0, 2, (9, 17)).astype(bool) | (numpy.arange(17) == 3)

CASES = [
    product("small", 9, 11, 13, gradient=True, sample=True),
    product("square_64", 64, 64, 64),
    product("odd", 37, 51, 67),
    product("deep", 16, 16, 520),
    product("row", 1, 130, 70),
    product("column", 130, 1, 70),
    product_in_float32("mfma_64", 64, 64, 64, sample=True),
    product_in_float32("mfma_48_80_96", 48, 80, 96),
    product_in_float32("mfma_odd", 33, 47, 65),
    product_in_float32("mfma_128", 128, 128, 128),
    Case("product_doubles", lambda a, b: a @ b, lambda a, b: a @ b, (normal(19, 23), normal(23, 17)), ("f64",), 16.0),
    Case("product_integers", lambda a, b: a @ b, lambda a, b: a @ b, (whole(-50, 50, 9, 30), whole(-50, 50, 30, 12))),
    Case("products_of_a_batch", lambda a, b: a @ b, lambda a, b: a @ b, (normal(3, 5, 8), normal(3, 8, 6)), FLOATS, 16.0, True),
    Case("product_of_three", lambda a, b, c: a @ b @ c, lambda a, b, c: a @ b @ c, (normal(5, 8), normal(8, 6), normal(6, 7)), FLOATS, 32.0, True),
    Case("named_sums", lambda a, b: Tensor.einsum("bij,bkj->bik", a, b), lambda a, b: numpy.einsum("bij,bkj->bik", a, b),
         (normal(2, 5, 8), normal(2, 6, 8)), FLOATS, 16.0, True),
    Case("linear_layer", lambda x, w, b: x.linear(w, b).relu(), lambda x, w, b: numpy.maximum(x @ w + b, 0), (normal(6, 12), normal(12, 9), normal(9)),
         FLOATS, 16.0, True),
    # Convolutions and pools
    Case("convolution", lambda x, w: x.conv2d(w), convolution, (normal(2, 3, 7, 8), normal(4, 3, 3, 3)), FLOATS, 16.0, True, True),
    Case("convolution_stride_2", lambda x, w: x.conv2d(w, stride=2, padding=1), lambda x, w: convolution(x, w, 2, 1),
         (normal(2, 3, 8, 8), normal(5, 3, 3, 3)), FLOATS, 16.0, True),
    Case("convolution_groups", lambda x, w: x.conv2d(w, groups=2), lambda x, w: convolution(x, w, groups=2),
         (normal(1, 4, 6, 6), normal(6, 2, 3, 3)), FLOATS, 16.0, True),
    Case("convolution_dilated", lambda x, w: x.conv2d(w, dilation=2, padding=2), lambda x, w: convolution(x, w, 1, 2, 1, 2),
         (normal(1, 2, 7, 7), normal(3, 2, 3, 3)), FLOATS, 16.0, True),
    Case("convolution_points", lambda x, w: x.conv2d(w), convolution, (normal(2, 16, 4, 4), normal(8, 16, 1, 1)), FLOATS, 16.0),
    Case("convolution_wide", lambda x, w: x.conv2d(w, padding=1), lambda x, w: convolution(x, w, 1, 1), (normal(1, 16, 12, 12), normal(32, 16, 3, 3)),
         FLOATS, 16.0),
    Case("convolution_transposed", lambda x, w: x.conv_transpose2d(w, stride=2), lambda x, w: transposed_convolution(x, w, 2),
         (normal(1, 3, 4, 4), normal(3, 4, 3, 3)), FLOATS, 16.0, True),
    Case("pool_maximum", lambda x: x.max_pool2d((2, 2)), lambda x: pooled(x, 2, 2, numpy.max), (normal(2, 3, 6, 6),), FLOATS, 0.0, True),
    Case("pool_average", lambda x: x.avg_pool2d((3, 3), stride=1), lambda x: pooled(x, 3, 1, numpy.mean), (normal(2, 3, 6, 6),), FLOATS, 8.0, True),
    # Softmax and norms
    Case("softmax", lambda x: x.softmax(), softmax, (normal(7, 45),), FLOATS, 8.0, True, True),
    Case("softmax_columns", lambda x: x.softmax(0), lambda x: softmax(x, 0), (normal(33, 6),), FLOATS, 8.0, True),
    Case("softmax_long", lambda x: x.softmax(), softmax, (normal(3, 3000),), FLOATS, 32.0),
    Case("log_softmax", lambda x: x.log_softmax(), log_softmax, (normal(7, 45),), FLOATS, 8.0, True),
    Case("layer_norm", lambda x: x.layernorm(), layer_norm, (normal(6, 48),), FLOATS, 16.0, True, True),
    Case("layer_norm_long", lambda x: x.layernorm(), layer_norm, (normal(3, 1024),), FLOATS, 16.0),
    Case("rms_norm", lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w, rms_norm, (normal(6, 48), normal(48)), FLOATS, 16.0, True),
    Case("batch_norm", lambda x, s, b, m, i: x.batchnorm(s, b, m, i), batch_norm,
         (normal(2, 4, 5, 5), normal(4), normal(4), normal(4), positive(4)), FLOATS, 16.0, True),
    # Attention
    Case("attention", lambda q, k, v: q.scaled_dot_product_attention(k, v), attention, (normal(1, 2, 7, 8), normal(1, 2, 9, 8), normal(1, 2, 9, 8)),
         FLOATS, 16.0, True, True),
    Case("attention_causal", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), causal_attention,
         (normal(1, 2, 8, 8), normal(1, 2, 8, 8), normal(1, 2, 8, 8)), FLOATS, 16.0, True),
    Case("attention_masked", lambda q, k, v: q.scaled_dot_product_attention(k, v, attn_mask=Tensor(MASK)), lambda q, k, v: attention(q, k, v, MASK),
         (normal(2, 9, 16), normal(2, 17, 16), normal(2, 17, 16)), FLOATS, 16.0),
    Case("attention_64", lambda q, k, v: q.scaled_dot_product_attention(k, v), attention, (normal(2, 64, 64), normal(2, 96, 64), normal(2, 96, 64)),
         FLOATS, 16.0),
    # Losses and embeddings
    Case("cross_entropy", lambda x, y: x.sparse_categorical_crossentropy(y), cross_entropy, (normal(9, 12), whole(0, 12, 9)), FLOATS, 16.0, True),
    Case("embedding", lambda w, i: w[i.reshape(-1)].reshape(3, 5, 8), lambda w, i: w[i], (normal(20, 8), whole(0, 20, 3, 5)), FLOATS, 0.0, True),
    Case("dropout_by_mask", lambda x, m: x * m.cast(x.dtype) * 2, lambda x, m: x * m * 2, (normal(6, 17), truth(6, 17)), FLOATS, 1.0, True),
]
