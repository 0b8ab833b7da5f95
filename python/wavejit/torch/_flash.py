# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""flash-attn's functions, by its names and with its arguments. What is not there is refused by name."""
from __future__ import annotations

from typing import Any

import torch

from .._errors import InvalidArgument
from . import _faces, _into, _kvcache, _dispatch
from ._names import CACHE, DENSE, DENSE_KV, DENSE_QKV, PACKED, PACKED_KV, PACKED_QKV, USED
from ._operators import _compiles, attention_forward_lse, called, called_by_operator, tensors_only

INT32 = torch.iinfo(torch.int32)


def flash_attn_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
                    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
                    return_attn_probs: bool = False, q_descale: float | torch.Tensor | None = None, k_descale: float | torch.Tensor | None = None,
                    v_descale: float | torch.Tensor | None = None, out: torch.Tensor | None = None) -> Any:
    """softmax(scale · q·kᵀ + mask) · v of sequences that are alike in length.

    q [B, Sq, Hq, D], k and v [B, Sk, Hkv, D] → [B, Sq, Hq, D]
        fp16 or bf16; Hq is a multiple of Hkv. k and v may be float8: e4m3fn and e5m2 on gfx950, e4m3fnuz and e5m2fnuz on gfx942; or int8.
        On gfx950 all three may be e4m3fn; what returns is bfloat16.
    dropout_p
        0: there is none here.
    causal, window_size
        Row i stands at key i + Sk − Sq: aligned bottom-right. The window (left, right) counts keys from there; −1 is no limit.
    softcap
        softcap · tanh(x / softcap) of each score x; 0 is none, and 32,768 the largest.
    alibi_slopes [Hq] or [B, Hq] fp32
        − slope · |i + Sk − Sq − j| is added to each score.
    deterministic
        Every call is.
    return_attn_probs
        (out, LSE [B, Hq, Sq] fp32, None): of dropout's probabilities there are none. A row that sees no key is 0, its LSE −∞.
    q_descale, k_descale, v_descale
        Of q, k and v in float8, k and v in int8: what their bits count, a number, or fp32 of one element, [Hkv] or [B, Hkv] on q's device, which kernels
        read there. A number becomes a tensor in each call. Of q in 16 bits q_descale is refused. Of q and k in int8, beside v in fp16 or
        bf16, which then is out's dtype, too: one element, [Hq], [B, Hq] or, for rows of their own, [B or 1, Sq or 1, Hq or 1]; k's alike,
        by Sk and Hkv.
    out
        Written and returned, if it is given; no gradients then.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q = k = v = torch.ones(1, 16, 2, 64, dtype=torch.bfloat16)
    >>> out = wavejit.torch.flash_attn_func(q, k, v, causal=True, window_size=(4, 0))
    >>> out.shape, out.max().item()
    (torch.Size([1, 16, 2, 64]), 1.0)
    """
    words = _words(q, k, v, dropout_p, window_size, softcap, alibi_slopes) | _descales(q, q_descale, k_descale, v_descale)
    return _dense(DENSE, q, k, v, softmax_scale, causal, words, return_attn_probs, out)


def flash_attn_varlen_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor | None, max_seqlen_q: int,
                           max_seqlen_k: int, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
                           window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None,
                           deterministic: bool = False, return_attn_probs: bool = False, block_table: torch.Tensor | None = None,
                           q_descale: float | torch.Tensor | None = None, k_descale: float | torch.Tensor | None = None,
                           v_descale: float | torch.Tensor | None = None, seqused_k: torch.Tensor | None = None, out: torch.Tensor | None = None,
                           num_splits: int = 0, s_aux: torch.Tensor | None = None, return_softmax_lse: bool = False) -> Any:
    """Sequences one after the other: b has rows cu_seqlens_q[b] … cu_seqlens_q[b + 1] − 1 of q, and the like of k and v.

    q [total, Hq, D], k and v [total, Hkv, D] → [total, Hq, D]
    cu_seqlens_q, cu_seqlens_k [B + 1] int32
        On q's device, from 0.
    max_seqlen_q, max_seqlen_k
        The longest sequence, which the host sizes the launch by: a number, or a tensor of no dimensions, which the host reads. In a
        compiled graph it does not: the launch is sized by the rows of q and of k then, which costs workgroups that find nothing to do.
        0 says that no sequence has any, which is checked where the numbers stand in host memory.
    block_table [B, columns] int32
        k and v are pages [pages, page size, Hkv, D]; key n of b is in page block_table[b][n // page size].
    seqused_k [B] int32
        Beside block_table: how many keys each sequence has, in place of cu_seqlens_k, which is None then. vLLM's word. Beside
        cu_seqlens_k: how many keys of each sequence count, from its first on; the others are never read. flash-attn 3's.
    out [total, Hq, D]
        Written and returned, if it is given; no gradients then.
    num_splits, s_aux [Hq], return_softmax_lse
        vLLM's words: into how many runs keys are cut, 0 as the device has room, which shows in no bit; sinks, read in fp32; (out, LSE).

    The rest as in `flash_attn_func`; LSE is [Hq, total].

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> rows = torch.ones(20, 2, 64, dtype=torch.float16)
    >>> starts = torch.tensor([0, 5, 20], dtype=torch.int32)
    >>> wavejit.torch.flash_attn_varlen_func(rows, rows, rows, starts, starts, 15, 15, causal=True).shape
    torch.Size([20, 2, 64])
    """
    words = _words(q, k, v, dropout_p, window_size, softcap, alibi_slopes) | _descales(q, q_descale, k_descale, v_descale)
    words["query_starts"] = _int32("cu_seqlens_q", cu_seqlens_q, 1)
    words |= {"max_query_length": _longest("max_seqlen_q", max_seqlen_q, q), "max_key_length": _longest("max_seqlen_k", max_seqlen_k, k, block_table)}
    _kvcache.check_no_rows("max_seqlen_q", words["max_query_length"], "cu_seqlens_q", words["query_starts"])
    if num_splits:
        words["splits"] = num_splits
    if s_aux is not None:
        tensors_only({"s_aux": s_aux})
        words["sinks"] = s_aux.to(torch.float32).contiguous()
    with_lse = return_attn_probs or return_softmax_lse
    if seqused_k is not None:
        if (block_table is None) == (cu_seqlens_k is None):
            beside = "without block_table and without cu_seqlens_k" if block_table is None else "beside block_table and cu_seqlens_k"
            raise InvalidArgument(f"seqused_k: given {beside}; accepted: beside one of them. With block_table it says all of the lengths, and cu_seqlens_k is None")
        words["key_lengths"] = _int32("seqused_k", seqused_k, 1)
        _kvcache.check_no_rows("max_seqlen_k", words["max_key_length"], "seqused_k", None, words["key_lengths"])
        if block_table is not None:
            words["block_table"] = _int32("block_table", block_table, 2)
            return _packed(USED, _faces.PAGED, q, k, v, softmax_scale, causal, words, with_lse, out, return_softmax_lse)
    if cu_seqlens_k is None:
        raise InvalidArgument("cu_seqlens_k: None; accepted: where each sequence's keys begin, or seqused_k beside block_table")
    starts = _int32("cu_seqlens_k", cu_seqlens_k, 1)
    if seqused_k is None:
        _kvcache.check_no_rows("max_seqlen_k", words["max_key_length"], "cu_seqlens_k", starts)
    if block_table is None:
        words["key_starts"] = starts
        names = PACKED if seqused_k is None else USED
        return _packed(names, _faces.PACKED, q, k, v, softmax_scale, causal, words, with_lse, out, return_softmax_lse)
    words |= {"key_lengths": starts[1:] - starts[:-1], "block_table": _int32("block_table", block_table, 2)}
    return _packed(PACKED, _faces.PAGED, q, k, v, softmax_scale, causal, words, with_lse, out, return_softmax_lse)


def flash_attn_qkvpacked_func(qkv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
                              window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None,
                              deterministic: bool = False, return_attn_probs: bool = False) -> Any:
    """`flash_attn_func` of queries, keys and values in one tensor, as one projection makes them: qkv [B, S, 3, H, D] → [B, S, H, D].

    Nothing is copied for it, and qkv's gradient is one tensor too.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> qkv = torch.ones(1, 16, 3, 2, 64, dtype=torch.bfloat16)
    >>> wavejit.torch.flash_attn_qkvpacked_func(qkv, causal=True).shape
    torch.Size([1, 16, 2, 64])
    """
    q, k, v = _parts("qkv", qkv, 5, 3)
    words = _words(q, k, v, dropout_p, window_size, softcap, alibi_slopes, "qkv", "qkv", "qkv")
    return _dense(DENSE_QKV, q, k, v, softmax_scale, causal, words, return_attn_probs)


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
                             window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None,
                             deterministic: bool = False, return_attn_probs: bool = False) -> Any:
    """`flash_attn_func` of keys and values in one tensor: q [B, Sq, Hq, D], kv [B, Sk, 2, Hkv, D] → [B, Sq, Hq, D].

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q, kv = torch.ones(1, 16, 4, 64, dtype=torch.bfloat16), torch.ones(1, 30, 2, 2, 64, dtype=torch.bfloat16)
    >>> wavejit.torch.flash_attn_kvpacked_func(q, kv).shape
    torch.Size([1, 16, 4, 64])
    """
    k, v = _parts("kv", kv, 5, 2)
    words = _words(q, k, v, dropout_p, window_size, softcap, alibi_slopes, "kv", "kv")
    return _dense(DENSE_KV, q, k, v, softmax_scale, causal, words, return_attn_probs)


def flash_attn_varlen_qkvpacked_func(qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, dropout_p: float = 0.0,
                                     softmax_scale: float | None = None, causal: bool = False, window_size: tuple[int, int] = (-1, -1),
                                     softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None, deterministic: bool = False,
                                     return_attn_probs: bool = False) -> Any:
    """`flash_attn_varlen_func` of queries, keys and values in one tensor: qkv [total, 3, H, D], cu_seqlens [B + 1] int32 → [total, H, D].

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> qkv, starts = torch.ones(20, 3, 2, 64, dtype=torch.float16), torch.tensor([0, 5, 20], dtype=torch.int32)
    >>> wavejit.torch.flash_attn_varlen_qkvpacked_func(qkv, starts, 15, causal=True).shape
    torch.Size([20, 2, 64])
    """
    q, k, v = _parts("qkv", qkv, 4, 3)
    words = _words(q, k, v, dropout_p, window_size, softcap, alibi_slopes, "qkv", "qkv", "qkv")
    words["query_starts"] = words["key_starts"] = _int32("cu_seqlens", cu_seqlens, 1)
    words["max_query_length"] = words["max_key_length"] = _longest("max_seqlen", max_seqlen, qkv)
    _kvcache.check_no_rows("max_seqlen", words["max_query_length"], "cu_seqlens", words["query_starts"])
    return _packed(PACKED_QKV, _faces.PACKED, q, k, v, softmax_scale, causal, words, return_attn_probs)


def flash_attn_varlen_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor, max_seqlen_q: int,
                                    max_seqlen_k: int, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
                                    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: torch.Tensor | None = None,
                                    deterministic: bool = False, return_attn_probs: bool = False) -> Any:
    """`flash_attn_varlen_func` of keys and values in one tensor: q [total, Hq, D], kv [total, 2, Hkv, D] → [total, Hq, D].

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q, kv = torch.ones(20, 4, 64, dtype=torch.float16), torch.ones(20, 2, 2, 64, dtype=torch.float16)
    >>> starts = torch.tensor([0, 5, 20], dtype=torch.int32)
    >>> wavejit.torch.flash_attn_varlen_kvpacked_func(q, kv, starts, starts, 15, 15).shape
    torch.Size([20, 4, 64])
    """
    k, v = _parts("kv", kv, 4, 2)
    words = _words(q, k, v, dropout_p, window_size, softcap, alibi_slopes, "kv", "kv")
    words["query_starts"], words["key_starts"] = _int32("cu_seqlens_q", cu_seqlens_q, 1), _int32("cu_seqlens_k", cu_seqlens_k, 1)
    words |= {"max_query_length": _longest("max_seqlen_q", max_seqlen_q, q), "max_key_length": _longest("max_seqlen_k", max_seqlen_k, kv)}
    _kvcache.check_no_rows("max_seqlen_q", words["max_query_length"], "cu_seqlens_q", words["query_starts"])
    _kvcache.check_no_rows("max_seqlen_k", words["max_key_length"], "cu_seqlens_k", words["key_starts"])
    return _packed(PACKED_KV, _faces.PACKED, q, k, v, softmax_scale, causal, words, return_attn_probs)


def flash_attn_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, k: torch.Tensor | None = None, v: torch.Tensor | None = None,
                            rotary_cos: torch.Tensor | None = None, rotary_sin: torch.Tensor | None = None,
                            cache_seqlens: int | torch.Tensor | None = None, cache_batch_idx: torch.Tensor | None = None,
                            cache_leftpad: torch.Tensor | None = None, block_table: torch.Tensor | None = None, softmax_scale: float | None = None,
                            causal: bool = False, window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, rotary_interleaved: bool = True,
                            alibi_slopes: torch.Tensor | None = None, num_splits: int = 0, return_softmax_lse: bool = False,
                            q_descale: float | torch.Tensor | None = None, k_descale: float | torch.Tensor | None = None,
                            v_descale: float | torch.Tensor | None = None, out: torch.Tensor | None = None) -> Any:
    """Queries over a cache that has their keys already: decode, or the next piece of a prompt.

    q [B, Sq, Hq, D] → [B, Sq, Hq, D]
    k_cache, v_cache [B, S, Hkv, D]; with block_table pages [pages, page size, Hkv, D], or vectorised ones, [pages, Hkv, D / 8, page size, 8] and
        [pages, Hkv, D, page size]
        In float8 half as large, with k_descale and v_descale as in `flash_attn_func`: q's type is not the cache's.
    k, v [B, Sn, Hkv, D]
        New keys, which are written into the cache behind cache_seqlens[b] others, by one launch, and then attended to. None: the cache is
        read alone. Nothing has a gradient beside them. All of the call that the host knows is checked before the first key is written,
        numbers in host memory among it. A device's number that names no place of the sequence writes nothing. What is written stands
        in memory once: caches have no stride of 0, and no row and no page gets new keys of two sequences, which is refused where the host
        knows it.
    rotary_cos, rotary_sin [positions, rotary dims / 2]
        As many positions as a sequence of the cache has room for, or more. k, and q with it, are turned by their positions: row i by that of key cache_seqlens[b] + i (less cache_leftpad); without
        causal and window_size all rows of q by that of the first. rotary_interleaved: dims 2d and 2d + 1 are a pair, else d and
        d + rotary dims / 2.
    cache_batch_idx [B] int32
        Sequence b is row cache_batch_idx[b] of a dense cache; beside k each row once. A cache of 16 n keys a row is read in place, beside
        cache_leftpad and of other lengths the rows are copied. None: the first B rows.
    cache_seqlens
        How many keys each sequence has: a number, or [B] int32 on q's device. None: all of a dense cache.
    cache_leftpad [B] int32
        Where a sequence's keys begin; cache_seqlens counts what stands before them too.
    block_table [B, columns] int32
        Key n of b is in page block_table[b][n // page size]. Needs cache_seqlens. Pages have 1 or 16 n keys.
    num_splits
        Into how many runs keys are cut; 0 fills the device. It shows in no bit.
    return_softmax_lse
        (out, LSE [B, Hq, Sq] fp32).
    out [B, Sq, Hq, D]
        Written and returned, if it is given.

    The rest as in `flash_attn_func`.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q = torch.ones(2, 1, 4, 64, dtype=torch.float16)
    >>> cache = torch.ones(2, 48, 2, 64, dtype=torch.float16)
    >>> lengths = torch.tensor([7, 48], dtype=torch.int32)
    >>> wavejit.torch.flash_attn_with_kvcache(q, cache, cache, cache_seqlens=lengths, causal=True).shape
    torch.Size([2, 1, 4, 64])
    >>> bytes_ = cache.to(torch.float8_e4m3fn)    # gfx950's; gfx942 has torch.float8_e4m3fnuz
    >>> wavejit.torch.flash_attn_with_kvcache(q, bytes_, bytes_, cache_seqlens=lengths, causal=True, k_descale=0.5, v_descale=2.0).max().item()
    2.0
    """
    words = _words(q, k_cache, v_cache, 0.0, window_size, softcap, alibi_slopes, "k_cache", "v_cache") | _descales(q, q_descale, k_descale, v_descale)
    words |= {"scale": softmax_scale, "causal": causal, "splits": num_splits}
    if cache_batch_idx is not None and block_table is not None:
        raise InvalidArgument("cache_batch_idx: given beside block_table; accepted: one of them")
    numbers = (cache_seqlens if cache_seqlens is None or isinstance(cache_seqlens, int) else _int32("cache_seqlens", cache_seqlens, 1),
               None if cache_batch_idx is None else _int32("cache_batch_idx", cache_batch_idx, 1), None if cache_leftpad is None else _int32("cache_leftpad", cache_leftpad, 1),
               None if block_table is None else _int32("block_table", block_table, 2))
    if k is None:
        for field, given in (("v", v), ("rotary_cos", rotary_cos), ("rotary_sin", rotary_sin)):
            if given is not None:
                raise InvalidArgument(f"{field}: given without k; accepted: None, or k beside it")
        if cache_batch_idx is None and not _compiles():
            return _read_at_once(q, k_cache, v_cache, numbers, words, return_softmax_lse, out)
    _kvcache.check_cache(q, k_cache, v_cache, block_table is not None)
    new = None
    if k is not None:
        tensors_only({"k": k, **{field: given for field, given in (("v", v), ("rotary_cos", rotary_cos), ("rotary_sin", rotary_sin)) if given is not None}})
        new = _kvcache.new_keys(q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, rotary_interleaved, not causal and tuple(window_size) == (-1, -1))
    at = _kvcache.places(q, k_cache, new, *numbers)
    words |= _kvcache.words_of_keys(at.lengths, at.firsts, _kvcache.pages(q, k_cache, v_cache, at), at.longest, 0 if new is None else new.k.shape[1])
    if new is not None:
        scales = _kvcache.scales_of(k_cache, k_descale, v_descale)
        to = _kvcache.slots(q, k_cache, v_cache, at, new, out, return_softmax_lse, words)
        q = _kvcache.appended(new, q, k_cache, v_cache, at, to, scales)
    elif _kvcache.can_be_read(q):
        _kvcache.check_numbers(q, k_cache, at)
    return _read(q, *_kvcache.attended(q, k_cache, v_cache, at), words, return_softmax_lse, out)


def _read_at_once(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, numbers: _kvcache.Numbers, words: dict[str, Any], with_lse: bool, out: torch.Tensor | None) -> Any:
    """Decode, whose time counts: nothing is written but `out`, so that what the call itself refuses may be looked at afterwards."""
    lengths, rows, firsts, table = numbers
    try:
        if table is not None or firsts is not None or isinstance(lengths, int):
            longest = _kvcache.longest_of(k_cache, lengths, table)
            if isinstance(lengths, int):
                lengths = torch.full((q.shape[0],), lengths, dtype=torch.int32, device=q.device)
            words |= _kvcache.words_of_keys(lengths, firsts, table, longest, 0)
        elif lengths is not None:
            words["key_lengths"] = lengths
        if table is None and k_cache.size(0) > q.size(0):
            k_cache, v_cache = k_cache[: q.size(0)], v_cache[: q.size(0)]
        return _read(q, k_cache, v_cache, words, with_lse, out)
    except (RuntimeError, IndexError):
        _kvcache.explain(q, k_cache, v_cache, numbers)
        raise


def _read(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, words: dict[str, Any], with_lse: bool, out: torch.Tensor | None) -> Any:
    if out is not None:
        lse = _into.called_into(CACHE, _faces.DENSE, q, k_cache, v_cache, out, words, with_lse)
        return out if lse is None else (out, lse)
    if with_lse:
        return called_by_operator(attention_forward_lse, CACHE, q, k_cache, v_cache, words)
    return called(CACHE, _faces.DENSE, q, k_cache, v_cache, words)


def _dense(names: dict[str, str], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, causal: bool, words: dict[str, Any],
           with_lse: bool, out: torch.Tensor | None = None) -> Any:
    words["scale"], words["causal"] = scale, causal
    if out is not None:
        lse = _into.called_into(names, _faces.DENSE, q, k, v, out, words, with_lse)
        return (out, lse, None) if with_lse else out
    if with_lse:
        return (*called_by_operator(attention_forward_lse, names, q, k, v, words), None)
    return called(names, _faces.DENSE, q, k, v, words)


def _packed(names: dict[str, str], face: _faces.Face, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None, causal: bool, words: dict[str, Any],
            with_lse: bool, out: torch.Tensor | None = None, two: bool = False) -> Any:
    """`two`: out and LSE, without a place for probabilities."""
    words["scale"], words["causal"] = scale, causal
    if out is not None:
        lse = _into.called_into(names, face, q, k, v, out, words, with_lse)
        return out if lse is None else (out, lse.squeeze(0)) if two else (out, lse.squeeze(0), None)
    if with_lse:
        rows, sums = called_by_operator(attention_forward_lse, names, *face.inside(q, k, v), words)
        return (rows.squeeze(0), sums.squeeze(0)) if two else (rows.squeeze(0), sums.squeeze(0), None)
    return called(names, face, q, k, v, words)


def _parts(field: str, given: torch.Tensor, dimensions: int, parts: int) -> tuple[torch.Tensor, ...]:
    """The tensors that stand in one, behind its dimension before heads."""
    tensors_only({field: given})
    if given.ndim != dimensions or given.shape[-3] != parts:
        lead = "batch, length" if dimensions == 5 else "total"
        raise InvalidArgument(f"{field}: shape {tuple(given.shape)}; accepted: [{lead}, {parts}, heads, head dim]")
    return given.unbind(-3)  # its gradient is one tensor: nothing is added to zeros


def _words(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float, window_size: tuple[int, int], softcap: float,
           alibi_slopes: torch.Tensor | None, k_name: str = "k", v_name: str = "v", q_name: str = "q") -> dict[str, Any]:
    """The operator's words for arguments that all functions have."""
    if dropout_p:
        raise InvalidArgument(f"dropout_p = {dropout_p}; accepted: 0, there is no dropout")
    if not (type(q) is type(k) is type(v) is torch.Tensor):  # the quick question
        tensors_only({q_name: q, k_name: k, v_name: v})
    if alibi_slopes is not None and not isinstance(alibi_slopes, torch.Tensor):
        tensors_only({"alibi_slopes": alibi_slopes})
    words: dict[str, Any] = {}
    if window_size != (-1, -1):
        if not isinstance(window_size, (tuple, list)) or len(window_size) != 2 or not all(isinstance(side, (int, torch.SymInt)) for side in window_size):
            raise InvalidArgument(f"window_size = {window_size}; accepted: (left, right), each a number of keys, -1 for no limit")
        left, right = window_size
        # flash-attn: any negative number is no limit
        words |= {"window_left": max(left, -1), "window_right": max(right, -1)}
    if softcap:
        words["softcap"] = softcap
    if alibi_slopes is not None:
        words["alibi"] = alibi_slopes.to(torch.float32).contiguous()
    return words


def _descales(q: torch.Tensor, q_descale: Any, k_descale: Any, v_descale: Any) -> dict[str, Any]:
    """The operator's words for what q, k and v in float8, or q and k in int8, are multiplied by."""
    if q_descale is None and k_descale is None and v_descale is None:
        return {}
    integers = q.dtype is torch.int8
    if q_descale is not None and q.dtype in _dispatch.ELEMENTS:
        raise InvalidArgument("q_descale: given; accepted: None, q has 16 bits")
    if v_descale is not None and integers:
        raise InvalidArgument("v_descale: given; accepted: None, v has 16 bits beside q of torch.int8")
    words = {}
    for word, field, given in (("q_scale", "q_descale", q_descale), ("k_scale", "k_descale", k_descale), ("v_scale", "v_descale", v_descale)):
        if given is None:
            continue
        if isinstance(given, (int, float)):
            given = torch.full((1,), given, dtype=torch.float32, device=q.device)
        tensors_only({field: given})
        # Rows that stand one behind the other are one batch.
        words[word] = given[None] if integers and q.ndim == 3 and given.ndim == 2 else given
    return words


def _longest(field: str, given: Any, rows: torch.Tensor, block_table: torch.Tensor | None = None) -> Any:
    """As a number. What a tensor holds is not known where a graph is compiled: as many as there are rows then, packed or in a table's pages."""
    if isinstance(given, torch.Tensor):
        if given.numel() != 1 or given.is_floating_point() or given.dtype is torch.bool:
            raise InvalidArgument(f"{field}: {given.dtype}, shape {tuple(given.shape)}; accepted: a number, or a tensor of one integer")
        if torch.compiler.is_compiling():
            return _most_rows(rows, block_table)
        given = int(given)
    if isinstance(given, int) and given < 0:
        raise InvalidArgument(f"{field} = {given}; accepted: 0 and more")
    return given


def _most_rows(rows: torch.Tensor, block_table: torch.Tensor | None) -> Any:
    if block_table is None:
        return rows.shape[0]
    return _int32("block_table", block_table, 2).shape[1] * (rows.shape[3] if rows.ndim == _dispatch.VECTORISED else rows.shape[1])


def _int32(field: str, given: torch.Tensor, dimensions: int) -> torch.Tensor:
    if type(given) is not torch.Tensor and not isinstance(given, torch.Tensor):  # the first is the quick one
        raise TypeError(f"{field}: a {type(given).__name__}; accepted: a tensor")
    if given.ndim != dimensions or given.dtype not in (torch.int32, torch.int64):
        raise InvalidArgument(f"{field}: {given.dtype}, shape {tuple(given.shape)}; accepted: int64 or int32 of {dimensions} dimension{'s' * (dimensions > 1)}")
    if given.dtype is torch.int32 and given.stride(-1) == 1:
        return given
    if given.dtype is torch.int64 and _kvcache.can_be_read(given) and given.numel():
        for number in (int(given.min()), int(given.max())):
            if not INT32.min <= number <= INT32.max:
                raise InvalidArgument(f"{field}: {number} is among it; accepted: {INT32.min} … {INT32.max}, int32")
    if given.dtype is torch.int64:  # a device's number beyond int32 is beyond every tensor, and must not become one that is not
        given = given.clamp(INT32.min, INT32.max)
    return given.to(torch.int32).contiguous()
