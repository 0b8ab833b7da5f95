# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention with the argument lists that users of FlashMLA and of AITER's MLA know, over `Engine.attention_latent`.

>>> import numpy, wavejit
>>> from wavejit import latent
>>> engine = wavejit.Engine("sim:gfx950")
>>> q = numpy.ones((1, 1, 16, 576), numpy.float16)
>>> cache = numpy.ones((2, 64, 1, 576), numpy.float16)
>>> out, lse = latent.flash_mla_with_kvcache(engine, q, cache, [[1, 0]], [100], 512, softmax_scale=0.0)
>>> out.shape, lse.shape, float(out.numpy()[0, 0, 0, 0])
((1, 1, 16, 512), (1, 16, 1), 1.0)
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import _dtypes
from ._errors import Error, InvalidArgument, Unsupported, in_callers_words

if TYPE_CHECKING:
    from ._engine import Engine

__all__ = ["flash_mla_sparse_fwd", "flash_mla_with_kvcache", "get_mla_metadata", "mla_decode_fwd"]


SCALED_ROW_BYTES = 656  # 512 in e4m3, four scales in fp32, 64 in bf16
EXPONENTS_ROW_BYTES = 584  # 448 in e4m3 and 64 in bf16; behind all rows of a page 8 bytes of each, 7 of them E8M0


# What Engine.attention_latent's words are called there.
FLASH_MLA = {"k": "k_cache", "key_lengths": "cache_seqlens", "max_key_length": "block_table", "scale": "softmax_scale", "sinks": "attn_sink", "sink": "attn_sink", "counts": "topk_length",
             "second_k": "extra_k_cache", "second_indices": "extra_indices_in_kvcache", "second_counts": "extra_topk_length", "value_dim": "head_dim_v"}
FLASH_MLA_SPARSE = {"k": "kv", "scale": "sm_scale", "sinks": "attn_sink", "sink": "attn_sink", "counts": "topk_length", "value_dim": "d_v"}
AITER = {"k": "kv_buffer", "out": "o", "query_starts": "qo_indptr", "table_starts": "kv_indptr", "block_table": "kv_indices", "key_lengths": "kv_last_page_lens",
         "max_query_length": "max_seqlen_q", "scale": "sm_scale", "softcap": "logit_cap", "splits": "num_kv_splits"}


def _in_words_of(names: Mapping[str, str], engine: Any, words: Mapping[str, Any], call: Callable[[], Any]) -> Any:
    """What the engine refuses is told by the names that the function's callers know; `words` are those that they gave by the engine's own."""
    if not hasattr(engine, "attention_latent_call"):  # wavejit.torch, which does so itself
        return call()
    try:
        return call()
    except Error as error:
        raise in_callers_words(error, {word: name for word, name in names.items() if word not in words}) from None


def _refuse(**words: Any) -> None:
    """What the peers' functions take and this version has no kernel for, by name."""
    for name, value in words.items():
        if value is not None and value is not False:
            raise Unsupported(f"{name} is given; accepted: None, since this version has no kernels for it")


def get_mla_metadata(*_: Any, **__: Any) -> tuple[None, None]:
    """FlashMLA's metadata: there is none to make, whatever the lengths.

    >>> from wavejit import latent
    >>> latent.get_mla_metadata()
    (None, None)
    """
    return None, None


def flash_mla_with_kvcache(engine: Engine, q: Any, k_cache: Any, block_table: Any, cache_seqlens: Any, head_dim_v: int,
                           tile_scheduler_metadata: Any = None, num_splits: Any = None, softmax_scale: float | None = None, causal: bool = False,
                           is_fp8_kvcache: bool = False, indices: Any = None, attn_sink: Any = None, extra_k_cache: Any = None,
                           extra_indices_in_kvcache: Any = None, topk_length: Any = None, extra_topk_length: Any = None, **words: Any) -> tuple[Any, Any]:
    """FlashMLA's call: q [B, Sq, H, 576], pages k_cache [pages, page size, 1, 576], int32 block_table [B, columns] and
    cache_seqlens [B]. Returns (out [B, Sq, H, head_dim_v], lse [B, H, Sq] fp32, natural logarithm).

    There is no metadata to make: `tile_scheduler_metadata` and `num_splits` are taken and not looked at. `softmax_scale`
    None is 1 / sqrt(576) there, whatever the model: here it is refused. With `attn_sink` the LSE is without the sink, as
    FlashMLA has it. Further words are those of `Engine.attention_latent`.

    `is_fp8_kvcache`: k_cache [pages, page size, 1, 656] of 8 bits has FlashMLA's rows, 512 of e4m3, a scale in fp32 for each 128 of
    them, and 64 columns of the rope in bf16. [pages, page size, 1, 584] beside q of 512 columns has those of DeepSeek V4: a page begins with
    rows of 448 of e4m3 and 64 of bf16, behind which are 8 bytes for each row, E8M0 for each 64 of the 448. Or it has 8 bits in as many columns as q, and `k_scale` is its scale. Arrays of bytes need
    `cache_dtype`.

    `indices` int32 [B, Sq, topk] are slots of the cache, page · page size + key: −1 and what is outside are hidden, and
    `block_table` and `cache_seqlens` are not looked at. `topk_length` int32 [B]: how many entries of a sequence's lists count.
    `extra_indices_in_kvcache` [B, Sq, extra topk] are a second list, slots of `extra_k_cache`, whose pages are as large as those of
    `k_cache`; `extra_topk_length` int32 [B].
    """
    if is_fp8_kvcache and k_cache.shape[-1] not in (q.shape[-1], head_dim_v, SCALED_ROW_BYTES, EXPONENTS_ROW_BYTES):
        raise Unsupported(f"is_fp8_kvcache with rows of {k_cache.shape[-1]} bytes; accepted: {SCALED_ROW_BYTES} or {EXPONENTS_ROW_BYTES} bytes, with scales and a rope in bf16, or {q.shape[-1]} "
                          "columns of 8 bits, with k_scale=")
    if is_fp8_kvcache and _dtypes.of_cache(k_cache) is None and words.get("cache_dtype") is None:
        raise InvalidArgument("is_fp8_kvcache: k_cache says no type of 8 bits; accepted: cache_dtype= beside it, \"e4m3\" or its like")
    if is_fp8_kvcache and k_cache.shape[-1] == EXPONENTS_ROW_BYTES:
        words.setdefault("row_scales", "behind_rows")  # FlashMLA has no others
    if softmax_scale is None:
        raise InvalidArgument("softmax_scale = None; accepted: the model's, such as 192 ** -0.5: the width of q does not say it")
    if not is_fp8_kvcache and (_dtypes.of_cache(k_cache) is not None or words.get("cache_dtype") is not None):
        raise InvalidArgument("is_fp8_kvcache = False beside a k_cache of 8 bits; accepted: True, or a cache of q's type")
    given = {"scale": softmax_scale, "causal": causal, "value_dim": head_dim_v, "lse": True, **words}
    if indices is not None:
        given |= {"indices": indices, "counts": _of_each_query(topk_length, q.shape[1]), "slots": True}
        if (extra_k_cache is None) != (extra_indices_in_kvcache is None):
            raise InvalidArgument("extra_k_cache and extra_indices_in_kvcache: one of the two; accepted: both, or neither")
        if extra_k_cache is not None:
            given |= {"second_k": extra_k_cache, "second_indices": extra_indices_in_kvcache, "second_counts": _of_each_query(extra_topk_length, q.shape[1])}
        elif extra_topk_length is not None:
            raise InvalidArgument("extra_topk_length without extra_indices_in_kvcache; accepted: both, or neither")
    elif topk_length is not None:
        raise InvalidArgument("topk_length without indices; accepted: both, or neither")
    elif extra_k_cache is not None or extra_indices_in_kvcache is not None or extra_topk_length is not None:
        raise InvalidArgument("extra_k_cache, extra_indices_in_kvcache or extra_topk_length without indices; accepted: together with indices")
    else:
        for name, value in (("block_table", block_table), ("cache_seqlens", cache_seqlens)):
            if value is None:
                raise InvalidArgument(f"{name} = None; accepted: int32 [B, columns] and [B] of both block_table and cache_seqlens, or indices")
        given |= {"block_table": block_table, "key_lengths": cache_seqlens}
    out, lse = _in_words_of(FLASH_MLA, engine, words, lambda: engine.attention_latent(q, k_cache, sinks=attn_sink, **given))
    if attn_sink is None:
        return out, lse
    # O has its share of the sink; the LSE without it is that of a call without one.
    _, plain = engine.attention_latent(q, k_cache, **given)
    return out, plain


def flash_mla_sparse_fwd(engine: Engine, q: Any, kv: Any, indices: Any, sm_scale: float, d_v: int = 512, attn_sink: Any = None, topk_length: Any = None,
                         **words: Any) -> tuple[Any, Any, Any]:
    """FlashMLA's sparse prefill: q [Sq, H, 576], kv [Sk, 1, 576], int32 indices [Sq, 1, topk], of which −1 and those from Sk on
    are hidden. Returns (out [Sq, H, d_v], None, lse [Sq, H] fp32).

    What differs: no maxima are kept, so that the second value is None; the LSE is of the natural logarithm and, with
    `attn_sink`, without the sink. `topk_length` int32 [Sq].

    >>> import numpy, wavejit
    >>> from wavejit import latent
    >>> engine = wavejit.Engine("sim:gfx950")
    >>> q, kv = numpy.ones((2, 16, 576), numpy.float16), numpy.ones((100, 1, 576), numpy.float16)
    >>> out, _, lse = latent.flash_mla_sparse_fwd(engine, q, kv, numpy.array([[[7, -1, 3]], [[-1, 200, 9]]], numpy.int32), 0.0)
    >>> out.shape, bool(numpy.allclose(lse.numpy()[:, 0], numpy.log([2, 1])))
    ((2, 16, 512), True)
    """
    given = {"scale": sm_scale, "value_dim": d_v, "lse": True, "indices": indices, "counts": topk_length, "slots": True, **words}
    out, lse = _in_words_of(FLASH_MLA_SPARSE, engine, words, lambda: engine.attention_latent(q[None], kv[None], sinks=attn_sink, **given))
    if attn_sink is not None:
        _, lse = engine.attention_latent(q[None], kv[None], **given)
    return out[0], None, lse.permute(0, 2, 1)[0] if hasattr(lse, "permute") else lse[0].T


def _of_each_query(lengths: Any, queries: int) -> Any:
    """A number of each sequence as one of each of its queries."""
    if lengths is None or queries == 1:
        return lengths
    if hasattr(lengths, "repeat_interleave"):
        return lengths.repeat_interleave(queries)
    return [int(length) for length in lengths for _ in range(queries)]


def check_aiter_words(kv_buffer: Any, page_size: int, nhead_kv: int, sm_scale: float | None, cp_rank: int, **words: Any) -> None:
    """Refuses by name what AITER's call takes and this does not, and a page size that is not the buffer's."""
    if words.pop("cp_world_size", 1) != 1:
        raise Unsupported("cp_world_size is given; accepted: 1, since this version has no kernels over a shared context")
    if cp_rank != 0:
        raise InvalidArgument(f"cp_rank = {cp_rank}; accepted: 0, the one rank of cp_world_size = 1")
    shape = tuple(kv_buffer.shape)
    if len(shape) != 4:
        raise InvalidArgument(f"kv_buffer: shape {shape}; accepted: [pages, page_size, 1, columns]")
    if page_size != shape[1]:
        raise InvalidArgument(f"page_size = {page_size}; accepted: {shape[1]}, the keys of a page of kv_buffer, whose shape is {shape}")
    _refuse(**words)
    if nhead_kv != 1:
        raise InvalidArgument(f"nhead_kv = {nhead_kv}; accepted: 1, the one latent head")
    if sm_scale is None:
        raise InvalidArgument("sm_scale = None; accepted: the model's, such as 192 ** -0.5: the width of q does not say it")


def aiter_lengths(page_size: int, entries: int, starts: list[int], lasts: list[int] | None, max_key_length: int | None) -> list[int]:
    """How many keys each sequence has, from where its pages begin in `kv_indices`, which has this many `entries`, and how many keys its last page has."""
    sequences = len(starts) - 1
    if lasts is None and page_size != 1:
        raise InvalidArgument(f"kv_last_page_lens: None beside page_size = {page_size}; accepted: the keys of each sequence's last page")
    if lasts is not None and len(lasts) != sequences:
        raise InvalidArgument(f"kv_last_page_lens: {len(lasts)} numbers; accepted: {sequences}, as kv_indptr has {len(starts)}")
    if starts and starts[0] < 0:
        raise InvalidArgument(f"kv_indptr[0] = {starts[0]}; accepted: 0 … {entries}, the entries of kv_indices")
    lengths = []
    for index, (before, after) in enumerate(zip(starts, starts[1:])):
        if after < before:
            raise InvalidArgument(f"kv_indptr[{index + 1}] = {after}; accepted: at least {before}, kv_indptr[{index}]")
        if after > entries:
            raise InvalidArgument(f"kv_indptr[{index + 1}] = {after}; accepted: {before} … {entries}, the entries of kv_indices")
        last = 1 if lasts is None else lasts[index]
        if after > before and not 1 <= last <= page_size:
            raise InvalidArgument(f"kv_last_page_lens[{index}] = {last}; accepted: 1" + (f" … {page_size}, the keys of a page" if page_size > 1 else ", as page_size is 1"))
        lengths.append((after - before - 1) * page_size + last if after > before else 0)
        if max_key_length is not None and lengths[-1] > max_key_length:
            raise InvalidArgument(f"max_key_length = {max_key_length}; accepted: at least {lengths[-1]}, the keys of sequence {index}")
    return lengths


def mla_decode_fwd(engine: Engine, q: Any, kv_buffer: Any, o: Any, qo_indptr: Any, kv_indptr: Any, kv_indices: Any, kv_last_page_lens: Any, max_seqlen_q: int,
                   page_size: int = 1, nhead_kv: int = 1, sm_scale: float | None = None, logit_cap: float = 0.0, num_kv_splits: Any = None,
                   num_kv_splits_indptr: Any = None, work_meta_data: Any = None, work_indptr: Any = None, work_info_set: Any = None, reduce_indptr: Any = None,
                   reduce_final_map: Any = None, reduce_partial_map: Any = None, q_scale: Any = None, kv_scale: Any = None, intra_batch_mode: bool = False,
                   return_logits: bool = False, return_lse: bool = False, g_kv_indptr: Any = None, cp_world_size: int = 1, cp_rank: int = 0, causal: bool = True,
                   **words: Any) -> tuple[Any, Any]:
    """AITER's decode call: q [tokens, H, 576], pages kv_buffer [pages, page size, 1, 576], o [tokens, H, 512] which is written,
    and host lists or numpy arrays qo_indptr [B + 1], kv_indptr [B + 1] (of entries, which are pages), kv_indices,
    kv_last_page_lens [B]. Returns (None, lse [tokens, H] fp32, or None).

    A sequence has (pages − 1) · page_size + kv_last_page_lens keys; page_size is kv_buffer's, and each last page has 1 … page_size
    keys. `num_kv_splits` is a hint that shows in no bit; the work lists beside it and `intra_batch_mode`, which say who does the
    work, are not looked at. Arrays of the device stay there: then give `key_lengths`, `max_key_length` and None for kv_last_page_lens.
    """
    check_aiter_words(kv_buffer, page_size, nhead_kv, sm_scale, cp_rank, q_scale=q_scale, kv_scale=kv_scale, return_logits=return_logits, g_kv_indptr=g_kv_indptr, cp_world_size=cp_world_size)
    assert sm_scale is not None
    given = frozenset(words)
    if "key_lengths" not in words:
        lasts = None if kv_last_page_lens is None else [int(last) for last in kv_last_page_lens]
        words["key_lengths"] = aiter_lengths(page_size, len(kv_indices), [int(start) for start in kv_indptr], lasts, words.get("max_key_length"))
    elif kv_last_page_lens is not None:
        raise InvalidArgument("kv_last_page_lens: given beside key_lengths; accepted: one of them")

    def launched() -> Any:
        call = engine.attention_latent_call(_one_batch(q), kv_buffer, _one_batch(o), scale=sm_scale, causal=causal, softcap=logit_cap or None, lse=return_lse,
                                            query_starts=qo_indptr, max_query_length=max_seqlen_q, block_table=kv_indices, table_starts=kv_indptr,
                                            splits=num_kv_splits or 0, **words)
        call.launch()
        return call

    call = _in_words_of(AITER, engine, dict.fromkeys(given), launched)
    if not return_lse:
        return None, None
    lse = call.lse  # [1, H, tokens]
    return None, lse.permute(0, 2, 1)[0] if hasattr(lse, "permute") else lse[0].T


def _one_batch(array: Any) -> Any:
    """[tokens, heads, columns] as one batch of packed rows."""
    return array[None]
