# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How vLLM finds the backend, and what it is told before a model loads."""
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import torch
from engines import engine
from vllm.v1.attention.backends.registry import AttentionBackendEnum

import wavejit
import wavejit.vllm
from wavejit.vllm import WavejitAttention, WavejitBackend, WavejitLatentAttention, WavejitLatentBackend, _calls, _limits, _lines, _plugin, _serving
from wavejit.vllm._lines import Kind

LLAMA = Kind("bf16", 32, 8, 128, 128, None, 0.0, False, False, "")


def reasons(head_size=128, dtype=torch.bfloat16, kv_cache_dtype="auto", block_size=64, backend=WavejitBackend, **words):
    given = {"use_mla": False, "has_sink": False, "use_sparse": False, "use_mm_prefix": False, "use_per_head_quant_scales": False, "device_capability": None,
             "attn_type": "decoder", **words}  # fmt: skip
    return backend.validate_configuration(head_size, dtype, kv_cache_dtype, block_size, **given)


class Found(unittest.TestCase):
    def test_by_its_entry_point_and_twice_does_no_harm(self):
        (found,) = [each for each in importlib.metadata.entry_points(group="vllm.general_plugins") if each.name == "wavejit"]
        register = found.load()
        self.assertIs(register, wavejit.vllm.register)
        register()
        register()
        # vLLM for CPUs has no choice of backends: CPU_ATTN's place is ours, since WAVEJIT_DEVICE names a simulated GPU.
        for member in (AttentionBackendEnum.CUSTOM, AttentionBackendEnum.CPU_ATTN):
            self.assertIs(member.get_class(), WavejitBackend)
        # Latent attention has a name of its own, and the places of both backends that vLLM for CPUs has.
        for name in ("WAVEJIT_MLA", "CPU_MLA", "AMX_MLA"):
            self.assertIs(AttentionBackendEnum[name].get_class(), WavejitLatentBackend)
        self.assertIs(AttentionBackendEnum[WavejitBackend.get_name()], AttentionBackendEnum.CUSTOM)

    def test_latent_attention_by_its_name_on_the_command_line(self):
        from vllm.config import AttentionConfig
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        given = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser()).parse_args(["--attention-backend", "WAVEJIT_MLA"])
        self.assertIs(AttentionConfig(backend=given.attention_backend).backend, AttentionBackendEnum["WAVEJIT_MLA"])

    def test_without_a_simulated_gpu_the_cpus_own_attention_stays(self):
        self.addCleanup(wavejit.vllm.register)
        AttentionBackendEnum.CPU_ATTN.clear_override()
        with mock.patch.dict(os.environ):
            del os.environ["WAVEJIT_DEVICE"]
            wavejit.vllm.register()
        self.assertFalse(AttentionBackendEnum.CPU_ATTN.is_overridden())

    def test_another_plugins_backend_stays_with_a_warning(self):
        self.addCleanup(wavejit.vllm.register)
        self.addCleanup(AttentionBackendEnum.CUSTOM.clear_override)
        from vllm.v1.attention.backends.registry import register_backend

        register_backend(AttentionBackendEnum.CUSTOM, "others.Backend")
        with self.assertLogs(_plugin.logger, "WARNING") as told:
            wavejit.vllm.register()
        self.assertRegex(told.output[0], "CUSTOM is others.Backend already, and stays it; to have wavejit, .* VLLM_PLUGINS=wavejit")
        self.assertEqual(AttentionBackendEnum.CUSTOM.get_path(), "others.Backend")

    def test_a_version_that_was_not_tried_is_a_warning_that_names_those_that_were(self):
        with mock.patch.object(_plugin.vllm, "__version__", "0.99.1"), self.assertLogs(_plugin.logger, "WARNING") as told:
            wavejit.vllm.register()
        self.assertRegex(told.output[0], r"vLLM 0\.99\.1 has not been tried .*; tried: 0\.32\.x")
        with self.assertNoLogs(_plugin.logger, "WARNING"):
            wavejit.vllm.register()

    def test_missing_packages_are_named_with_the_command(self):
        for missing in ("torch", "vllm"):
            program = f"import sys; sys.modules['{missing}'] = None\nimport wavejit.vllm\nprint(wavejit.vllm.TRIED)\nwavejit.vllm.WavejitBackend"
            run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
            self.assertEqual(run.stdout.strip(), "('0.32',)")
            self.assertRegex(run.stderr, f"ModuleNotFoundError: wavejit.vllm: the package {missing} is not installed; accepted: `python -m pip install vllm`")


class Refused(unittest.TestCase):
    def test_what_is_served(self):
        for words in ({}, {"head_size": 64, "has_sink": True, "has_sliding_window": True}, {"kv_cache_dtype": "fp8"}, {"use_batch_invariant": True}, {"kv_cache_dtype": "int8_per_token_head"}, {"dtype": torch.float16}):
            with self.subTest(words):
                self.assertEqual(reasons(**words), [])

    def test_by_name_and_with_what_would_do(self):
        for words, told in (({"head_size": 72 + 3}, "head_size not supported.*CPU_ATTN may have it"),
                            ({"dtype": torch.float32}, "dtype not supported.*accepted with wavejit: float16 and bfloat16"),
                            ({"kv_cache_dtype": "int4_per_token_head"}, "kv_cache_dtype not supported.*auto, float16, bfloat16, fp8, fp8_e4m3, fp8_e5m2, .*; CPU_ATTN may have it"),
                            ({"use_mla": True}, "MLA not supported.*--attention-backend WAVEJIT_MLA"), ({"block_size": 24}, "block_size not supported"), ({"use_mm_prefix": True}, "multimodal"),
                            ({"attn_type": "encoder_only"}, "attention type encoder_only not supported")):  # fmt: skip
            with self.subTest(words):
                self.assertRegex("; ".join(reasons(**words)), told)

    def test_of_latent_attention(self):
        words = {"backend": WavejitLatentBackend, "use_mla": True, "head_size": 576}
        for more in ({}, {"head_size": 512, "kv_cache_dtype": "fp8"}, {"use_batch_invariant": True}):
            self.assertEqual(reasons(**{**words, **more}), [])
        for more, told in (({"use_mla": False}, "non-MLA not supported"), ({"head_size": 640}, "rows of 640 elements: accepted are 576, 512, 320"), ({"use_sparse": True}, "sparse"),
                           ({"kv_cache_dtype": "fp8_per_token_head"}, "kv_cache_dtype not supported")):  # fmt: skip
            with self.subTest(more):
                self.assertRegex("; ".join(reasons(**{**words, **more})), told)

    def test_layers_of_latent_attention_when_they_are_made(self):
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.bfloat16)
        words = {"num_heads": 16, "head_size": 576, "scale": 0.07, "kv_lora_rank": 512}
        WavejitLatentAttention(**words)
        for more, told in (({"num_heads": 129}, "129"), ({"sliding_window": 64}, "sliding_window: latent attention has none"), ({"indexer": object()}, "WAVEJIT_MLA_SPARSE has it"),
                           ({"kv_cache_dtype": "int8_per_token_head"}, "kv_cache_dtype int8_per_token_head: accepted"), ({"kv_lora_rank": 448}, "448")):  # fmt: skip
            with self.subTest(more), self.assertRaisesRegex(wavejit.Unsupported, told):
                WavejitLatentAttention(**{**words, **more})

    def test_a_gpu_without_kernels_is_named(self):
        with mock.patch.object(_limits, "target", lambda: "gfx1100"):
            self.assertRegex(_limits.without_a_kernel(LLAMA), "gfx1100: wavejit has kernels for .*gfx942.*; CPU_ATTN runs there")

    def test_a_gpu_with_some_of_the_kernels_is_told_which_it_has_not(self):
        for name in ("gfx1201", "gfx1200"):
            with mock.patch.object(_limits, "target", lambda name=name: name):
                told = f"^{name}: wavejit.vllm serves gfx942, gfx950, since sparse_indexer and attention_latent have no kernels for {name}; CPU_ATTN runs there, and so do wavejit.torch's calls$"
                self.assertRegex(_limits.without_a_kernel(LLAMA), told)
            self.assertIn(name, " ".join(wavejit.supported()))  # calls of others run there
            self.assertTrue(wavejit.explain(_lines.line(LLAMA, 2, 1, 64, 16).replace("q1..1", "q1").replace("k0..64", "k64"), target=name))

    def test_layers_when_they_are_made(self):
        self.addCleanup(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.bfloat16)
        WavejitAttention(8, 128, 1.0, 2)
        for words, told in (({"attn_type": "encoder_decoder"}, "attention of type encoder_decoder: wavejit.vllm has decoders; CPU_ATTN has it"),
                            ({"use_alibi_sqrt": True}, "use_alibi_sqrt"), ({"chunk_lookback": 2}, "chunk_lookback"), ({"unheard_of": 3}, "unheard_of: not known"), ({"sliding_window": -7}, "sliding_window -7: accepted are a number of keys from 1 on"),
                            ({"kv_cache_dtype": "nvfp4"}, "kv_cache_dtype nvfp4: accepted with wavejit are auto, float16, bfloat16, fp8"),
                            ({"kv_cache_dtype": "float16"}, "kv_cache_dtype float16"), ({"head_size": 72, "kv_cache_dtype": "fp8"}, "head_size 72 in a cache of 8 bits"), ({"sinks": torch.zeros(7)}, r"sinks: shape \(7,\); accepted: \[8\]")):  # fmt: skip
            with self.subTest(words), self.assertRaisesRegex(wavejit.Unsupported, told):
                WavejitAttention(**{"num_heads": 8, "head_size": 128, "scale": 1.0, "num_kv_heads": 2, **words})
        torch.set_default_dtype(torch.float32)
        with self.assertRaisesRegex(wavejit.Unsupported, r"dtype torch.float32: accepted with wavejit are float16 and bfloat16 \(--dtype bfloat16\); CPU_ATTN has it"):
            WavejitAttention(8, 128, 1.0, 2)

    def test_a_model_of_another_head_dim_is_refused_before_its_weights_are_read(self):
        from vllm.model_executor.model_loader.default_loader import DefaultModelLoader

        with mock.patch.object(DefaultModelLoader, "load_weights", side_effect=AssertionError("weights were read")):
            with self.assertRaisesRegex(wavejit.Unsupported, "head.dim"), engine("odd"):
                pass


class Use(unittest.TestCase):
    def test_an_engine_of_the_users_as_docs_vllm_md_has_it(self):
        self.addCleanup(_serving._of.update, dict(_serving._of))
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "vllm.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertEqual(len(blocks), 1)
        exec(blocks[0], {})
        self.assertEqual(_serving.serving(torch.device("cpu")).engine.device, "sim:gfx950")
        with self.assertRaisesRegex(TypeError, "engine: a str; accepted: a wavejit.Engine"):
            wavejit.vllm.use("hip")

    def test_what_cannot_be_prepared_stops_the_start(self):
        serving = _serving.Serving(wavejit.Engine("sim:gfx950"), True)
        with self.assertRaisesRegex(wavejit.Unsupported, "(?s)wavejit.vllm: prepare: 1 of 1 lines could not be prepared:.*'attention_forward bf16 b2 .* d36 .*': .*36"):
            serving.prepare([_lines.line(LLAMA._replace(head_dim=36, value_dim=36), 2, 64, 64, 16)])
        serving.prepare(["attention_forward bf16 b2 q1 k64 h2 d64 causal layout=paged:16"])
        serving.seal()
        rows = serving.engine.empty((1, 64, 2, 64), "fp16")
        with self.assertRaises(wavejit.Sealed):
            serving.engine.attention_forward(rows, rows, rows, softcap=3.0, causal=True)
        # Layers that come later are prepared all the same, and the engine is sealed again with the next step.
        serving.prepare(["attention_forward fp16 b2 q1 k64 h2 d64 causal layout=paged:16"])
        self.assertFalse(serving.sealed)
        serving.seal()
        self.assertTrue(serving.sealed)


class Lines(unittest.TestCase):
    def test_of_a_layer(self):
        line = _lines.line(LLAMA, 256, 8192, 131072, 64)
        self.assertEqual(line, "attention_forward bf16 b256 q1..8192 k0..131072 h32/8 d128 causal layout=paged:64")
        oss = LLAMA._replace(head_dim=64, value_dim=64, window_left=127, sinks=True, cache="e4m3", softcap=30.0, alibi=True)
        self.assertEqual(_lines.line(oss, 1, 512, 4096, 16),
                         "attention_forward bf16 b2 q1..512 k0..4096 h32/8 d64 causal window=127,-1 layout=paged:16 cache=e4m3 cache_scales=1 alibi=h sink softcap=30")
        # A window has its keys on both sides where rows are not causal.
        self.assertEqual(_lines.line(LLAMA._replace(window_left=127), 4, 512, 4096, 64, causal=False),
                         "attention_forward bf16 b4 q1..512 k0..4096 h32/8 d128 window=127,127 layout=paged:64")

    def test_bounds_on_keys_stay_for_many_steps(self):
        known = set()
        for keys in range(1, 131073):
            bound = _calls.rounded_up(keys, 131072)
            self.assertLessEqual(keys, bound)
            self.assertLessEqual(bound, keys + max(256, keys // 8))
            known.add(bound)
        self.assertLess(len(known), 80)
        self.assertEqual(_calls.rounded_up(100, 128), 128)


class Package(unittest.TestCase):
    def test_importing_wavejit_loads_neither(self):
        with tempfile.TemporaryDirectory() as folder:
            program = "import sys, wavejit, wavejit.vllm; print(*(name for name in ('torch', 'vllm') if name in sys.modules))"
            run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, cwd=folder)
        self.assertEqual((run.returncode, run.stdout.strip(), run.stderr), (0, "", ""))

    def test_no_file_of_it_names_another_target_than_where_formats_differ(self):
        folder = pathlib.Path(wavejit.vllm.__file__).parent
        named = [path.name for path in folder.glob("*.py") if "gfx942" in path.read_text()]
        self.assertEqual(named, ["_limits.py"])
