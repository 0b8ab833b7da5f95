# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`attention_forward_out` over ROCm tensors: the caller's output and workspace, without memory of torch's."""
import unittest

import numpy
import rocm_test
import torch
from rocm_test import Case, draw, empty, host, rocm

OPERATORS = torch.ops.wavejit


class Into(Case):
    def test_out_and_workspace(self):
        q, k, v = (rocm(draw(1, rows, heads, 64)) for rows, heads in ((1, 4), (4096, 1), (4096, 1)))
        wanted, sums = OPERATORS.attention_forward_lse(q, k, v, splits=4)
        out, lse = empty([1, 1, 4, 64], torch.float16), empty([1, 4, 1], torch.float32)
        workspace = empty([1 << 20], torch.float32)
        rocm_test.ASKED = []
        self.addCleanup(setattr, rocm_test, "ASKED", None)
        for _ in range(2):  # planned, and remembered
            rocm_test.filled(out, 0x7F)
            OPERATORS.attention_forward_out(q, k, v, out, lse, workspace, splits=4)
            self.assertTrue(numpy.array_equal(host(out), host(wanted)) and numpy.array_equal(host(lse), host(sums)))
        asked = list(rocm_test.ASKED)
        self.assertFalse([size for size in asked if size > 4096], "the workspace was the caller's")
        # Without one it is torch's.
        rocm_test.ASKED = []
        OPERATORS.attention_forward_out(q, k, v, out, splits=4)
        self.assertTrue([size for size in rocm_test.ASKED if size > 4096])
        self.assertTrue(numpy.array_equal(host(out), host(wanted)))


if __name__ == "__main__":
    unittest.main()
