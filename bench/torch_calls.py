#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a call of wavejit.torch costs beside the C call, and a layer's forward and backward, into empty HIP functions: the best of some
rounds.

    PYTHONPATH=<build>/python LD_PRELOAD=<build>/bench/libamdhip64.so.7 torch_calls.py     (./dev bench python)

PyPI's PyTorch has no ROCm. So CPU tensors stand for the device's here: they take the device's path, and nothing reads them. What torch
on ROCm does beyond that is not in the figures: its allocator instead of the CPU's, and the question for its current stream.
"""
import tempfile

import torch
from python_calls import microseconds

import wavejit
import wavejit.torch
from wavejit.torch import _backward_dispatch, _engines, _dispatch

LAYERS = 16


class Nothing(torch.autograd.Function):
    """What torch itself takes for a function with a gradient."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return q.view_as(q)

    @staticmethod
    def backward(ctx, gradient):
        _, k, v = ctx.saved_tensors
        return gradient, k.detach(), v.detach()


def calls_without_gradients() -> None:
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
    with torch.no_grad():
        for name, call in calls.items():
            call()
            print(f"{name:38}{microseconds(call, 20, 1000):7.2f} us")


def layers_with_gradients() -> None:
    """Layers one after the other, each with keys and values of its own, then all their gradients; a layer's share of that. Tensors are
    small: of large ones the C library gives back to the system what is freed, at each call, which a GPU's allocator does not."""
    starts = torch.tensor([0, 16], dtype=torch.int32)
    layers = {
        "flash_attn_func": ((1, 16, 8, 64), lambda q, k, v: wavejit.torch.flash_attn_func(q, k, v, causal=True)),
        "scaled_dot_product_attention": ((1, 8, 16, 64), lambda q, k, v: wavejit.torch.scaled_dot_product_attention(q, k, v, is_causal=True)),
        "flash_attn_varlen_func": ((16, 8, 64), lambda q, k, v: wavejit.torch.flash_attn_varlen_func(q, k, v, starts, starts, 16, 16, causal=True)),
        "a function without work": ((1, 16, 8, 64), Nothing.apply),
    }  # fmt: skip
    print("a layer's forward and backward:")
    for name, (shape, layer) in layers.items():
        first, gradient = torch.empty(shape, dtype=torch.bfloat16, requires_grad=True), torch.empty(shape, dtype=torch.bfloat16)
        leaves = [torch.empty(shape, dtype=torch.bfloat16, requires_grad=True) for _ in range(2 * LAYERS)]

        def through():
            rows = first
            for i in range(LAYERS):
                rows = layer(rows, *leaves[2 * i : 2 * i + 2])
            return torch.autograd.grad(rows, (first, *leaves), gradient)

        through()
        print(f"{name:38}{microseconds(through, 2, 1000) / LAYERS:7.2f} us")


def main() -> None:
    with tempfile.TemporaryDirectory() as cache, wavejit.Engine("hip", cache_dir=cache, log_level="error") as engine:
        _engines._of[torch.device("cpu")] = engine
        _dispatch.through_copies, _backward_dispatch.through_copies = _dispatch.on_device, _backward_dispatch.on_device
        _dispatch.current_stream = lambda device: 0
        # For a shape's first call: torch's memory on the CPU begins at multiples of 64 bytes, on a GPU at multiples of 512.
        room = torch.empty(1 << 18)
        room = room[-room.data_ptr() % 256 // 4 :]
        _backward_dispatch.workspace_of = lambda plan, device: room
        calls_without_gradients()
        layers_with_gradients()


if __name__ == "__main__":
    main()
