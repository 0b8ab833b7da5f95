#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a layer of wavejit.vllm costs the host in a step of decoding, into empty HIP functions: the best of some rounds.

    PYTHONPATH=<build>/python LD_PRELOAD=<build>/bench/libamdhip64.so.7 vllm_calls.py     (./dev bench python)

As torch_calls.py has it, CPU tensors stand for the device's. What torch on ROCm does beyond that is not in the figures: its
question for the current stream.
"""
import tempfile

import torch
from python_calls import microseconds

import wavejit
from wavejit.torch import _roads
from wavejit.vllm import WavejitAttention, WavejitMetadata, _cache, _calls, _serving
from wavejit.vllm._serving import Serving

LAYERS, SEQUENCES, HEADS, KV_HEADS, DIM, PAGE, KEYS = 32, 64, 32, 8, 128, 64, 4096


def main() -> None:
    torch.set_default_dtype(torch.bfloat16)
    with tempfile.TemporaryDirectory() as cache, wavejit.Engine("hip", cache_dir=cache, log_level="error") as engine, torch.no_grad():
        _calls._through_copies = _calls._on_device
        _cache._through_pages = _cache._on_device
        _roads.current_stream = lambda device: 0
        room = torch.empty(1 << 27, dtype=torch.float32)
        _roads._workspace = lambda plan, device: room[-room.data_ptr() % 256 // 4 :]
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

        step()
        writes()
        print(f"attention of a layer, {LAYERS} of them in a step {microseconds(step, 5, 200) / LAYERS:7.2f} us")
        print(f"new keys and values into its cache            {microseconds(writes, 5, 200) / LAYERS:7.2f} us")


if __name__ == "__main__":
    main()
