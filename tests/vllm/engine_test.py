# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's scheduler, runner and caches over wavejit: every layer of every step against float64, and sequences alone, bit by bit.

WAVEJIT_TEST_WHOLE=1: all models, caches of 8 bits, larger pages, more requests.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from engines import MODELS, Witness, engine, generate, prompt, statistics

from wavejit.vllm import _calls

WHOLE = os.environ.get("WAVEJIT_TEST_WHOLE") == "1"


class Case(unittest.TestCase):
    witness = Witness

    def serve(self, kind, **options):
        """Chunks, mixes, decode, a prefix that is there already; returns what was seen of it."""
        with self.witness().watching() as seen, engine(kind, **options) as made:
            before = statistics()
            prompts = [prompt(length, length) for length in (20, 5, 80)]
            first = generate(made, prompts, 5)
            again = generate(made, [prompts[2] + prompt(9, 1), prompts[2]], 3)
            after = statistics()
        self.assertEqual([len(each.outputs[0].token_ids) for each in first], [5, 5, 5])
        self.assertGreaterEqual(again[0].num_cached_tokens, 32)  # the prefix was found
        self.assertEqual([len(each.outputs[0].token_ids) for each in again], [3, 3])
        for what in ("mixes", "chunks", "decodes", "alone"):
            self.assertGreater(getattr(seen, what), 1, what)
        # Sealed: what was prepared from the model's configuration was all that was needed.
        self.assertEqual((after["compiled"], after["disk_hits"], after["refused_sealed"]), (before["compiled"], before["disk_hits"], 0))
        self.assertGreaterEqual(after["calls"] - before["calls"], seen.calls)
        return seen


class Engine(Case):
    def test_llama_in_chunks_mixes_and_behind_a_prefix(self):
        seen = self.serve("llama")
        self.assertEqual(len(seen.layers), 2)

    def test_gpt_oss_has_sinks_and_a_window_in_every_second_layer(self):
        seen = self.serve("gpt_oss")
        self.assertEqual({(kind.sinks, kind.window_left) for _, kind in seen.layers}, {(True, 23), (True, None)})

    def test_integers_with_a_scale_for_each_token_and_head(self):
        seen = self.serve("gpt_oss", kv_cache_dtype="int8_per_token_head")
        self.assertEqual({(kind.cache, kind.tokens) for _, kind in seen.layers}, {("i8", True)})

    def test_preempted_requests(self):
        """Pages for two of three sequences: the third one's are taken from it, and its prompt is computed again."""
        with Witness().watching() as seen, engine("llama", num_gpu_blocks_override=7, max_model_len=96, enable_prefix_caching=False) as made:
            outputs = generate(made, [prompt(60, each) for each in range(3)], 8)
        self.assertGreater(seen.preempted, 0)
        self.assertEqual([len(each.outputs[0].token_ids) for each in outputs], [8, 8, 8])


@unittest.skipUnless(WHOLE, "WAVEJIT_TEST_WHOLE=1 asks for all models")
class Whole(Case):
    def test_every_model(self):
        for kind in [each for each in MODELS if each != "odd" and not each.startswith("deepseek")]:
            with self.subTest(kind):
                self.serve(kind)

    def test_chunks_of_llama_4(self):
        seen = self.serve("llama4")
        self.assertEqual([max(seen.longest[layer, kind] for layer, kind in seen.layers if f"layers.{number}." in layer) > 32 for number in range(2)], [False, True])

    def test_caches_of_8_bits(self):
        for dtype, name in (("fp8", "e4m3"), ("fp8_e5m2", "e5m2"), ("fp8_per_token_head", "e4m3")):
            with self.subTest(dtype):
                seen = self.serve("llama", kv_cache_dtype=dtype)
                self.assertEqual({(kind.cache[:4], kind.tokens) for _, kind in seen.layers}, {(name, "token" in dtype)})

    def test_pages_of_other_sizes_in_fp16(self):
        for size in (16, 64):
            with self.subTest(size):
                self.serve("qwen", block_size=size, dtype="float16")

    def test_processes_of_its_own_as_vllm_starts_them(self):
        """The front end, the engine's process and its worker each load the plug-in: the same tokens as in one process."""
        program = "import engines; made = engines.engine('llama')\nif __name__ == '__main__':\n  with made as llm: print('TOKENS', engines.generate(llm, [engines.prompt(50, 3)], 4)[0].outputs[0].token_ids)\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "program.py")
            path.write_text(program, encoding="utf-8")
            environment = {**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_LOGGING_LEVEL": "INFO"}
            run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=600, env=environment)
        self.assertEqual(run.returncode, 0, run.stderr[-4000:])
        self.assertRegex(run.stdout + run.stderr, r"Worker.*wavejit\.vllm: 2 kinds of calls prepared on sim:\w+ in [0-9.]+ s: [1-9][0-9]* kernels, [0-9]+ of them compiled")
        with engine("llama") as made:
            tokens = generate(made, [prompt(50, 3)], 4)[0].outputs[0].token_ids
        self.assertIn(f"TOKENS {tokens}", run.stdout)

    def test_the_witness_notices_a_wrong_scale(self):
        wrong = mock.patch.object(_calls.Words, "__init__", lambda words, kind, scale, make=_calls.Words.__init__: make(words, kind, 1.1 * scale))
        with self.assertRaisesRegex(AssertionError, "layers.0.self_attn.attn: "), wrong, Witness().watching(), engine("llama") as made:
            generate(made, [prompt(40, 1)], 2)
