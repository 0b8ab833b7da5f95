# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's own engine, its processes, scheduler, pool and prefix cache, on CPU tensors over the simulated GPU, with a tiny model of random weights."""
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import torch
import transformers

SIZES = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
         "vocab_size": 128, "max_position_embeddings": 512, "pad_token_id": 0}  # fmt: skip


def prompt(length, seed):
    return torch.randint(1, 127, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 64,
          "first_k_dense_replace": 2, "moe_layer_freq": 1, "n_routed_experts": 8, "n_group": 1, "topk_group": 1,
          # SGLang for CPUs has positions of this kind alone.
          "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0, "original_max_position_embeddings": 256, "beta_fast": 32, "beta_slow": 1,
                              "mscale": 1.0, "mscale_all_dim": 1.0}}  # fmt: skip
MODELS = {"llama": ("Llama", {}), "deepseek": ("DeepseekV3", LATENT)}


def save(folder, kind):
    name, words = MODELS[kind]
    torch.manual_seed(17)
    model = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, f"{name}Config")(**{**SIZES, **words})).to(torch.bfloat16)
    for parameter in model.parameters():  # attention that is far from uniform
        parameter.data *= 3 if parameter.ndim > 1 else 1
    model.save_pretrained(folder)


def serve(page, kind, cache):
    """Prompts in pieces, mixes, decode, a prefix that is there already."""
    import sglang

    with tempfile.TemporaryDirectory() as folder:
        save(folder, kind)
        engine = sglang.Engine(model_path=folder, device="cpu", dtype="bfloat16", attention_backend="wavejit", skip_tokenizer_init=True, max_total_tokens=2048,
                               page_size=page, chunked_prefill_size=48, max_prefill_tokens=48, enable_mixed_chunk=True, max_running_requests=4, mem_fraction_static=0.1,
                               kv_cache_dtype=cache, disable_cuda_graph=True, sampling_backend="pytorch", disable_overlap_schedule=True, skip_server_warmup=True, log_level="error")  # fmt: skip
        sampling = {"max_new_tokens": 5, "temperature": 0, "ignore_eos": True}
        first = engine.generate(input_ids=[prompt(length, length) for length in (20, 5, 80)], sampling_params=sampling)
        again = engine.generate(input_ids=[prompt(80, 80) + prompt(9, 1), prompt(7, 2)], sampling_params=sampling)
        engine.shutdown()
    print("FOUND", json.dumps({"tokens": [len(each["output_ids"]) for each in first + again], "cached": again[0]["meta_info"]["cached_tokens"]}))


class Engine(unittest.TestCase):
    def run_engine(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            # As an installed plug-in: SGLang's processes find it by its entry point.
            plugin = pathlib.Path(folder, "witness-1.dist-info")
            plugin.mkdir()
            plugin.joinpath("METADATA").write_text("Metadata-Version: 2.4\nName: witness\nVersion: 1\n", encoding="utf-8")
            plugin.joinpath("entry_points.txt").write_text("[sglang.srt.plugins]\nwitness = witness:register\n", encoding="utf-8")
            seen = pathlib.Path(folder, "seen")
            environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ['PYTHONPATH']}", "WAVEJIT_WITNESS": str(seen), "SGLANG_USE_CPU_ENGINE": "1"}
            run = subprocess.run([sys.executable, __file__, "serve", *map(str, words)], capture_output=True, text=True, timeout=1500, env=environment)
            self.assertEqual(run.returncode, 0, run.stderr[-4000:])
            (found,) = [json.loads(line.removeprefix("FOUND ")) for line in run.stdout.splitlines() if line.startswith("FOUND ")]
            return found, [json.loads(line) for line in seen.read_text(encoding="utf-8").splitlines()]

    def judge(self, page, kind="llama", cache="auto"):
        found, calls = self.run_engine(page, kind, cache)
        self.assertEqual(found["tokens"], [5] * 5)
        self.assertGreaterEqual(found["cached"], 64)  # the prefix was found
        for call in calls:
            with self.subTest(call):
                self.assertLess(call["error"], 2.0**-6)
                self.assertTrue(call["alone"])
                self.assertTrue(call["sealed"])
                self.assertEqual(call["refused"], 0)
        self.assertEqual({call["layer"] for call in calls}, {0, 1})
        kinds = {"mixes": lambda rows, keys: 1 in rows and max(rows) > 1, "chunks": lambda rows, keys: any(1 < row < key for row, key in zip(rows, keys)),
                 "decode": lambda rows, keys: set(rows) == {1}}  # fmt: skip
        for name, is_one in kinds.items():
            self.assertGreater(sum(is_one(call["rows"], call["keys"]) for call in calls), 1, name)

    def test_llama_over_a_pool_of_tokens(self):
        self.judge(1)

    def test_llama_over_pages(self):
        self.judge(16)

    def test_deepseek_whose_rows_are_all_absorbed(self):
        self.judge(16, "deepseek")


class Pools(unittest.TestCase):
    """Layers by themselves, over pools of 8 bits: SGLang for CPUs keeps those to kernels of its own."""

    def run_layer(self, latent, width, value_dim, heads, kv_heads, scales, padded=0, window=-1):
        from exact import attention

        import wavejit
        from wavejit.sglang import WavejitBackend, WavejitMetadata
        from wavejit.vllm._serving import Serving

        torch.manual_seed(3)
        dtype = torch.float8_e4m3fn if "gfx950" in os.environ["WAVEJIT_DEVICE"] else torch.float8_e4m3fnuz
        page, starts, lengths = 16, torch.tensor([0, 5, 6], dtype=torch.int32), torch.tensor([21, 40], dtype=torch.int32)
        table = torch.randperm(12)[:6].reshape(2, 3).int()
        keys = torch.randn(12 * page, kv_heads, width).to(dtype)
        values = keys[..., :value_dim] if latent else torch.randn(12 * page, kv_heads, value_dim).to(dtype)
        layer = types.SimpleNamespace(layer_id=0, tp_q_head_num=heads, qk_head_dim=width, v_head_dim=value_dim, scaling=width**-0.5, sliding_window_size=window, logit_cap=0.0,
                                      k_scale=None if scales is None else torch.tensor(scales[0]), v_scale=None if scales is None else torch.tensor(scales[1]))  # fmt: skip
        with wavejit.Engine(os.environ["WAVEJIT_DEVICE"]) as engine:
            backend = WavejitBackend.__new__(WavejitBackend)
            backend.page, backend.latent, backend.serving = page, latent, Serving(engine, False)
            backend.pool = types.SimpleNamespace(get_key_buffer=lambda _: keys, get_value_buffer=lambda _: values)
            backend.forward_metadata = WavejitMetadata(starts, lengths, table, 5, 40, 6)
            query = torch.randn(6 + padded, heads, width).bfloat16()
            with mock.patch.object(torch, "empty", lambda *given, empty=torch.empty, **words: empty(*given, **words).fill_(7)):
                found = backend.attend(query.reshape(6 + padded, -1), layer, None).view(6 + padded, heads, value_dim)
        self.assertFalse(found[6:].any())
        query, found = query[:6], found[:6]
        told = ({} if scales is None else {"k_scale": scales[0], "v_scale": scales[1]}) | ({} if window < 0 else {"window_left": window})
        exact, size = attention(query, backend.paged(keys), backend.paged(values), starts, lengths, table, scale=layer.scaling, **told)
        self.assertLess(float(((found.double() - exact).abs() / (size + 2.0**-20)).max()), 2.0**-6)

    def test_unknown_words_are_refused_before_the_pool_is_written(self):
        import wavejit
        from wavejit.sglang import WavejitBackend

        written = []
        backend = WavejitBackend.__new__(WavejitBackend)
        backend.latent, backend.pool = False, types.SimpleNamespace(set_kv_buffer=lambda *given: written.append(given))
        with self.assertRaisesRegex(wavejit.Unsupported, "xai_temperature_len: not known to this version of wavejit"):
            backend.forward_extend(torch.zeros(1, 64), torch.zeros(1, 64), torch.zeros(1, 64), None, None, xai_temperature_len=1.0)
        self.assertEqual(written, [])

    def test_with_the_models_scales_and_without(self):
        for scales in (None, (0.5, 2.0)):
            self.run_layer(False, 64, 64, 4, 2, scales)
        self.run_layer(False, 64, 64, 4, 2, None, window=8)  # SGLang's number: keys before the row's own

    def test_rows_of_no_sequence_are_0(self):
        """A padded batch has rows behind the last sequence: what memory held would go on through the model."""
        self.run_layer(False, 64, 64, 4, 2, None, padded=3)
        self.run_layer(True, 576, 512, 4, 1, None, padded=3)

    def test_of_latent_attention(self):
        self.run_layer(True, 576, 512, 4, 1, None)


class Found(unittest.TestCase):
    def test_by_its_entry_point_and_declared_deterministic(self):
        (found,) = [each for each in importlib.metadata.entry_points(group="sglang.srt.plugins") if each.name == "wavejit"]
        register = found.load()
        register()
        register()
        from sglang.srt import server_args
        from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS

        import wavejit.sglang

        self.assertIn("wavejit", ATTENTION_BACKENDS)
        for choices in (server_args.ATTENTION_BACKEND_CHOICES, server_args.DETERMINISTIC_ATTENTION_BACKEND_CHOICES, server_args.RADIX_SUPPORTED_DETERMINISTIC_ATTENTION_BACKEND):
            self.assertEqual(choices.count("wavejit"), 1)
        with mock.patch("sglang.__version__", "9.9"), self.assertLogs("sglang.wavejit", "WARNING") as told:
            wavejit.sglang.register()
        self.assertRegex(told.output[0], r"SGLang 9\.9 has not been tried .*; tried: 0\.5\.23")

    def test_what_no_kernel_does_is_refused_by_name(self):
        import wavejit
        from wavejit.sglang import _limits

        runner = types.SimpleNamespace(use_mla_backend=True, dtype=torch.float32, kv_cache_dtype=torch.int8, token_to_kv_pool=types.SimpleNamespace(use_dsa=True), model=torch.nn.Module(),
                                       server_args=types.SimpleNamespace(speculative_algorithm="EAGLE"))  # fmt: skip
        with self.assertRaisesRegex(wavejit.Unsupported, "lists of keys \\(DSA\\).*dtype torch.float32: accepted are float16 and bfloat16.*kv_cache_dtype torch.int8.*fp8_e4m3 and fp8_e5m2.*speculation"):
            _limits.kinds_of(runner)
        with self.assertRaisesRegex(wavejit.Unsupported, "wavejit.sglang: .*d.*--attention-backend triton may have it"):
            _limits.check(_limits.Kind("bf16", 4, 2, 36, 36, None, 0.0, False, False, ""), 16, "gfx950")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]), *sys.argv[3:])
    else:
        unittest.main()
