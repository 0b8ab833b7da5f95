# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of one step in float64, from what vLLM passes: the rows of a sequence over the keys that its row of the table names."""
import torch


def of_pages(pages, table, length, scale=1.0):
    """The keys of a sequence, [length, heads, dim]."""
    size = pages.shape[1]
    return torch.cat([pages[int(page)].double() for page in table[: -(-length // size)]])[:length] * scale


def attention(query, k_pages, v_pages, starts, lengths, table, *, scale, window_left=None, window_right=None, softcap=0.0, sinks=None, slopes=None, causal=True, k_scale=1.0, v_scale=1.0):
    """[rows, heads, dim] in float64, and for each element what its terms are in magnitude. Row r of n stands at key length − n + r."""
    out, size = (torch.zeros(*query.shape[:2], v_pages.shape[3], dtype=torch.float64) for _ in range(2))
    for sequence, length in enumerate(lengths.tolist()):
        begin, end = starts[sequence].item(), starts[sequence + 1].item()
        if begin == end:
            continue
        k, v = of_pages(k_pages, table[sequence], length, k_scale), of_pages(v_pages, table[sequence], length, v_scale)
        group = query.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("rhd,khd->hrk", query[begin:end].double(), k) * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        at = torch.arange(length - (end - begin), length)[:, None]
        key = torch.arange(length)[None]
        if slopes is not None:
            scores = scores - slopes.double()[:, None, None] * (at - key).abs()
        if causal:
            scores = scores.masked_fill(key > at, float("-inf"))
        if window_left is not None:
            scores = scores.masked_fill(key < at - window_left, float("-inf"))
        if window_right is not None:
            scores = scores.masked_fill(key > at + window_right, float("-inf"))
        if sinks is not None:
            scores = torch.cat([scores, sinks.double()[:, None, None].expand(-1, end - begin, 1)], 2)
        weights = torch.softmax(scores, 2)[..., :length]
        out[begin:end] = torch.einsum("hrk,khd->rhd", weights, v)
        size[begin:end] = torch.einsum("hrk,khd->rhd", weights, v.abs())
    return out, size
