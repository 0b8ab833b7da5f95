# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Engine.attention_merge over numpy arrays and memory of the device, beside float64; and the example of docs/merging-parts.md."""
import pathlib
import re
import unittest

import numpy

import wavejit

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM = numpy.random.default_rng(43)


def exact(outs, lses):
    """outs [parts, …, tokens, heads, dim], lses [parts, …, heads, tokens]."""
    outs, lses = outs.astype(numpy.float64), lses.astype(numpy.float64)
    whole = numpy.logaddexp.reduce(lses, axis=0)
    weights = numpy.swapaxes(numpy.exp(lses - whole), -1, -2)[..., None]
    return (weights * outs).sum(axis=0), whole


class Merge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = wavejit.Engine("sim:gfx950")

    def setUp(self):
        self.outs = RANDOM.standard_normal((3, 2, 5, 4, 64)).astype(numpy.float32)
        self.lses = (3 * RANDOM.standard_normal((3, 2, 4, 5))).astype(numpy.float32)

    def test_lists_stacks_and_types(self):
        wanted, sums = exact(self.outs, self.lses)
        out, lse = self.engine.attention_merge(list(self.outs), list(self.lses))
        self.assertLess(float(numpy.abs(out.numpy() - wanted).max()), 3e-6)
        self.assertLess(float(numpy.abs(lse.numpy() - sums).max()), 3e-6)
        again = self.engine.attention_merge(self.engine.array(self.outs), self.engine.array(self.lses))
        self.assertTrue(numpy.array_equal(again[0].numpy(), out.numpy()) and numpy.array_equal(again[1].numpy(), lse.numpy()))
        half = self.engine.attention_merge(list(self.outs), list(self.lses), out="fp16", lse=False)
        self.assertTrue(numpy.array_equal(half.numpy(), out.numpy().astype(numpy.float16)))
        rows = self.engine.attention_merge(list(self.outs[:, 0]), list(self.lses[:, 0]))
        self.assertEqual((rows[0].shape, rows[1].shape), ((5, 4, 64), (4, 5)))
        self.assertTrue(numpy.array_equal(rows[0].numpy(), out.numpy()[0]))

    def test_into_arrays_of_the_callers(self):
        out, lse = numpy.empty((2, 5, 4, 64), numpy.float32), numpy.empty((2, 4, 5), numpy.float32)
        given = self.engine.attention_merge(list(self.outs), list(self.lses), out=out, lse=lse)
        self.assertIs(given[0], out)
        self.assertLess(float(numpy.abs(out - exact(self.outs, self.lses)[0]).max()), 3e-6)
        first, sums = (self.engine.array(each[0]) for each in (self.outs, self.lses))
        self.engine.attention_merge([first, self.outs[1], self.outs[2]], [sums, self.lses[1], self.lses[2]], out=first, lse=sums)
        self.assertTrue(numpy.array_equal(first.numpy(), out) and numpy.array_equal(sums.numpy(), lse))

    def test_questions(self):
        call = self.engine.attention_merge_call(list(self.outs), list(self.lses))
        self.assertEqual(call.describe(), "attention_merge fp32 b2 q5 h4 d64 parts=3 lse")
        self.assertTrue(call.supported())
        self.assertIn("attention_merge fp32 out=fp32 target=gfx950", "\n".join(call.explain()))
        stacked = self.engine.call("attention_merge", self.outs, self.lses, lse=False)
        self.assertEqual(stacked.describe(), "attention_merge fp32 b2 q5 h4 d64 parts=3 stacked")

    def test_refused_by_name(self):
        outs, lses = list(self.outs), list(self.lses)
        for pattern, given, words in (
            ("outs and lses: 3 and 2; accepted: as many of each, 1 to 8", (outs, lses[:2]), {}),
            ("lses: a sequence", (self.outs, lses), {}),
            (r"^outs\[1\]: .*fp16; accepted: fp32", ([outs[0], outs[1].astype(numpy.float16)], lses[:2]), {}),
            (r"^outs\[0\]: shape", ([outs[0][0, 0]], lses[:1]), {}),
            ("outs and lses: 3 and 2 parts", (self.outs, self.lses[:2]), {}),
            ("compile = 'later'", (outs, lses), {"compile": "later"}),
            (r"^lses\[1\].sizes\[2\]", (outs[:2], [lses[0], lses[1][..., :4].copy()]), {}),
        ):
            with self.assertRaisesRegex(wavejit.InvalidArgument, pattern):
                self.engine.attention_merge(*given, **words)

    def test_the_pages_example(self):
        (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "merging-parts.md").read_text(encoding="utf-8"), re.DOTALL)
        names = {"print": lambda *shapes: self.assertEqual(shapes, ((3, 1, 8, 64), (3, 8, 1)))}
        exec(compile(block, "docs/merging-parts.md", "exec"), names)
        # One row a sequence, which sees all of the prefix and all of its own keys.
        keys = numpy.concatenate([numpy.broadcast_to(names["prefix"], (3, 512, 2, 64)), names["own"]], axis=1).astype(numpy.float64)
        keys = keys.repeat(4, axis=2)
        scores = numpy.einsum("bqhd,bkhd->bhqk", names["q"].astype(numpy.float64), keys) / 8
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        wanted = numpy.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), keys)
        self.assertLess(float(numpy.abs(names["out"].numpy() - wanted).max()), 2e-3)


if __name__ == "__main__":
    unittest.main()
