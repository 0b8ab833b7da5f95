# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What traces: jit, vmap, scan, checkpoints, shard_map over two devices, lowering and exporting where there is no device; engines and threads."""
import os
import threading
import unittest
from unittest import mock

import jax
import numpy
from exact import Case, draw, wavejit
from jax import numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from wavejit import _masks


def bits(array):
    return array.view(jnp.uint16)


def self_attention(x, **words):
    return wavejit.jax.attention(x, x, x, causal=True, **words)


def total(x):
    return self_attention(x).astype(jnp.float32).sum()


class Mapped(Case):
    def test_vmap_is_batch(self):
        x = draw(1, 3, 2, 24, 2, 64)
        one_by_one = jnp.stack([self_attention(each) for each in x])
        text = jax.jit(jax.vmap(self_attention)).lower(x).as_text()
        self.assertEqual(text.count("@wavejit_attention_forward("), 1)
        self.assertNotIn("stablehlo.while", text)
        self.same_bits(bits(jax.vmap(self_attention)(x)), bits(one_by_one))
        self.same_bits(bits(jax.vmap(self_attention, 4, 4)(jnp.moveaxis(x, 0, 4))), bits(jnp.moveaxis(one_by_one, 0, 4)))
        nested = jax.vmap(jax.vmap(lambda x: self_attention(x[None])[0]))(x)
        self.same_bits(bits(nested), bits(one_by_one))

    def test_queries_alone(self):
        q, k = draw(1, 3, 2, 8, 4, 64), draw(2, 2, 24, 2, 64)
        for words, axes in (({}, {}), ({"bias": draw(3, 1, 4, 8, 24)}, {}), ({"bias": draw(3, 2, 1, 8, 24)}, {}), ({"bias": draw(3, 3, 1, 4, 8, 24)}, {"bias": 0}),
                            ({"key_lengths": jnp.array([24, 7], jnp.int32)}, {}), ({"key_lengths": jnp.array([[24, 7], [1, 2], [9, 24]], jnp.int32)}, {"key_lengths": 0}),
                            ({"alibi": jnp.abs(draw(4, 2, 4, dtype=jnp.float32))}, {}), ({"sinks": draw(5, 4, dtype=jnp.float32)}, {}), ({"sinks": draw(5, 3, 4, dtype=jnp.float32)}, {"sinks": 0})):
            with self.subTest(str({name: each.shape for name, each in words.items()})):
                names = tuple(words)
                mapped = jax.vmap(lambda q, *arrays, names=names: wavejit.jax.attention(q, k, k, **dict(zip(names, arrays))), (0, *(axes.get(name) for name in names)))
                found = mapped(q, *words.values())
                for i in range(3):
                    each = {name: array[i] if name in axes else array for name, array in words.items()}
                    self.same_bits(bits(found[i]), bits(wavejit.jax.attention(q[i], k, k, **each)))

    def test_packed_go_one_after_the_other(self):
        x, starts = draw(1, 2, 1, 24, 2, 64), jnp.array([[0, 5, 24], [0, 20, 24]], jnp.int32)
        found = jax.vmap(lambda x, starts: self_attention(x, query_starts=starts, key_starts=starts))(x, starts)
        for i in range(2):
            self.same_bits(bits(found[i]), bits(self_attention(x[i], query_starts=starts[i], key_starts=starts[i])))

    def test_gradients(self):
        x = draw(1, 3, 2, 24, 2, 64)
        want = jnp.stack([jax.grad(total)(each) for each in x])
        self.same_bits(bits(jax.vmap(jax.grad(total))(x)), bits(want))
        self.same_bits(bits(jax.grad(lambda x: jax.vmap(total)(x).sum())(x)), bits(want))
        bias = draw(2, 1, 2, 24, 24, dtype=jnp.float32)  # one for all: of each map a gradient of its own

        def with_bias(x, bias):
            return wavejit.jax.attention(x, x, x, bias=bias).astype(jnp.float32).sum()

        found = jax.vmap(jax.grad(with_bias, 1), (0, None))(x, bias)
        for i in range(3):
            self.near(found[i], jax.grad(with_bias, 1)(x[i], bias), 100)


class MasksByTile(Case):
    """Masks of bools go by tile where there is such a kernel, and have the bits of a bias that hides the same."""

    def operands(self, lowered):
        """Types of the call's operands, as the program has them."""
        line = next(line for line in lowered.as_text().splitlines() if "@wavejit_attention_forward(" in line)
        return line.rsplit(" : (", 1)[1].split(") -> ", 1)[0]

    def as_bias(self, mask, dtype=jnp.bfloat16):
        return jnp.where(mask, jnp.zeros((), dtype), jnp.full((), -jnp.inf, dtype))

    def test_have_the_bits_of_a_bias(self):
        q, k = draw(1, 2, 70, 4, 64), draw(2, 2, 133, 2, 64)
        lengths = jnp.array([133, 60], jnp.int32)
        for shape in ((1, 1, 70, 133), (2, 4, 70, 133), (2, 1, 1, 133), (1, 4, 70, 1)):
            for words in ({}, {"causal": True, "key_lengths": lengths}, {"softcap": 5.0}, {"alibi": jnp.array([0.5, 0.25, 0.125, 0.0625])}):
                with self.subTest(shape=shape, words=list(words)):
                    mask = draw(3, *shape) > 0
                    of = jax.jit(lambda q, k, bias, words=words: wavejit.jax.attention(q, k, k, bias=bias, lse=True, **words))
                    self.assertIn(f"tensor<{'x'.join(map(str, (*shape[:2], 70, 133)))}xi1>", self.operands(of.lower(q, k, mask)))
                    found, wanted = of(q, k, mask), of(q, k, self.as_bias(mask))
                    self.same_bits(bits(found[0]), bits(wanted[0]))
                    self.same_bits(found[1], wanted[1])

    def test_numbers_of_all_heads_go_by_tile(self):
        q, k = draw(1, 2, 70, 4, 64), draw(2, 2, 133, 2, 64)
        for shape, dtype in (((1, 1, 70, 133), jnp.bfloat16), ((2, 1, 70, 133), jnp.float32)):
            with self.subTest(shape=shape), mock.patch.object(_masks, "LEAST_SCORES_OF_NUMBERS", 1):
                bias = jnp.where(draw(3, *shape) > 0, draw(4, *shape), 0).astype(dtype)
                bias = bias.at[..., :66, 64:].set(-jnp.inf).at[..., 66:, :64].set(0)
                of = jax.jit(lambda q, k, bias: wavejit.jax.attention(q, k, k, bias=bias, lse=True))
                of_heads = jnp.broadcast_to(bias, (*shape[:1], 4, *shape[2:]))
                self.assertIn("flags = 128 ", of.lower(q, k, bias).as_text())
                self.assertIn("flags = 0 ", of.lower(q, k, of_heads).as_text())  # which have their own
                found, wanted = of(q, k, bias), of(q, k, of_heads)
                self.same_bits(bits(found[0]), bits(wanted[0]))
                self.same_bits(found[1], wanted[1])
                gradients = [jax.grad(lambda q, bias: wavejit.jax.attention(q, k, k, bias=bias).astype(jnp.float32).sum())(q, each) for each in (bias, of_heads)]
                self.same_bits(bits(gradients[0]), bits(gradients[1]))

    def test_few_rows_under_one_mask(self):
        q, k = draw(1, 2, 9, 4, 64), draw(2, 2, 1200, 2, 64)
        for shape in ((1, 1, 9, 1200), (2, 1, 9, 1200)):
            with self.subTest(shape=shape):
                mask = (draw(3, *shape) > 0).at[..., 128:320].set(False)
                of = jax.jit(lambda q, k, bias: wavejit.jax.attention(q, k, k, bias=bias, lse=True))
                self.assertIn(f"tensor<{'x'.join(map(str, shape))}xi1>", self.operands(of.lower(q, k, mask)))
                found, wanted = of(q, k, mask), of(q, k, self.as_bias(mask))
                self.same_bits(bits(found[0]), bits(wanted[0]))
                self.same_bits(found[1], wanted[1])

    def test_few_rows_with_masks_of_heads_and_padded_dims_have_a_bias(self):
        for rows, dim, heads in ((32, 64, 2), (70, 80, 1)):
            q, mask = draw(1, 1, rows, 2, dim), draw(2, 1, heads, rows, rows) > 0
            self.assertNotIn("xi1>", self.operands(jax.jit(lambda q, mask: wavejit.jax.attention(q, q, q, bias=mask)).lower(q, mask)))

    def test_of_jax_nn(self):
        q, k = draw(1, 1, 70, 4, 128), draw(2, 1, 133, 2, 128)
        mask = draw(3, 1, 70, 133) > 0
        found = wavejit.jax.dot_product_attention(q, k, k, mask=mask)
        self.same_bits(bits(found), bits(wavejit.jax.dot_product_attention(q, k, k, bias=self.as_bias(mask))))

    def test_vmap(self):
        q, mask = draw(1, 3, 2, 70, 2, 64), draw(2, 3, 1, 1, 70, 70) > 0

        def masked(q, mask):
            return wavejit.jax.attention(q, q, q, bias=mask)

        for axis in (0, None):
            found = jax.vmap(masked, (0, axis))(q, mask if axis == 0 else mask[0])
            for i in range(3):
                self.same_bits(bits(found[i]), bits(masked(q[i], mask[i if axis == 0 else 0])))

    def test_sharded(self):
        mesh = jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,))
        q = draw(1, 2, 70, 2, 64)
        placed = jax.device_put(q, NamedSharding(mesh, PartitionSpec("batch")))
        of = jax.jit(lambda q, bias: wavejit.jax.attention(q, q, q, bias=bias))
        for batches in (1, 2):
            mask = draw(2, batches, 1, 70, 70) > 0
            self.same_bits(bits(of(placed, mask)), bits(of(q, self.as_bias(mask))))

    def test_gradients(self):
        q, mask = draw(1, 2, 70, 2, 64), draw(2, 2, 1, 70, 70) > 0

        def loss(q, bias):
            return wavejit.jax.attention(q, q, q, bias=bias).astype(jnp.float32).sum()

        self.same_bits(bits(jax.grad(loss)(q, mask)), bits(jax.grad(loss)(q, self.as_bias(mask))))


class Traced(Case):
    def test_scan(self):
        x = draw(1, 1, 24, 2, 64)
        scanned = jax.jit(lambda x: jax.lax.scan(lambda x, _: (self_attention(x), None), x, length=3)[0])
        self.same_bits(bits(scanned(x)), bits(self_attention(self_attention(self_attention(x)))))
        gradient = jax.jit(jax.grad(lambda x: scanned(x).astype(jnp.float32).sum()))(x)
        unrolled = jax.grad(lambda x: self_attention(self_attention(self_attention(x))).astype(jnp.float32).sum())(x)
        self.same_bits(bits(gradient), bits(unrolled))

    def test_checkpoint(self):
        x = draw(1, 1, 24, 2, 64)
        self.same_bits(bits(jax.jit(jax.grad(jax.checkpoint(total)))(x)), bits(jax.grad(total)(x)))

    def test_two_devices(self):
        """Each of JAX's CPU devices has a simulated GPU of its own."""
        mesh = jax.make_mesh((2,), ("data",))
        x, sinks = draw(1, 4, 24, 2, 64), draw(2, 2, dtype=jnp.float32)
        spread = jax.device_put(x, NamedSharding(mesh, PartitionSpec("data")))
        engines = [wavejit.jax.engine("cpu", ordinal) for ordinal in range(2)]
        self.assertEqual([engine.device for engine in engines], ["sim:gfx950x2:0", "sim:gfx950x2:1"])
        before = [engine.statistics()["calls"] for engine in engines]
        sharded = jax.jit(jax.shard_map(lambda x, sinks: self_attention(x, sinks=sinks), mesh=mesh, in_specs=(PartitionSpec("data"), PartitionSpec()), out_specs=PartitionSpec("data")))
        out = sharded(spread, sinks)
        self.same_bits(bits(out), bits(self_attention(x, sinks=sinks)))
        after = [engine.statistics()["calls"] for engine in engines]
        self.assertTrue(all(later > earlier for earlier, later in zip(before, after)), (before, after))
        found = jax.jit(jax.grad(lambda x, sinks: sharded(x, sinks).astype(jnp.float32).sum(), (0, 1)))(spread, sinks)
        want = jax.grad(lambda x, sinks: self_attention(x, sinks=sinks).astype(jnp.float32).sum(), (0, 1))(x, sinks)
        self.same_bits(bits(found[0]), bits(want[0]))
        self.near(found[1], want[1], 100)  # the sum over devices is XLA's

    def test_sharded_arrays_under_jit_alone(self):
        """Each device calls with its own batches or heads, and nothing is gathered. In both ways that a mesh may have its axes."""
        x, q = draw(1, 4, 24, 2, 64), draw(2, 4, 24, 4, 64)
        words = {"bias": draw(3, 1, 4, 24, 24), "sinks": draw(4, 4, dtype=jnp.float32), "key_lengths": jnp.array([24, 7, 0, 9], jnp.int32)}

        def grouped(q, x):
            return wavejit.jax.attention(q, x, x, lse=True, **words)

        want, both, of_total = self_attention(x), grouped(q, x), jax.grad(total)(x)
        for kind in (AxisType.Auto, AxisType.Explicit):
            mesh = jax.make_mesh((2,), ("data",), axis_types=(kind,))
            for spec in (PartitionSpec("data"), PartitionSpec(None, None, "data")):
                sharding = NamedSharding(mesh, spec)
                spread, spread_q = jax.device_put(x, sharding), jax.device_put(q, sharding)
                program = jax.jit(self_attention)
                self.same_bits(bits(program(spread)), bits(want))
                self.same_bits(bits(jax.jit(jax.grad(total))(spread)), bits(of_total))
                found = jax.jit(grouped)(spread_q, spread)
                self.same_bits(bits(found[0]), bits(both[0]))
                self.same_bits(found[1].view(jnp.uint32), both[1].view(jnp.uint32))
                if kind == AxisType.Auto:
                    self.assertEqual(tuple(program(spread).sharding.spec)[: len(spec)], tuple(spec))
                    for compiled in (program.lower(spread).compile(), jax.jit(jax.grad(total)).lower(spread).compile()):
                        self.assertNotIn("all-gather", compiled.as_text())

    def test_sharded_arrays_whose_parts_are_not_calls(self):
        """Rows or dims that are sharded, one kv head for both devices, a gradient that is a sum over batches, packed sequences: gathered, and right."""
        mesh = jax.make_mesh((2,), ("data",))
        x, q, bias, starts = draw(1, 4, 24, 2, 64), draw(2, 4, 24, 4, 64), draw(3, 1, 1, 24, 24, dtype=jnp.float32), jnp.array([0, 5, 24], jnp.int32)

        def put(array, *spec):
            return jax.device_put(array, NamedSharding(mesh, PartitionSpec(*spec)))

        want = self_attention(x)
        for spec in ((None, "data"), (None, None, None, "data")):
            self.same_bits(bits(jax.jit(self_attention)(put(x, *spec))), bits(want))
        one = x[:, :, :1]
        self.same_bits(bits(jax.jit(wavejit.jax.attention)(put(q, None, None, "data"), one, one)), bits(wavejit.jax.attention(q, one, one)))
        of_bias = jax.grad(lambda bias, x: wavejit.jax.attention(x, x, x, bias=bias).astype(jnp.float32).sum())
        self.same_bits(jax.jit(of_bias)(bias, put(x, "data")).view(jnp.uint32), of_bias(bias, x).view(jnp.uint32))
        packed = jax.jit(lambda x: self_attention(x, query_starts=starts, key_starts=starts))
        self.same_bits(bits(packed(put(x[:1], None, None, "data"))), bits(packed(x[:1])))

    def test_lowering_without_a_device(self):
        """For ROCm, where there is none: the program names the same targets, and numbers stand in it as such."""
        x = jax.ShapeDtypeStruct((1, 24, 2, 64), jnp.bfloat16)
        lowered = jax.jit(jax.grad(lambda x: self_attention(x, window=(9, None)).astype(jnp.float32).sum())).trace(x).lower(lowering_platforms=("rocm",)).as_text()
        for text in ("@wavejit_attention_forward(", "@wavejit_attention_backward(", "window_left = 9 : i32", "mask = 3 : i32"):
            self.assertIn(text, lowered)

    def test_export(self):
        allowed = [jax.export.DisabledSafetyCheck.custom_call("wavejit_attention_forward")]
        x = draw(1, 1, 24, 2, 64)
        exported = jax.export.export(jax.jit(self_attention), platforms=("cpu", "rocm"), disabled_checks=allowed)(jax.ShapeDtypeStruct(x.shape, x.dtype))
        self.same_bits(bits(jax.export.deserialize(exported.serialize()).call(x)), bits(self_attention(x)))


class Engines(Case):
    def test_an_engine_of_ones_own_takes_over(self):
        first, x = wavejit.jax.engine("cpu"), draw(1, 1, 24, 2, 64)
        program = jax.jit(self_attention)
        want = program(x)
        launches = first.statistics()["calls"]
        with wavejit.Engine("sim:gfx942") as other:
            self.assertIs(wavejit.jax.use(other), other)
            self.near(program(x), want)
            self.assertEqual((other.statistics()["calls"], first.statistics()["calls"]), (1, launches))
            wavejit.jax.use(first)
        self.same_bits(bits(program(x)), bits(want))

    def test_threads(self):
        x = [draw(i, 1, 24, 2, 64) for i in range(8)]
        want, found, program = [self_attention(each) for each in x], [None] * 8, jax.jit(self_attention)

        def call(i):
            found[i] = program(x[i])

        threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one, other in zip(found, want):
            self.same_bits(bits(one), bits(other))

    def test_sealed(self):
        first = wavejit.jax.engine("cpu")
        with wavejit.Engine("sim:gfx950") as engine:
            wavejit.jax.use(engine)
            self.addCleanup(wavejit.jax.use, first)
            engine.seal()
            with self.assertRaisesRegex(Exception, "FAILED_PRECONDITION: .*attention_forward bf16 b1 q24 k24 h2 d64"):
                jax.block_until_ready(wavejit.jax.attention(*(draw(1, 1, 24, 2, 64),) * 3, softcap=3.0))

    def test_names(self):
        for name, text in (("tpu", "platform = 'tpu'; accepted: cpu, rocm, gpu"),):
            with self.assertRaisesRegex(wavejit.InvalidArgument, text):
                wavejit.jax.engine(name)
        with self.assertRaisesRegex(wavejit.NoDevice, "an array on cpu:2, and the device is sim:gfx950x2; accepted: sim:gfx950x3"):
            wavejit.jax.engine("cpu", 2)
        with self.assertRaises(TypeError):
            wavejit.jax.use(3)
        self.assertEqual(os.environ["WAVEJIT_DEVICE"], "sim:gfx950x2")
        self.assertEqual(numpy.asarray(jax.devices()).shape, (2,))


if __name__ == "__main__":
    unittest.main()
