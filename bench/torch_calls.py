#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call of wavejit.torch costs beside the C call, into empty HIP functions: the best of some rounds.

    PYTHONPATH=<build>/python LD_PRELOAD=<build>/bench/libamdhip64.so.7 torch_calls.py     (./dev bench python)

PyPI's PyTorch has no ROCm. So CPU tensors stand for the device's here: they go the device's road, and nothing reads them. What torch
on ROCm does beyond that is not in the figures: its allocator instead of the CPU's, and the question for its current stream.
"""
import tempfile

import torch
from python_calls import microseconds

import wavejit
import wavejit.torch
from wavejit.torch import _engines, _roads


def main() -> None:
    with tempfile.TemporaryDirectory() as cache, wavejit.Engine("hip", cache_dir=cache, log_level="error") as engine, torch.no_grad():
        _engines._of[torch.device("cpu")] = engine
        _roads.through_copies = _roads.on_device
        _roads.current_stream = lambda device: 0
        q, k = torch.empty(1, 128, 8, 128, dtype=torch.bfloat16), torch.empty(1, 1024, 8, 128, dtype=torch.bfloat16)
        starts, key_starts, lengths = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([0, 128], [0, 1024], [1000]))
        rows, keys = q[0], k[0]
        heads_first = q.transpose(1, 2), k.transpose(1, 2), k.transpose(1, 2)
        calls = {
            "torch.empty of the output": lambda: torch.empty(1, 128, 8, 128, dtype=torch.bfloat16, device=q.device),
            "the operator": lambda: torch.ops.wavejit.attention_forward.default(q, k, k, causal=True),
            "scaled_dot_product_attention": lambda: wavejit.torch.scaled_dot_product_attention(*heads_first),
            "flash_attn_func": lambda: wavejit.torch.flash_attn_func(q, k, k, causal=True),
            "flash_attn_with_kvcache": lambda: wavejit.torch.flash_attn_with_kvcache(q, k, k, cache_seqlens=lengths, causal=True),
            "flash_attn_varlen_func": lambda: wavejit.torch.flash_attn_varlen_func(rows, keys, keys, starts, key_starts, 128, 1024, causal=True),
        }  # fmt: skip
        for name, call in calls.items():
            call()
            print(f"{name:38}{microseconds(call, 100, 200):7.2f} us")


if __name__ == "__main__":
    main()
