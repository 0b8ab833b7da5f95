# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DeviceArray: views, host copies, DLPack in and out without a copy, who keeps memory alive, which streams wait."""
import gc
import unittest
import weakref

import numpy

import wavejit
from wavejit import _wavejit

ENGINE = wavejit.Engine("sim:gfx950")


class Owner:
    """Memory of another library: lent as a ROCm tensor, and watched."""

    def __init__(self, array):
        self.array, self.streams = array, []


class Foreign:
    def __init__(self, owner, versioned=True):
        self.owner, self.versioned = owner, versioned

    def __dlpack_device__(self):
        return 10, 0

    def __dlpack__(self, *, stream=None, **words):
        if words and not self.versioned:
            raise TypeError("an old library")
        self.owner.streams.append(stream)
        array = self.owner.array
        return _wavejit.export_dlpack(self.owner, array.data_ptr, 2, 16, list(array.shape), list(array.strides), 10, 0, self.versioned)


def ones(*shape):
    return ENGINE.array(numpy.ones(shape, numpy.float16))


class Views(unittest.TestCase):
    def test_indexing_is_numpys(self):
        host = numpy.arange(2 * 3 * 5 * 7, dtype=numpy.int32).reshape(2, 3, 5, 7)
        array = ENGINE.array(host)
        for index in (1, -1, (0, 2), (slice(None), 1), (..., 3), (1, ..., slice(1, 6, 2)), (None, 0), slice(5, 2), (slice(-2, None), 0), (1, 2, 3, 4)):
            with self.subTest(index=str(index)):
                self.assertTrue(numpy.array_equal(array[index].numpy(), host[index]))
        self.assertTrue(numpy.array_equal(array.permute(3, 0, 2, 1).numpy(), host.transpose(3, 0, 2, 1)))
        self.assertTrue(numpy.array_equal(array.reshape(6, 35)[4].numpy(), host.reshape(6, 35)[4]))
        self.assertEqual((array.shape, array.strides, array.ndim, array.size, array.nbytes, len(array)), ((2, 3, 5, 7), (105, 35, 7, 1), 4, 210, 840, 2))
        self.assertIn("shape=(2, 3, 5, 7), dtype=int32", repr(array))

    def test_bad_views(self):
        array = ones(2, 3)
        for index, kind in ((2, IndexError), ((0, 0, 0), IndexError), (slice(None, None, -1), IndexError), ("x", TypeError), ((..., ...), IndexError)):
            with self.assertRaises(kind):
                array[index]
        for bad in (lambda: array.permute(0, 0), lambda: array.reshape(7), lambda: array.permute(1, 0).reshape(6)):
            self.assertRaises(wavejit.InvalidArgument, bad)

    def test_host_copies(self):
        for host in (numpy.arange(6, dtype=numpy.float32), numpy.ones((2, 0), numpy.float16), numpy.arange(12, dtype=numpy.int32).reshape(3, 4).T):
            array = ENGINE.array(host)
            self.assertTrue(numpy.array_equal(array.numpy(), host))
            self.assertTrue(numpy.array_equal(numpy.asarray(array), host))
        array = ones(2, 3)
        array.copy_from(numpy.full((2, 3), 4, numpy.float16))
        self.assertTrue((array.numpy("float32") == 4).all())
        self.assertRaises(wavejit.InvalidArgument, array.copy_from, numpy.ones(6, numpy.float16))
        self.assertRaises(TypeError, array.copy_from, "x")
        self.assertEqual(ENGINE.array([[1, 2]], "int32").numpy().tolist(), [[1, 2]])
        self.assertEqual(ENGINE.array([0.5], "fp32").numpy().tolist(), [0.5])

    def test_bf16(self):
        bits = numpy.array([0x3F80, 0xC000, 0x7F80], numpy.uint16)  # 1, −2, ∞
        array = ENGINE.array(bits, dtype="bf16")
        self.assertEqual(array.numpy("float32").tolist(), [1.0, -2.0, numpy.inf])
        self.assertEqual(array.numpy("uint16").tolist(), bits.tolist())
        try:
            import ml_dtypes
        except ImportError:
            with self.assertRaisesRegex(wavejit.InvalidArgument, "ml_dtypes"):
                array.numpy()
            return
        self.assertEqual(array.numpy().dtype, ml_dtypes.bfloat16)
        again = ENGINE.array(array.numpy())
        self.assertEqual((again.dtype, again.numpy("uint16").tolist()), ("bf16", bits.tolist()))


class Exchange(unittest.TestCase):
    def test_a_borrowed_tensor_is_the_same_memory(self):
        for versioned in (True, False):
            q, k, out = ones(1, 4, 2, 64), ones(1, 16, 2, 64), ENGINE.empty((1, 4, 2, 64), "fp16")
            out.copy_from(numpy.zeros(out.shape, numpy.float16))
            lent = Foreign(Owner(out), versioned)
            self.assertIs(ENGINE.attention_forward(Foreign(Owner(q), versioned), k, k, lent), lent)
            self.assertTrue((out.numpy() == 1).all())
            self.assertEqual(ENGINE.from_dlpack(lent).data_ptr, out.data_ptr)

    def test_what_is_lent_comes_back_once(self):
        array = ones(3)
        other = wavejit.Engine("sim:gfx950")
        for version in (None, (1, 0)):
            capsule = array.__dlpack__(max_version=version)
            borrowed = _wavejit.BorrowedTensor(capsule)
            self.assertEqual((borrowed.address, borrowed.device, borrowed.shape, borrowed.dtype), (array.data_ptr, (10, 0), [3], (2, 16, 1)))
            del capsule, borrowed
            array.__dlpack__(max_version=version)  # dropped by nobody's hand
        self.assertEqual(other.from_dlpack(array).data_ptr, array.data_ptr)

    def test_a_copy_in_host_memory(self):
        array = ENGINE.array(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
        self.assertEqual(array.__dlpack_device__(), (10, 0))
        host = numpy.from_dlpack(array.permute(1, 0), device="cpu")
        self.assertEqual(host.tolist(), [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]])
        for words in ({"dl_device": (2, 0)}, {"copy": True}, {"dl_device": (1, 0), "copy": False}):
            with self.assertRaises(BufferError):
                array.__dlpack__(**words)

    def test_host_tensors_of_dlpack(self):
        class Host:
            def __init__(self, array, code, bits):
                self.array, self.type = array, (code, bits)

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **_):
                strides = [step // self.array.itemsize for step in self.array.strides]
                return _wavejit.export_dlpack(self.array, self.array.ctypes.data, *self.type, list(self.array.shape), strides, 1, 0, True)

        bits = numpy.full((1, 16, 2, 64), 0x3F80, numpy.uint16)
        out = Host(numpy.zeros((1, 16, 2, 64), numpy.uint16), 4, 16)
        ENGINE.attention_forward(Host(bits, 4, 16), Host(bits, 4, 16), Host(bits, 4, 16), out)
        self.assertTrue((out.array == 0x3F80).all())
        wide = Host(numpy.array([0, 7, 16, 9], numpy.int64)[::2], 0, 64)  # lengths as other libraries count them
        self.assertEqual(ENGINE.array(wide, "int32").numpy().tolist(), [0, 16])

    def test_streams(self):
        owner = Owner(ones(1, 4, 2, 64))
        k = ones(1, 16, 2, 64)
        ENGINE.attention_forward(Foreign(owner), k, k)
        self.assertEqual(owner.streams, [0])  # the default stream, by the protocol's rule for ROCm

        class Stream:
            cuda_stream = 0

        ENGINE.attention_forward(Foreign(owner), k, k, stream=Stream())
        ENGINE.from_dlpack(Foreign(owner), stream=77)
        self.assertEqual(owner.streams, [0, 0, 77])

    def test_an_export_waits_only_for_another_stream(self):
        waits = []

        class Counting(wavejit.Engine):
            def synchronize(self):
                waits.append(1)
                super().synchronize()

        engine = Counting("sim:gfx950")
        rows = engine.array(numpy.ones((1, 16, 2, 64), numpy.float16))
        rows.__dlpack__(stream=77)
        self.assertEqual(len(waits), 0)  # nothing was launched over it
        out = engine.attention_forward(rows, rows, rows)
        out.__dlpack__(stream=0), out.__dlpack__(), out.__dlpack__(stream=-1)
        self.assertEqual(len(waits), 0)
        out[0].__dlpack__(stream=77)
        self.assertEqual(len(waits), 1)


class KeptAlive(unittest.TestCase):
    def test_borrowed_memory_until_the_device_was_waited_for(self):
        owner = Owner(ones(1, 4, 2, 64))
        watched, k = weakref.ref(owner), ones(1, 16, 2, 64)
        out = ENGINE.attention_forward(Foreign(owner), k, k)
        del owner
        gc.collect()
        self.assertIsNotNone(watched())
        ENGINE.synchronize()
        gc.collect()
        self.assertIsNone(watched())
        self.assertTrue((out.numpy() == 1).all())

    def test_a_call_keeps_what_it_was_given(self):
        q, k = ones(1, 4, 2, 64), ones(1, 16, 2, 64)
        call = ENGINE.attention_forward_call(q, k, k, key_lengths=[9])
        q.free()
        del k
        gc.collect()
        call.launch()
        self.assertTrue((call.out.numpy() == 1).all())

    def test_so_many_calls_over_borrowed_memory_wait(self):
        from wavejit import _opened_device

        engine = wavejit.Engine("sim:gfx950")
        array = engine.array(numpy.ones((1, 1, 1, 64), numpy.float16))
        for _ in range(_opened_device.KEPT_CALLS + 3):
            engine._keep(object())
        self.assertEqual(len(engine._kept), 3)
        self.assertEqual(array.shape, (1, 1, 1, 64))

    def test_an_array_outlives_the_name_of_its_engine(self):
        engine = wavejit.Engine("sim:gfx950")
        array = engine.array(numpy.ones(3, numpy.float32))
        del engine
        gc.collect()
        self.assertEqual(array.numpy().tolist(), [1.0, 1.0, 1.0])


if __name__ == "__main__":
    unittest.main()
