# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A FlexAttention BlockMask beside torch's own attention with the same mask, and what is refused of one."""
import types
import unittest

import torch
from torch.nn.attention.flex_attention import create_block_mask

import wavejit
import wavejit.torch


def allowed(block_mask, causal, queries, keys):
    """Which keys each row sees, [batch, heads, queries, keys], from the lists alone."""
    rows, columns = block_mask.BLOCK_SIZE
    seen = torch.zeros(*block_mask.kv_num_blocks.shape[:2], queries, keys, dtype=torch.bool)
    diagonal = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries) if causal else torch.ones(queries, keys, dtype=torch.bool)
    for numbers, indices, mask in ((block_mask.kv_num_blocks, block_mask.kv_indices, diagonal),
                                   (block_mask.full_kv_num_blocks, block_mask.full_kv_indices, torch.ones_like(diagonal))):
        if numbers is None:
            continue
        for b, h, r in ((b, h, r) for b in range(numbers.shape[0]) for h in range(numbers.shape[1]) for r in range(numbers.shape[2])):
            for c in indices[b, h, r, : numbers[b, h, r]].tolist():
                block = (slice(r * rows, (r + 1) * rows), slice(c * columns, (c + 1) * columns))
                seen[b, h][block] |= mask[block]
    return seen


class BlockMasks(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def test_masks_of_torch(self):
        q, k, v = (torch.randn(1, heads, 300, 64).half() for heads in (2, 1, 1))
        near = create_block_mask(lambda b, h, i, j: (i >= j) & (i // 128 - j // 128 < 2 - h), None, 2, 300, 300, device="cpu", BLOCK_SIZE=128)
        plain = create_block_mask(lambda b, h, i, j: i >= j, None, None, 300, 300, device="cpu", BLOCK_SIZE=64)
        for block_mask in (near, plain):
            out, lse = wavejit.torch.block_mask_attention(q, k, v, block_mask, causal=True, return_lse=True)
            mask = allowed(block_mask, True, 300, 300)
            exact = torch.nn.functional.scaled_dot_product_attention(*(each.double() for each in (q, k, v)), attn_mask=mask, enable_gqa=True)
            self.assertEqual(out.shape, exact.shape)
            self.assertLess((out.double() - exact).abs().max().item(), 2e-3)
            self.assertTrue(torch.isfinite(lse).all())

    def test_what_is_refused(self):
        q = torch.randn(1, 1, 128, 64).half()
        numbers, indices = torch.ones(1, 1, 2, dtype=torch.int32), torch.zeros(1, 1, 2, 2, dtype=torch.int32)

        def mask(**words):
            return types.SimpleNamespace(**{"BLOCK_SIZE": (64, 64), "kv_num_blocks": numbers, "kv_indices": indices, "full_kv_num_blocks": None, "full_kv_indices": None,
                                            **words})

        def refuses(pattern, given, *tensors, error=wavejit.InvalidArgument):
            with self.assertRaisesRegex(error, pattern):
                wavejit.torch.block_mask_attention(*(tensors or (q, q, q)), given)

        refuses("BLOCK_SIZE = .32, 64.; accepted: of 64 and 128", mask(BLOCK_SIZE=(32, 64)))
        refuses("kv_indices: dtype torch.int64; accepted: torch.int32", mask(kv_indices=indices.long()))
        refuses(r"block_mask.seq_lengths = .192, 128.; accepted: .128, 128., the lengths of query and key", mask(seq_lengths=(192, 128)))
        refuses(r"block_mask.seq_lengths = .128, 256.", create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 256, device="cpu", BLOCK_SIZE=64))
        refuses("query: shape", mask(), q[0], q, q)
        refuses("requires grad", mask(), q.clone().requires_grad_(), q, q, error=wavejit.Unsupported)


if __name__ == "__main__":
    unittest.main()
