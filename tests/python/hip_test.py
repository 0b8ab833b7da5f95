# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Engine("hip"), as on a machine with a GPU: its HIP library is the simulated one (tests/python/CMakeLists.txt)."""
import unittest

import numpy

import wavejit

ENGINE = wavejit.Engine("hip")
Q = numpy.ones((1, 8, 2, 64), numpy.float16)


class Hip(unittest.TestCase):
    def test_host_arrays_are_copied_only_when_asked_to(self):
        self.assertFalse(ENGINE.is_simulated)
        on_device = ENGINE.array(Q)
        for field, arguments in (("q", (Q, on_device, on_device)), ("v", (on_device, on_device, Q)), ("out", (on_device, on_device, on_device, Q.copy()))):
            with self.assertRaisesRegex(wavejit.InvalidArgument, rf"^{field}: in host memory, and the device is hip; .*engine\.array"):
                ENGINE.attention_forward(*arguments)
        self.assertEqual(ENGINE.statistics()["calls"], 0)

    def test_lengths_are_numbers_of_the_host_here_too(self):
        rows = ENGINE.array(Q)
        out = ENGINE.attention_forward(rows, rows, rows, key_lengths=[5], lse=True)
        self.assertTrue((out[0].numpy() == 1).all())

    def test_the_program_sees_the_same_gpu(self):
        self.assertEqual(ENGINE.sweep("softmax_lse fp32 b1 h1 q1 k64").device_name, ENGINE.device_name)

    def test_tensors_of_other_libraries(self):
        class Lent:
            def __init__(self, array):
                self.array = array

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, **words):
                return self.array.__dlpack__(**words)

        rows, out = ENGINE.array(Q), ENGINE.empty(Q.shape, "fp16")
        lent = Lent(out)
        self.assertEqual(lent.__dlpack_device__(), (10, 0))
        self.assertIs(ENGINE.attention_forward(Lent(rows), Lent(rows), rows, lent), lent)
        self.assertTrue((out.numpy() == 1).all())
        with self.assertRaisesRegex(wavejit.InvalidArgument, r"q: a tensor on cpu:0|q: in host memory"):
            ENGINE.attention_forward(OnTheHost(), rows, rows)

    def test_a_device_that_is_not_there(self):
        with self.assertRaises(wavejit.NoDevice):
            wavejit.Engine("hip:5")


class OnTheHost:
    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return Q.__dlpack__()


if __name__ == "__main__":
    unittest.main()
