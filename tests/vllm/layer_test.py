# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer by itself on CPU tensors: new keys into its cache, and sequences of which each says whether it is causal."""
import os
import types
import unittest

import torch
from exact import attention
from vllm.model_executor.layers.quantization.utils.quant_utils import kFp8Dynamic128Sym, kFp8StaticTensorSym

import wavejit.vllm
from wavejit.vllm import WavejitAttention, WavejitMetadata, _cache, _lines
from wavejit.vllm._backend import SCALE_BYTES
from wavejit.vllm._serving import Serving

HEADS, KV_HEADS, DIM, PAGE, PAGES = 4, 2, 64, 16, 12
# An engine of its own: that of vLLM's layers is sealed once a model has run.
SERVING = Serving(wavejit.Engine(os.environ["WAVEJIT_DEVICE"]), False)
SCALES = types.SimpleNamespace(_k_scale=torch.tensor(0.5), _v_scale=torch.tensor(2.0))  # of a layer whose cache has 8 bits


def setUpModule():
    wavejit.vllm.use(SERVING.engine, seal=False)


def layer(**words):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        return WavejitAttention(HEADS, DIM, DIM**-0.5, KV_HEADS, **words)
    finally:
        torch.set_default_dtype(default)


def cache(dtype=torch.bfloat16, heads_first=True):
    """As vLLM makes one, in either order of heads and keys."""
    shape = (PAGES, KV_HEADS, PAGE, 2 * DIM) if heads_first else (PAGES, PAGE, KV_HEADS, 2 * DIM)
    made = torch.zeros(shape, dtype=dtype)
    return made if heads_first else made.transpose(1, 2)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.enterContext(torch.inference_mode())


class Append(Case):
    def test_rows_go_to_their_slots_and_rows_of_no_slot_nowhere(self):
        slots = torch.tensor([3 * PAGE + 5, -1, PAGE, 7 * PAGE + 15, -1])
        key, value = torch.randn(2, 7, KV_HEADS, DIM).bfloat16()  # two rows more than slots, as a padded step has
        for heads_first in (True, False):
            kept = cache(heads_first=heads_first)
            kept[0] = 9  # of no sequence: what stands there stays
            layer().do_kv_cache_update(None, key, value, kept, slots)
            k, v = _cache.pages(kept, DIM, DIM, "")
            expected_k, expected_v = (torch.zeros(PAGES, PAGE, KV_HEADS, DIM, dtype=torch.bfloat16) for _ in range(2))
            expected_k[0] = expected_v[0] = 9
            for row, slot in enumerate(slots.tolist()):
                if slot >= 0:
                    expected_k[slot // PAGE, slot % PAGE], expected_v[slot // PAGE, slot % PAGE] = key[row], value[row]
            self.assertTrue(torch.equal(k, expected_k) and torch.equal(v, expected_v))

    def test_in_8_bits_with_scales_and_nothing_becomes_nan(self):
        of = types.SimpleNamespace(_k_scale=torch.tensor(0.25), _v_scale=torch.tensor([2.0]))
        for name in ("fp8", "fp8_e5m2"):
            implementation, kept = layer(kv_cache_dtype=name), cache(torch.uint8)
            dtype = _cache.FORMATS[implementation.kind.cache]
            key, value = torch.randn(2, 3, KV_HEADS, DIM).bfloat16()
            key[0, 0, 0], key[0, 0, 1] = 1e6, -1e6
            implementation.do_kv_cache_update(of, key, value, kept, torch.tensor([PAGE, PAGE + 1, 40]))
            k, v = (each.float() for each in _cache.pages(kept, DIM, DIM, implementation.kind.cache))
            self.assertEqual((float(k[1, 0, 0, 0]), float(k[1, 0, 0, 1])), (torch.finfo(dtype).max, -torch.finfo(dtype).max))
            self.assertTrue(torch.equal(k[2, 40 - 2 * PAGE], (key[2].float() / 0.25).to(dtype).float()))
            self.assertTrue(torch.equal(v[1, 1], (value[1].float() / 2).to(dtype).float()))
            self.assertTrue(torch.isfinite(k).all() and torch.isfinite(v).all())

    def test_a_scale_for_each_token_and_head_is_found_and_stands_behind_the_token(self):
        for name, greatest, within in (("int8_per_token_head", 127, 0.51), ("fp8_per_token_head", 448, 16.1)):
            implementation = layer(kv_cache_dtype=name)
            kept = torch.randint(0, 100, (PAGES, KV_HEADS, PAGE, 2 * DIM + SCALE_BYTES), dtype=torch.int8)
            before = kept.clone()
            key, value = torch.randn(2, 2, KV_HEADS, DIM).bfloat16()
            implementation.do_kv_cache_update(None, key, value, kept, torch.tensor([PAGE + 3, -1]))
            for given, numbers, scales in zip((key, value), _cache.pages(kept, DIM, DIM, implementation.kind.cache), _cache.token_scales(kept, 2 * DIM)):
                found, scale = numbers[1, 3].float(), scales[1, 3]
                self.assertTrue(torch.allclose(scale, given[0].float().abs().amax(-1) / greatest, rtol=1e-6))
                self.assertLessEqual(float((found - given[0].float() / scale[:, None]).abs().max()), within)
            kept[1, :, 3, : 2 * DIM + 8] = before[1, :, 3, : 2 * DIM + 8]
            self.assertTrue(torch.equal(kept, before))

    def test_a_cache_that_is_not_there_yet(self):
        layer().do_kv_cache_update(None, torch.zeros(2, KV_HEADS, DIM), torch.zeros(2, KV_HEADS, DIM), torch.tensor([]), torch.tensor([0, 1]))


class Attention(Case):
    def run_layer(self, implementation, causal, padded=0, serving=SERVING, output_scale=None):
        """What a step gives, its last `padded` rows those of no sequence, and a function that says what is right: of rows that are causal
        or not, with a window of `keys` keys or without."""
        starts, lengths = torch.tensor([0, 5, 6, 26], dtype=torch.int32), torch.tensor([21, 40, 20], dtype=torch.int32)
        table = torch.randperm(PAGES)[: 3 * 3].reshape(3, 3).int()
        kept = torch.randn(PAGES, KV_HEADS, PAGE, 2 * DIM)
        kept = kept.to(_cache.FORMATS[implementation.kind.cache]) if implementation.kind.cache else kept.bfloat16()
        query = torch.randn(26 + padded, HEADS, DIM).bfloat16()
        output = torch.full_like(query, float("nan"))
        if output_scale is not None:
            output = output.to(torch.float8_e4m3fn)
        metadata = WavejitMetadata(26 + padded, starts, lengths, table, 20, 40, causal, serving)
        self.assertIs(implementation.forward(SCALES, query, None, None, kept.view(torch.uint8) if implementation.kind.cache else kept, metadata, output, output_scale), output)
        k, v = _cache.pages(kept, DIM, DIM, "")
        scales = {"k_scale": 0.5, "v_scale": 2.0} if implementation.kind.cache else {}

        def exact(told, keys=None, right=None):
            words = {"scale": implementation.scale, "window_left": None if keys is None else keys - 1, "window_right": right, "causal": told, **scales}
            return attention(query[:26], k.float(), v.float(), starts, lengths, table, **words)[0]

        return output.float().double(), exact

    def worst(self, found, right):
        return float((found - right).abs().max())

    def test_each_sequence_says_whether_it_is_causal(self):
        for keys in (None, 9):
            found, exact = self.run_layer(layer(sliding_window=keys), torch.tensor([True, False, False]))
            causal, others = exact(True, keys), exact(False, keys, None if keys is None else keys - 1)
            self.assertLess(self.worst(found[:5], causal[:5]), 2e-2)
            self.assertLess(self.worst(found[5:], others[5:]), 2e-2)
            self.assertGreater(self.worst(causal[6:], others[6:]), 0.5)  # it would have shown

    def test_none_is(self):
        found, exact = self.run_layer(layer(), False)
        self.assertLess(self.worst(found, exact(False)), 2e-2)

    def test_a_window_has_its_keys_on_both_sides_where_rows_are_not_causal(self):
        """As vLLM's own backends have it: drafts of DFlash come from such layers, over caches of the queries' type and of 8 bits."""
        for cache in ("auto", "fp8", "fp8_e5m2"):
            for keys in (1, 8, 33):
                with self.subTest(cache=cache, keys=keys):
                    found, exact = self.run_layer(layer(sliding_window=keys, kv_cache_dtype=cache), False)
                    right = exact(False, keys, keys - 1)
                    self.assertLess(self.worst(found, right), 3e-2)
                    if keys > 1:
                        self.assertGreater(self.worst(right, exact(False, keys, 0)), 0.5)  # a window on the left alone would have shown

    def test_windows_in_8_bits_where_each_sequence_says_whether_it_is_causal(self):
        found, exact = self.run_layer(layer(sliding_window=9, kv_cache_dtype="fp8"), torch.tensor([False, True, False]))
        causal, others = exact(True, 9), exact(False, 9, 8)
        self.assertLess(self.worst(torch.cat([found[:5], found[6:]]), torch.cat([others[:5], others[6:]])), 3e-2)
        self.assertLess(self.worst(found[5:6], causal[5:6]), 3e-2)

    def test_0_and_minus_1_are_no_window_causal_or_not(self):
        for given in (0, -1, None):
            implementation = layer(sliding_window=given)
            self.assertIsNone(implementation.kind.window_left)
            for causal in (True, False):
                found, exact = self.run_layer(implementation, causal)
                self.assertLess(self.worst(found, exact(causal)), 2e-2)
        with self.assertRaisesRegex(wavejit.Unsupported, "sliding_window -2: accepted are a number of keys from 1 on; None, 0 and -1 for no window"):
            layer(sliding_window=-2)

    def test_what_is_prepared_is_what_a_step_asks_for(self):
        """An engine that is sealed after the lines of a layer has the kernels of its windows, causal and not."""
        with wavejit.Engine(os.environ["WAVEJIT_DEVICE"]) as engine:
            serving, implementation = Serving(engine, True), layer(sliding_window=8, kv_cache_dtype="fp8")
            lines = [_lines.line(implementation.kind, 3, 32, 64, PAGE, causal) for causal in (True, False)]
            self.assertIn(" window=7,7 ", lines[1])
            serving.prepare(lines)
            serving.seal()
            for causal in (True, False, torch.tensor([True, False, True])):
                self.run_layer(implementation, causal, serving=serving)

    @unittest.skipIf("gfx942" in os.environ["WAVEJIT_DEVICE"], "vLLM's float8 is the FNUZ form there")
    def test_an_output_in_8_bits(self):
        """Where vLLM fuses what quantises the output, as it asks before a model is compiled: kernels of it are prepared, too."""
        self.assertFalse(layer().fused_output_quant_supported(kFp8Dynamic128Sym))
        with wavejit.Engine(os.environ["WAVEJIT_DEVICE"]) as engine:
            serving, implementation, scale = Serving(engine, True), layer(), torch.tensor([0.0625])
            self.assertEqual(len(implementation.kinds), 1)
            self.assertTrue(implementation.fused_output_quant_supported(kFp8StaticTensorSym))
            serving.prepare([_lines.line(kind, 3, 32, 64, PAGE, causal) for kind in implementation.kinds for causal in (True, False)])
            serving.seal()
            for causal in (True, False, torch.tensor([True, False, True])):
                found, exact = self.run_layer(implementation, causal, 2, serving, scale)
                wanted = exact(causal) if isinstance(causal, bool) else torch.cat([exact(True)[:5], exact(False)[5:6], exact(True)[6:]])
                self.assertLess(self.worst(found[:26] * 0.0625, wanted), 0.15)  # numbers up to 4 are 0.25 apart
                self.assertTrue(found[26:].isnan().all())
                wide, _ = self.run_layer(implementation, causal, 2, serving)
                self.assertEqual(wide.shape, found.shape)
        with self.assertRaisesRegex(wavejit.Unsupported, "output_block_scale: there is one scale for all of an output"):
            layer().forward(None, torch.zeros(3, HEADS, DIM), None, None, torch.tensor([]), None, torch.zeros(3, HEADS, DIM), None, torch.ones(3))

    def test_rows_of_no_sequence_stay_as_they_are(self):
        """A padded step has rows behind the last sequence. vLLM's tensor is written where a sequence is, and nowhere else."""
        for causal in (True, False, torch.tensor([True, False, False])):
            found, exact = self.run_layer(layer(), causal, padded=3)
            self.assertFalse(found[:26].isnan().any())
            self.assertTrue(found[26:].isnan().all())
            if isinstance(causal, bool):
                self.assertLess(self.worst(found[:26], exact(causal)), 2e-2)

    def test_sinks_are_taken_again_when_weights_are_loaded_again(self):
        implementation = layer(sinks=torch.ones(HEADS, dtype=torch.bfloat16))
        implementation.process_weights_after_loading(torch.bfloat16)
        address = implementation._sinks.data_ptr()
        implementation.sinks.fill_(3)
        implementation.process_weights_after_loading(torch.bfloat16)
        self.assertEqual((implementation._sinks.tolist(), implementation._sinks.data_ptr()), ([3.0] * HEADS, address))

    def test_vllms_look_at_its_memory_is_zeros(self):
        output = torch.full((3, HEADS, DIM), 7.0)
        layer().forward(None, output, None, None, torch.tensor([]), None, output)
        self.assertTrue((output == 0).all())


if __name__ == "__main__":
    unittest.main()
