# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of key blocks against float64, in each form, and what is refused of them."""
import unittest

import numpy
import reference
from attention_test import ENGINE, Case, draw, wide

import wavejit

QUERIES, KEYS, HEADS = 150, 300, 2
# The blocks of 64 keys of each head and block of 64 rows.
MASKED = [[[0, 2], [1], []], [[4], [0, 1, 2, 3, 4], [3]]]
FULL = [[[4], [], []], [[], [], [0]]]


def padded(lists):
    room = max(len(each) for head in lists for each in head) or 1
    return numpy.array([[[[*each, *[-1] * (room - len(each))] for each in head] for head in lists]], numpy.int32)


def counts(lists):
    return numpy.array([[[len(each) for each in head] for head in lists]], numpy.int32)


def flat(lists):
    every = [each for head in lists for each in head]
    starts = numpy.cumsum([0, *map(len, every)]).astype(numpy.int32)
    return numpy.array([block for each in every for block in each] or [0], numpy.int32), starts


def hidden(head, masked, full, causal):
    """As a bias of a row and a key."""
    row, column = numpy.arange(QUERIES)[:, None], numpy.arange(KEYS)[None, :]
    seen = numpy.zeros((QUERIES, KEYS), bool)
    for block in range(3):
        of_rows = row // 64 == block
        shown = column <= row + KEYS - QUERIES if causal else True
        seen |= of_rows & numpy.isin(column // 64, masked[head][block]) & shown
        seen |= of_rows & numpy.isin(column // 64, full[head][block])
    return numpy.where(seen, 0.0, -numpy.inf)


class Lists(Case):
    def setUp(self):
        self.q, self.k, self.v = draw(1, QUERIES, HEADS, 64), draw(1, KEYS, 1, 64), draw(1, KEYS, 1, 64)

    def check(self, lists, full, causal):
        out, lse = ENGINE.attention_forward(self.q, self.k, self.v, lists=lists, causal=causal, lse=True)
        bias = numpy.stack([hidden(head, MASKED, full, causal) for head in range(HEADS)])
        with numpy.errstate(invalid="ignore", divide="ignore"):
            exact, exact_lse = reference.attention(wide(self.q[0]), wide(self.k[0]), wide(self.v[0]), bias=bias)
        self.close(out[0].numpy(), numpy.nan_to_num(exact))
        self.assertTrue(numpy.array_equal(numpy.isinf(wide(lse[0].numpy())), numpy.isinf(exact_lse) | numpy.isnan(exact_lse)))

    def test_hints_by_name(self):
        lists = {"indices": padded(MASKED), "counts": counts(MASKED)}
        told = ENGINE.attention_forward_call(self.q, self.k, self.v, lists=wavejit.BlockLists(**lists), hints=["lists_alike"])
        self.assertIn(" lists=64x64 lists_alike", told.describe())
        alike = ENGINE.attention_forward_call(self.q, self.k, self.v, lists=wavejit.BlockLists(**lists, alike=True))
        self.assertEqual(alike.describe(), told.describe())
        for hints in (["alike"], "lists_alike", None, 3, [["lists_alike"]]):
            with self.assertRaisesRegex(wavejit.InvalidArgument, "^hints = .*; accepted: a list of 'lists_alike'"):
                ENGINE.attention_forward(self.q, self.k, self.v, hints=hints)
        with self.assertRaisesRegex(wavejit.InvalidArgument, "^hints = 'lists_alike'; accepted: 'lists_alike' beside lists.indices or lists.full_indices only"):
            ENGINE.attention_forward(self.q, self.k, self.v, hints=["lists_alike"])

    def test_every_form(self):
        empty = [[[], [], []], [[], [], []]]
        masked, starts = flat(MASKED)
        full, full_starts = flat(FULL)
        forms = [
            (wavejit.BlockLists(indices=padded(MASKED), counts=counts(MASKED)), empty),
            (wavejit.BlockLists(indices=padded(MASKED)), empty),
            (wavejit.BlockLists(indices=padded(MASKED), counts=counts(MASKED), full_indices=padded(FULL), full_counts=counts(FULL), alike=True), FULL),
            (wavejit.BlockLists(indices=masked, starts=starts, full_indices=full, full_starts=full_starts, shape=(1, HEADS, 3)), FULL),
        ]
        for causal in (False, True):
            for number, (lists, whole) in enumerate(forms):
                with self.subTest(form=number, causal=causal):
                    self.check(lists, whole, causal)

    def test_what_is_refused(self):
        def refuses(pattern, **words):
            with self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                ENGINE.attention_forward(self.q, self.k, self.v, **words)

        indices = padded(MASKED)
        refuses("^lists.indices: .*int64", lists=wavejit.BlockLists(indices=indices.astype(numpy.int64)))
        refuses("^lists.indices: shape .*room", lists=wavejit.BlockLists(indices=indices[0]))
        refuses("^lists.counts: shape", lists=wavejit.BlockLists(indices=indices, counts=counts(MASKED)[:, :1]))
        refuses("starts without shape", lists=wavejit.BlockLists(indices=flat(MASKED)[0], starts=flat(MASKED)[1]))
        refuses("neither indices nor full_indices", lists=wavejit.BlockLists())
        refuses("^lists.rows = 96; accepted: 64, 128", lists=wavejit.BlockLists(indices=indices, rows=96))
        starts = numpy.zeros(11, numpy.int32)
        refuses("lists: counts beside starts", lists=wavejit.BlockLists(indices=indices.reshape(-1), counts=counts(MASKED), starts=starts, shape=(1, 1, 10)))
        too_many = counts(MASKED) + 9
        refuses(r"^lists.counts\[0\] = 11; accepted: 0 to 5", lists=wavejit.BlockLists(indices=indices, counts=too_many), check_lengths=True)

    def test_describe(self):
        call = ENGINE.attention_forward_call(self.q, self.k, self.v, lists=wavejit.BlockLists(indices=padded(MASKED)))
        self.assertEqual(call.describe(), "attention_forward fp16 b1 q150 k300 h2/1 d64 lists=64x64")
        self.assertGreater(call.workspace_bytes(), 0)


if __name__ == "__main__":
    unittest.main()
