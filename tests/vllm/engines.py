# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's real engine on CPU tensors over the simulated GPU, with tiny models of random weights, and a witness of each layer's call."""
import contextlib
import gc
import pathlib
import tempfile
from unittest import mock

import safetensors.torch
import torch
import transformers
import vllm
from exact import attention
from vllm.distributed.parallel_state import cleanup_dist_env_and_memory
from vllm.v1.core.sched.scheduler import Scheduler

import wavejit.vllm
from wavejit.vllm import WavejitAttention, WavejitMetadata, _cache, _calls

SIZES = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
         "vocab_size": 128, "max_position_embeddings": 512, "pad_token_id": 0}  # fmt: skip
WINDOWS = {"sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"]}
MODELS = {
    "llama": ("Llama", {}),
    "qwen": ("Qwen3", {"head_dim": 128}),
    "padded": ("Llama", {"head_dim": 80}),  # tiles pad it, the cache does not
    "gemma": ("Gemma2", {**WINDOWS, "attn_logit_softcapping": 20.0, "query_pre_attn_scalar": 64}),
    "gpt_oss": ("GptOss", {**WINDOWS, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "odd": ("Llama", {"head_dim": 36}),  # of no kernel
    "deepseek": ("DeepseekV3", {"head_dim": 64, "num_key_value_heads": 4, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64,
                                "v_head_dim": 64, "first_k_dense_replace": 2, "n_routed_experts": 8, "n_group": 1, "topk_group": 1}),
    # With a layer more that drafts the token after the next one (MTP).
    "deepseek_mtp": ("DeepseekV3", {"head_dim": 64, "num_key_value_heads": 4, "kv_lora_rank": 512, "q_lora_rank": None, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64,
                                    "v_head_dim": 64, "first_k_dense_replace": 3, "n_routed_experts": 8, "n_group": 1, "topk_group": 1, "num_nextn_predict_layers": 1}),
    # Layers with positions see chunks of 32 keys: vLLM makes a sequence of each.
    "llama4": ("Llama4", {"attention_chunk_size": 32, "no_rope_layers": [1, 0], "intermediate_size_mlp": 128, "num_local_experts": 2, "interleave_moe_layer_step": 3}),
    "bloom": ("Bloom", {"n_head": 4, "n_layer": 2, "hidden_size": 256}),
}


def prompt(length, seed):
    return torch.randint(1, 127, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def save(kind, folder):
    """A model with attention that is far from uniform."""
    name, words = MODELS[kind]
    sizes = SIZES if name != "Bloom" else {"vocab_size": 128, "pad_token_id": 0}
    configuration = getattr(transformers, "Llama4TextConfig" if name == "Llama4" else f"{name}Config")(**{**sizes, **words})
    torch.manual_seed(17)
    model = getattr(transformers, f"{name}ForCausalLM")(configuration).to(torch.bfloat16)
    for parameter in model.parameters():
        parameter.data *= 3 if parameter.ndim > 1 else 1
    for name, parameter in model.named_parameters():
        if name.endswith("sinks"):
            parameter.data.normal_(0, 1)
    model.save_pretrained(folder)
    if words.get("num_nextn_predict_layers"):
        add_drafting_layer(folder, sizes)


def add_drafting_layer(folder, sizes):
    """Its block has the weights of the last layer; transformers leaves such a layer out."""
    file = folder / "model.safetensors"
    weights, last, hidden = safetensors.torch.load_file(file), sizes["num_hidden_layers"] - 1, sizes["hidden_size"]
    made = {name.replace(f"layers.{last}.", f"layers.{last + 1}."): tensor.clone() for name, tensor in weights.items() if f"layers.{last}." in name}
    layer = f"model.layers.{last + 1}"
    made.update({f"{layer}.{name}.weight": torch.ones(hidden, dtype=torch.bfloat16) for name in ("enorm", "hnorm", "shared_head.norm")})
    made[f"{layer}.eh_proj.weight"] = torch.randn(hidden, 2 * hidden, dtype=torch.bfloat16) / 8
    made[f"{layer}.embed_tokens.weight"] = weights["model.embed_tokens.weight"].clone()
    made[f"{layer}.shared_head.head.weight"] = weights["lm_head.weight"].clone()
    safetensors.torch.save_file({**weights, **made}, file, {"format": "pt"})


@contextlib.contextmanager
def engine(kind, **options):
    """An LLM of vLLM's in this process."""
    with tempfile.TemporaryDirectory() as folder:
        save(kind, pathlib.Path(folder))
        # vLLM collects garbage some eighty times in these tests, a second or more over all that PyTorch and vLLM have imported: a third
        # of their processor time. What is there before an engine stays out of it; vLLM's cleanup would take it back in.
        gc.freeze()
        words = {"dtype": "bfloat16", "enforce_eager": True, "max_model_len": 192, "block_size": 32, "num_gpu_blocks_override": 32, "kv_cache_memory_bytes": 8 << 20,
                 "max_num_seqs": 4, "max_num_batched_tokens": 48, "skip_tokenizer_init": True, "enable_prefix_caching": True}  # fmt: skip
        made = vllm.LLM(folder, **{**words, **options})
        try:
            yield made
        finally:
            del made
            gc.collect()
            with mock.patch("gc.unfreeze"):
                cleanup_dist_env_and_memory()


def generate(made, prompts, tokens):
    sampling = vllm.SamplingParams(max_tokens=tokens, min_tokens=tokens, temperature=0, detokenize=False, ignore_eos=True)
    return made.generate([{"prompt_token_ids": each} for each in prompts], sampling, use_tqdm=False)


class Witness:
    """Holds each call of a layer against float64, and some of its sequences against themselves alone."""

    def __init__(self):
        self.calls = self.mixes = self.chunks = self.decodes = self.drafts = self.alone = self.preempted = 0
        self.worst = 0.0
        self.layers, self.longest = set(), {}

    def patch(self):
        forward = WavejitAttention.forward

        def watched(layer_of, layer, query, key, value, kv_cache, metadata, output, **more):
            found = forward(layer_of, layer, query, key, value, kv_cache, metadata, output, **more)
            if metadata is not None:
                self.saw(layer_of, layer, query, kv_cache, metadata, output)
            return found

        return mock.patch.object(WavejitAttention, "forward", watched)

    @contextlib.contextmanager
    def watching(self):
        preempt = Scheduler._preempt_request

        def counted(scheduler, *given, **words):
            self.preempted += 1
            return preempt(scheduler, *given, **words)

        with self.patch(), mock.patch.object(Scheduler, "_preempt_request", counted):
            yield self

    def saw(self, layer_of, layer, query, kv_cache, metadata, output):
        kind, rows = layer_of.kind, metadata.num_actual_tokens
        k, v = _cache.pages(kv_cache, kind.head_dim, kind.value_dim, kind.cache)
        scales = (layer._k_scale, layer._v_scale) if kind.cache and not kind.tokens else None
        if kind.tokens:
            k, v = (each.double() * scale[..., None] for each, scale in zip((k, v), _cache.token_scales(kv_cache, kind.head_dim + kind.value_dim)))
        told = {} if scales is None else {"k_scale": float(scales[0]), "v_scale": float(scales[1])}
        sinks = None if layer_of.sinks is None else layer_of.sinks.detach()
        exact, size = attention(query[:rows], k, v, metadata.query_starts, metadata.key_lengths, metadata.block_table, scale=layer_of.scale, window_left=kind.window_left,
                                softcap=kind.softcap, sinks=sinks, slopes=layer_of.alibi_slopes, causal=metadata.causal, **told)
        lengths = self.hold(layer, kind, metadata, output[:rows], exact, size)
        if lengths.numel() > 1:
            self.by_itself(layer_of, query, kv_cache, metadata, output, layer_of.tensors_of(layer, query), self.calls % lengths.numel())

    def hold(self, layer, kind, metadata, output, exact, size):
        # P is rounded to the type of V, and so is the output: each once.
        error = float(((output.double() - exact).abs() / (size + 2.0**-20)).max())
        self.worst = max(self.worst, error)
        assert error < 2.0**-6, f"{layer.layer_name}: {error}"
        self.layers.add((layer.layer_name, kind))
        self.longest[layer.layer_name, kind] = max(self.longest.get((layer.layer_name, kind), 0), int(metadata.key_lengths.max()))
        lengths = metadata.query_starts.diff()
        self.calls += 1
        self.mixes += bool((lengths == 1).any() and (lengths > 1).any())
        self.chunks += bool(((lengths > 1) & (metadata.key_lengths > lengths)).any())
        self.decodes += bool((lengths == 1).all())
        self.drafts += bool(((lengths > 1) & (lengths <= 8) & (metadata.key_lengths > lengths)).all())
        return lengths

    def by_itself(self, layer_of, query, kv_cache, metadata, output, tensors, sequence):
        """The same rows over the same cache in a call of their own, by a table that is as short as it may be."""
        begin, end = metadata.query_starts[sequence : sequence + 2].tolist()
        length = metadata.key_lengths[sequence : sequence + 1].clone()
        columns = -(-int(length) // kv_cache.shape[2])
        single = WavejitMetadata(end - begin, torch.tensor([0, end - begin], dtype=torch.int32), length, metadata.block_table[sequence : sequence + 1, :columns].clone(),
                                           end - begin, int(length), metadata.causal, metadata.serving)
        out = torch.full_like(output[begin:end], float("nan"))
        _calls.attend(layer_of.words, single, query[begin:end].clone(), kv_cache, out, tensors)
        assert torch.equal(out.view(torch.int16), output[begin:end].view(torch.int16)), f"sequence {sequence} of {metadata.query_starts.tolist()} has other bits alone"
        self.alone += 1


def statistics():
    return wavejit.vllm._serving.serving(torch.device("cpu")).engine.statistics()
