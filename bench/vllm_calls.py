#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a layer of wavejit.vllm costs the host in a step of decoding, into empty HIP functions: the best of some rounds.

    PYTHONPATH=<build>/python LD_PRELOAD=<build>/bench/libamdhip64.so.7 vllm_calls.py     (./dev bench python)

As torch_calls.py has it, CPU tensors stand for the device's. What torch on ROCm does beyond that is not in the figures: its
question for the current stream.
"""
import tempfile
import types

import torch
from python_calls import microseconds

import wavejit
from wavejit.torch import _dispatch
from wavejit.vllm import WavejitAttention, WavejitLatentAttention, WavejitLatentMetadata, WavejitMetadata, _cache, _calls, _latent_cache, _latent_calls, _serving
from wavejit.vllm._serving import Serving

LAYERS, SEQUENCES, HEADS, KV_HEADS, DIM, PAGE, KEYS = 32, 64, 32, 8, 128, 64, 4096


def main() -> None:
    torch.set_default_dtype(torch.bfloat16)
    with tempfile.TemporaryDirectory() as cache, wavejit.Engine("hip", cache_dir=cache, log_level="error") as engine, torch.no_grad():
        for room_of in (_calls, _cache, _latent_calls, _latent_cache):
            room_of._through_copies = room_of._on_device
        _dispatch.current_stream = lambda device: 0
        room = torch.empty(1 << 27, dtype=torch.float32)
        _dispatch._workspace = lambda plan, device: room[-room.data_ptr() % 256 // 4 :]
        starts, lengths = torch.arange(SEQUENCES + 1, dtype=torch.int32), torch.full((SEQUENCES,), KEYS, dtype=torch.int32)
        table = torch.zeros(SEQUENCES, KEYS // PAGE, dtype=torch.int32)
        pages = torch.empty(128, KV_HEADS, PAGE, 2 * DIM)
        query, key, output = (torch.empty(SEQUENCES, heads, DIM) for heads in (HEADS, KV_HEADS, HEADS))
        slots = torch.arange(SEQUENCES, dtype=torch.int64) + 64
        layers = [WavejitAttention(HEADS, DIM, DIM**-0.5, KV_HEADS) for _ in range(LAYERS)]
        serving = _serving._of[torch.device("cpu")] = Serving(engine, True)

        def step() -> None:
            metadata = WavejitMetadata(SEQUENCES, starts, lengths, table, 1, KEYS, True, serving)
            for layer in layers:
                layer.forward(None, query, key, key, pages, metadata, output)

        def writes() -> None:
            for layer in layers:
                layer.do_kv_cache_update(None, key, key, pages, slots)

        latent_layers = [WavejitLatentAttention(16, 576, 192**-0.5, kv_lora_rank=512) for _ in range(LAYERS)]
        rows = torch.empty(128, PAGE, 576)
        latent, rope = torch.empty(SEQUENCES, 16, 512), torch.empty(SEQUENCES, 16, 192)[:, :, 128:]
        new_latent, new_rope, layer = torch.empty(SEQUENCES, 512), torch.empty(SEQUENCES, 1, 64), types.SimpleNamespace(_k_scale=None)

        def latent_step() -> None:
            metadata = WavejitLatentMetadata(SEQUENCES, starts, lengths, table, 1, KEYS, True, serving)
            for each in latent_layers:
                each.forward_mqa((latent, rope), rows, metadata, layer)

        def latent_writes() -> None:
            for each in latent_layers:
                each.do_kv_cache_update(new_latent, new_rope, rows, slots, "auto", None)

        for each in (step, writes, latent_step, latent_writes):
            each()
        print(f"attention of a layer, {LAYERS} of them in a step {microseconds(step, 5, 200) / LAYERS:7.2f} us")
        print(f"latent attention of a layer                   {microseconds(latent_step, 5, 200) / LAYERS:7.2f} us")
        print(f"new rows into its cache                       {microseconds(latent_writes, 5, 200) / LAYERS:7.2f} us")
        print(f"new keys and values into its cache            {microseconds(writes, 5, 200) / LAYERS:7.2f} us")


if __name__ == "__main__":
    main()
