# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slots and positions of cache_append: numbers of any width mean the same from the host and from the device."""
import unittest

import numpy

import wavejit
from wavejit import _arrays, _dtypes

ENGINE = wavejit.Engine("sim:gfx950")
# 5 and 9 are slots among these. Cut down to 32 bits 3, 4, 0 and 7 would be, too.
SLOTS = [5, (1 << 32) + 3, -(1 << 32) + 4, 1 << 31, -1, (1 << 63) - 1, 9, -(1 << 62), (1 << 40) + 7]


def paths(numbers):
    yield "list", numbers
    yield "int64", numpy.array(numbers)
    yield "device", _arrays.upload(ENGINE, numpy.array(numbers), _dtypes.INT64)


class Slots(unittest.TestCase):
    def setUp(self):
        self.k = numpy.arange(1, 1 + len(SLOTS), dtype=numpy.float16)[:, None, None] * numpy.ones((1, 8), numpy.float16)

    def test_a_number_beyond_int32_is_none_on_either_path(self):
        exact = numpy.zeros((2, 16, 1, 8), numpy.float16)
        exact[0, 5], exact[0, 9] = self.k[0], self.k[6]
        for path, slots in paths(SLOTS):
            with self.subTest(path):
                cache = numpy.zeros_like(exact)
                ENGINE.cache_append(self.k, None, cache, None, slots)
                self.assertTrue(numpy.array_equal(cache, exact))

    def test_a_position_beyond_the_tables_has_no_angle_on_either_path(self):
        # Cosine and sine count as 0 there, and row 1 of the tables turns by a right angle.
        cos, sin = (numpy.repeat(numpy.array(rows, numpy.float32)[:, None], 8, 1) for rows in ([1, 0], [0, 1]))
        k = numpy.ones((3, 1, 16), numpy.float16)
        for path, positions in paths([0, 1, (1 << 32) + 1]):
            with self.subTest(path):
                cache = numpy.full((1, 16, 1, 16), 7, numpy.float16)
                ENGINE.cache_append(k, None, cache, None, [0, 1, 2], rotary="halves", cos=cos, sin=sin, positions=positions)
                self.assertEqual(cache[0, :4, 0, (0, 8)].T.tolist(), [[1, 1], [-1, 1], [0, 0], [7, 7]])

    def test_a_position_below_0_has_no_angle_of_a_base(self):
        cache = numpy.zeros((2, 16, 1, 8), numpy.float16)
        words = {"rotary": "halves", "rotary_base": 1e4, "positions": [*range(len(SLOTS) - 1), -2]}
        with self.assertRaisesRegex(wavejit.InvalidArgument, rf"^positions\[{len(SLOTS) - 1}\] = -2; accepted: 0 and more beside rotary_base$"):
            ENGINE.cache_append(self.k, None, cache, None, SLOTS, **words)

    def test_what_are_no_integers(self):
        cache = numpy.zeros((2, 16, 1, 8), numpy.float16)
        for slots, words in ((self.k[:, 0, 0], r"slots: dtype float16; accepted: integers of any width$"), ([1.5] * 9, r"slots: dtype float64; accepted: integers of any width$"),
                             (numpy.full(9, 1 << 63, numpy.uint64), r"slots: a number beyond int64; accepted: −2\^63 … 2\^63 − 1$"),
                             (numpy.zeros(9, bool), r"slots: dtype bool; accepted: integers of any width$")):
            with self.subTest(words), self.assertRaisesRegex(wavejit.InvalidArgument, words):
                ENGINE.cache_append(self.k, None, cache, None, slots)
        for narrow in (numpy.int8, numpy.uint8, numpy.int16, numpy.uint16, numpy.uint32, numpy.uint64):
            with self.subTest(narrow):
                cache[:] = 0
                ENGINE.cache_append(self.k, None, cache, None, numpy.arange(9).astype(narrow))
                self.assertTrue(numpy.array_equal(cache[0, :9], self.k))


if __name__ == "__main__":
    unittest.main()
