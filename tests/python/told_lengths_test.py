# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A length on the device that is larger than the rows of k moves no diagonal, in any family: four causal rows that are told 51 keys of 48
stand at keys 47 to 50, and so see all 48, as rows without a mask do. Told 50, the first row stands at key 46."""
import os
import unittest

import numpy

import wavejit

ENGINE = wavejit.Engine(os.environ.get("WAVEJIT_DEVICE", "sim:gfx950"))
ROWS, KEYS = 4, 48


def draw(*shape):
    return numpy.random.default_rng(shape).standard_normal(shape).astype(numpy.float16)


def told(keys):
    return ENGINE.array(numpy.array([keys], numpy.int32))


class Told(unittest.TestCase):
    def assert_rows(self, found, whole, short):
        """`short`: the same over one key less, which the first row sees where 50 keys are told."""
        self.assertEqual(found(KEYS + ROWS - 1).tobytes(), whole.tobytes())
        first = found(KEYS + ROWS - 2)
        self.assertEqual(first[..., :1, :, :].tobytes(), short[..., :1, :, :].tobytes())
        self.assertEqual(first[..., 1:, :, :].tobytes(), whole[..., 1:, :, :].tobytes())

    def test_forward(self):
        q, k, v = draw(1, ROWS, 2, 64), draw(1, KEYS, 2, 64), draw(1, KEYS, 2, 64)
        short = ENGINE.attention_forward(q, k[:, :-1].copy(), v[:, :-1].copy()).numpy()
        self.assert_rows(lambda keys: ENGINE.attention_forward(q, k, v, causal=True, key_lengths=told(keys)).numpy(), ENGINE.attention_forward(q, k, v).numpy(), short)

    def test_latent(self):
        q, k = draw(1, ROWS, 16, 576), draw(1, KEYS, 1, 576)
        short = ENGINE.attention_latent(q, k[:, :-1].copy(), scale=0.1).numpy()
        self.assert_rows(lambda keys: ENGINE.attention_latent(q, k, scale=0.1, causal=True, key_lengths=told(keys)).numpy(), ENGINE.attention_latent(q, k, scale=0.1).numpy(), short)

    def test_gradients(self):
        q, k, v, d_out = draw(1, ROWS, 2, 64), draw(1, KEYS, 2, 64), draw(1, KEYS, 2, 64), draw(1, ROWS, 2, 64)
        out, lse = ENGINE.attention_forward(q, k, v, lse=True)
        whole = ENGINE.attention_backward(q, k, v, out, lse, d_out)
        found = ENGINE.attention_backward(q, k, v, out, lse, d_out, causal=True, key_lengths=told(KEYS + ROWS - 1))
        for one, other in zip(found, whole):
            self.assertEqual(one.numpy().tobytes(), other.numpy().tobytes())

    def test_softmax(self):
        scores = draw(1, 2, ROWS, KEYS)
        whole = ENGINE.softmax_lse(scores, weights=True).numpy()
        found = ENGINE.softmax_lse(scores, weights=True, causal=True, key_lengths=told(KEYS + ROWS - 1)).numpy()
        self.assertEqual(found.tobytes(), whole.tobytes())

    def test_indexer(self):
        q, k, weights = draw(1, ROWS, 64, 128), draw(1, KEYS, 128), draw(1, ROWS, 64).astype(numpy.float32)
        whole = ENGINE.sparse_indexer(q, k, weights, top_k=16).numpy()
        found = ENGINE.sparse_indexer(q, k, weights, top_k=16, causal=True, key_lengths=told(KEYS + ROWS - 1)).numpy()
        self.assertEqual(found.tobytes(), whole.tobytes())


if __name__ == "__main__":
    unittest.main()
