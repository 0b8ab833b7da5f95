# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latent attention (MLA, absorbed) over tensors: its operators, and functions with the arguments of FlashMLA and of AITER's MLA."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .. import _documented, latent
from .._errors import Error, InvalidArgument, Unsupported, in_callers_words
from . import _engines, _kvcache, _latent_dispatch, _dispatch
from ._flash import _int32
from ._operators import LIBRARY, tensors_only


@_documented.with_rows_of("attention_latent")
def attention_latent(q: torch.Tensor, k: torch.Tensor, *, scale: float, q_rope: torch.Tensor | None = None, k_rope: torch.Tensor | None = None,
                     out: torch.Tensor | None = None, indices: torch.Tensor | None = None, counts: torch.Tensor | None = None, slots: bool = False,
                     second_k: torch.Tensor | None = None, second_indices: torch.Tensor | None = None, second_counts: torch.Tensor | None = None,
                     value_dim: int | None = None, causal: bool = False, causal_prefix: int | None = None, softcap: float | None = None,
                     sinks: torch.Tensor | None = None, query_starts: torch.Tensor | None = None, key_starts: torch.Tensor | None = None,
                     key_lengths: torch.Tensor | None = None, block_table: torch.Tensor | None = None, table_starts: torch.Tensor | None = None,
                     max_query_length: int | None = None, max_key_length: int | None = None, max_total_keys: int | None = None, splits: int = 0,
                     k_scale: torch.Tensor | float | None = None, row_scales: str | None = None, return_lse: bool = False) -> Any:
    """softmax(scale · q·kᵀ + mask) · v, v being the first columns of k: [B, Sq, H, 576] → [B, Sq, H, 512]. No gradients.

    q [B, Sq, H, 576], k [B, Sk, 1, 576]; with block_table pages [pages, page size, 1, 576]
        fp16 or bf16. 576 and 512 may be 512 and 512, or 320 and 256. `q_rope` and `k_rope` are the last columns where they stand in
        tensors of their own. A cache is never copied. It may be float8 (e4m3fn and e5m2 on gfx950, e4m3fnuz and e5m2fnuz on gfx942) or
        int8 under q of 16 bits; rows of 656 and of 584 bytes, which have scales and a rope in bf16, are float8 of e4m3 of as many columns.
    k_scale
        Of such a cache, but for those rows: what its numbers count. A number, or fp32 of one element or [B] on q's device.
    {row_scales}
    {scale}
    {indices}
    {counts}
    {second_indices}
    out
        Is written, where it is given.
    block_table, table_starts
        int32 [B, columns]; or the pages of all sequences one after the other, and where each begins [B + 1].
    return_lse
        (out, LSE [B, H, Sq] fp32).

    The rest as in `wavejit.Engine.attention_latent`. torch.compile traces it as `torch.ops.wavejit.attention_latent`, `…_lse` or `…_out`.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q, pages = torch.ones(1, 2, 12, 576).bfloat16(), torch.ones(3, 64, 1, 576).bfloat16()
    >>> table, lengths = torch.tensor([[2, 0]], dtype=torch.int32), torch.tensor([100], dtype=torch.int32)
    >>> wavejit.torch.attention_latent(q, pages, scale=192 ** -0.5, causal=True, block_table=table, key_lengths=lengths).shape
    torch.Size([1, 2, 12, 512])
    """
    tensors_only({"q": q, "k": k, **({} if out is None else {"out": out})})
    if max_key_length is None and block_table is not None and table_starts is None and block_table.ndim == 2 and k.ndim == 4:
        max_key_length = block_table.shape[1] * k.shape[1]
    table = None if block_table is None else _int32("block_table", block_table, 2 if table_starts is None else 1)
    words: dict[str, Any] = {"q_rope": q_rope, "k_rope": k_rope, "indices": indices, "counts": counts, "slots": slots or None, "second_k": second_k,
                             "second_indices": second_indices, "second_counts": second_counts, "value_dim": value_dim, "causal": causal or None,
                             "causal_prefix": causal_prefix, "softcap": softcap, "sinks": sinks, "query_starts": _starts("query_starts", query_starts),
                             "key_starts": _starts("key_starts", key_starts), "key_lengths": _starts("key_lengths", key_lengths), "block_table": table,
                             "table_starts": _starts("table_starts", table_starts), "max_query_length": max_query_length, "max_key_length": max_key_length,
                             "max_total_keys": max_total_keys, "splits": splits or None, "row_scales": row_scales}
    _kvcache.check_no_rows("max_query_length", max_query_length, "query_starts", words["query_starts"])
    if key_starts is None:
        _kvcache.check_no_rows("max_key_length", max_key_length, "key_lengths", None, words["key_lengths"])
    else:
        _kvcache.check_no_rows("max_key_length", max_key_length, "key_starts", words["key_starts"])
    words = {name: value for name, value in words.items() if value is not None}
    if k_scale is not None:
        words["k_scale"] = _scale_of_keys(q, k_scale)
    if out is not None:
        lse = _into(out, q, k, scale=scale, lse=return_lse, **words)
        return (out, lse) if return_lse else out
    return (_with_lse if return_lse else _plain)(q, k, scale=scale, **words)


def _starts(field: str, given: torch.Tensor | None) -> torch.Tensor | None:
    return None if given is None else _int32(field, given, 1)


def _scale_of_keys(q: torch.Tensor, given: torch.Tensor | float) -> torch.Tensor:
    """One element for all sequences, or [B, 1] for each, as there is one head."""
    if isinstance(given, (int, float)):
        return torch.full((1,), given, dtype=torch.float32, device=q.device)
    tensors_only({"k_scale": given})
    return given[:, None] if given.ndim == 1 and given.shape[0] > 1 else given


# ---- The argument lists of others

class _Tensors:
    """What the functions of wavejit.latent take for an engine."""

    def attention_latent(self, q: torch.Tensor, k: torch.Tensor, *, lse: bool = False, **words: Any) -> Any:
        return attention_latent(q, k, return_lse=lse, **words)


_TENSORS: Any = _Tensors()


def _in_words_of(names: dict[str, str], call: Callable[[], Any]) -> Any:
    """What is refused is told by the names that the function's callers know."""
    if torch.compiler.is_compiling():
        return call()
    try:
        return call()
    except Error as error:
        raise in_callers_words(error, names) from None


get_mla_metadata = latent.get_mla_metadata


def flash_mla_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, block_table: torch.Tensor | None, cache_seqlens: torch.Tensor | None, head_dim_v: int,
                           tile_scheduler_metadata: Any = None, num_splits: Any = None, softmax_scale: float | None = None, causal: bool = False,
                           is_fp8_kvcache: bool = False, indices: torch.Tensor | None = None, attn_sink: torch.Tensor | None = None,
                           extra_k_cache: torch.Tensor | None = None, extra_indices_in_kvcache: torch.Tensor | None = None,
                           topk_length: torch.Tensor | None = None, extra_topk_length: torch.Tensor | None = None, *,
                           k_scale: torch.Tensor | float | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """FlashMLA's call, as `wavejit.latent.flash_mla_with_kvcache` has it: (out [B, Sq, H, head_dim_v], LSE [B, H, Sq]). No gradients.

    `is_fp8_kvcache`: k_cache is float8, of 656 or 584 columns, which are the bytes of FlashMLA's rows, or of as many as q has, and `k_scale`
    is then its scale. Bytes say no format: view them as the one that they are, `k_cache.view(torch.float8_e4m3fn)`.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q, cache = torch.ones(1, 1, 16, 576).half(), torch.ones(2, 64, 1, 576).half()
    >>> table, lengths = torch.tensor([[1, 0]], dtype=torch.int32), torch.tensor([100], dtype=torch.int32)
    >>> metadata, splits = wavejit.torch.get_mla_metadata(lengths, 16, 1)
    >>> out, lse = wavejit.torch.flash_mla_with_kvcache(q, cache, table, lengths, 512, metadata, splits, softmax_scale=192 ** -0.5)
    >>> out.shape, lse.shape
    (torch.Size([1, 1, 16, 512]), torch.Size([1, 16, 1]))
    """
    tensors_only({"q": q, "k_cache": k_cache})
    if is_fp8_kvcache and k_cache.dtype not in _dispatch.CACHES:
        raise InvalidArgument(f"k_cache: dtype {k_cache.dtype} beside is_fp8_kvcache; accepted: {', '.join(map(str, _dispatch.CACHES))}, such as "
                              "k_cache.view(torch.float8_e4m3fn)")
    more = {} if k_scale is None else {"k_scale": k_scale}
    return _in_words_of(latent.FLASH_MLA, lambda: latent.flash_mla_with_kvcache(  # type: ignore[no-any-return]
        _TENSORS, q, k_cache, block_table, cache_seqlens, head_dim_v, tile_scheduler_metadata, num_splits, softmax_scale, causal, is_fp8_kvcache, indices, attn_sink,
        extra_k_cache, extra_indices_in_kvcache, topk_length, extra_topk_length, **more))


def flash_mla_sparse_fwd(q: torch.Tensor, kv: torch.Tensor, indices: torch.Tensor, sm_scale: float, d_v: int = 512, attn_sink: torch.Tensor | None = None,
                         topk_length: torch.Tensor | None = None) -> tuple[torch.Tensor, None, torch.Tensor]:
    """FlashMLA's sparse prefill, as `wavejit.latent.flash_mla_sparse_fwd` has it: (out [Sq, H, d_v], None, LSE [Sq, H]). No gradients.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> q, kv = torch.ones(2, 16, 576).half(), torch.ones(100, 1, 576).half()
    >>> out, _, lse = wavejit.torch.flash_mla_sparse_fwd(q, kv, torch.tensor([[[7, -1, 3]], [[-1, 200, 9]]], dtype=torch.int32), 0.0)
    >>> out.shape, round(lse[0, 0].item(), 3)    # ln 2
    (torch.Size([2, 16, 512]), 0.693)
    """
    tensors_only({"q": q, "kv": kv, "indices": indices})
    return _in_words_of(latent.FLASH_MLA_SPARSE, lambda: latent.flash_mla_sparse_fwd(_TENSORS, q, kv, indices, sm_scale, d_v, attn_sink, topk_length))  # type: ignore[no-any-return]


def mla_decode_fwd(q: torch.Tensor, kv_buffer: torch.Tensor, o: torch.Tensor, qo_indptr: torch.Tensor, kv_indptr: torch.Tensor, kv_indices: torch.Tensor,
                   kv_last_page_lens: torch.Tensor | None, max_seqlen_q: int, page_size: int = 1, nhead_kv: int = 1, sm_scale: float | None = None,
                   logit_cap: float = 0.0, num_kv_splits: int | None = None, num_kv_splits_indptr: Any = None, work_meta_data: Any = None, work_indptr: Any = None,
                   work_info_set: Any = None, reduce_indptr: Any = None, reduce_final_map: Any = None, reduce_partial_map: Any = None, q_scale: Any = None,
                   kv_scale: Any = None, intra_batch_mode: bool = False, return_logits: bool = False, return_lse: bool = False, g_kv_indptr: Any = None,
                   cp_world_size: int = 1, cp_rank: int = 0, causal: bool = True, *, max_key_length: int | None = None) -> tuple[None, torch.Tensor | None]:
    """AITER's decode call: q [tokens, H, 576], pages kv_buffer [pages, page size, 1, 576], o [tokens, H, 512], which is written,
    and int32 tensors qo_indptr [B + 1], kv_indptr [B + 1] (it counts pages), kv_indices, kv_last_page_lens [B]. Returns (None, LSE
    [tokens, H] fp32, or None). No gradients.

    page_size is kv_buffer's, and each last page has 1 … page_size keys: what the host does not see is taken as the nearest of them.
    Nothing on a device is read by the host. It takes `max_key_length` for the longest sequence, and without it as many keys as `kv_indices`
    has: where those are many more, say it, or few workgroups may get all the work. There is no work list: `num_kv_splits` shows in no bit,
    and its companions, `intra_batch_mode` among them, are not looked at. Scales, logits and a shared context (`cp_world_size`) are refused.

    >>> import torch, wavejit.torch
    >>> engine = wavejit.torch.use("sim:gfx950")
    >>> numbers = [torch.tensor(each, dtype=torch.int32) for each in ([0, 1, 2], [0, 2, 3], [4, 0, 2], [36, 7])]
    >>> q, cache, o = torch.ones(2, 12, 576).bfloat16(), torch.ones(5, 64, 1, 576).bfloat16(), torch.zeros(2, 12, 512).bfloat16()
    >>> _, lse = wavejit.torch.mla_decode_fwd(q, cache, o, *numbers, 1, page_size=64, sm_scale=192 ** -0.5, return_lse=True)
    >>> o[0, 0, 0].item(), [round(each - 41.569, 2) for each in lse[:, 0].tolist()]    # ln 100, ln 7
    (1.0, [4.61, 1.95])
    """
    tensors_only({"q": q, "kv_buffer": kv_buffer, "o": o, "qo_indptr": qo_indptr, "kv_indptr": kv_indptr, "kv_indices": kv_indices})
    latent.check_aiter_words(kv_buffer, page_size, nhead_kv, sm_scale, cp_rank, q_scale=q_scale, kv_scale=kv_scale, return_logits=return_logits, g_kv_indptr=g_kv_indptr,
                             cp_world_size=cp_world_size)
    starts, pages = _int32("kv_indptr", kv_indptr, 1), _int32("kv_indices", kv_indices, 1)
    lasts = None if kv_last_page_lens is None else _int32("kv_last_page_lens", kv_last_page_lens, 1)
    lengths = _aiter_lengths(page_size, pages.shape[0], starts, lasts, max_key_length)
    entries = pages.shape[0] * page_size

    def call() -> Any:
        return attention_latent(q[None], kv_buffer, scale=sm_scale, out=o[None], causal=causal, softcap=logit_cap or None, query_starts=qo_indptr,  # type: ignore[arg-type]
                                max_query_length=max_seqlen_q, key_lengths=lengths, max_key_length=entries if max_key_length is None else max_key_length,
                                max_total_keys=entries, block_table=pages, table_starts=starts, splits=num_kv_splits or 0, return_lse=return_lse)

    found = _in_words_of(latent.AITER, call)
    return None, found[1].permute(0, 2, 1)[0] if return_lse else None


def _aiter_lengths(page_size: int, entries: int, starts: torch.Tensor, lasts: torch.Tensor | None, max_key_length: int | None) -> torch.Tensor:
    if _kvcache.can_be_read(starts) and (lasts is None or lasts.is_cpu):
        lengths = latent.aiter_lengths(page_size, entries, starts.tolist(), None if lasts is None else lasts.tolist(), max_key_length)
        return torch.tensor(lengths, dtype=torch.int32)
    if lasts is not None and (lasts.device != starts.device or lasts.shape[0] != starts.shape[0] - 1):
        raise InvalidArgument(f"kv_last_page_lens: shape {tuple(lasts.shape)} on {lasts.device}; accepted: [{starts.shape[0] - 1}] on {starts.device}, as kv_indptr says")
    pages = starts[1:] - starts[:-1]
    if page_size == 1:
        return pages
    if lasts is None:
        raise InvalidArgument(f"kv_last_page_lens: None beside page_size = {page_size}; accepted: the keys of each sequence's last page")
    # A number that is none of a page's would lead into the next sequence's pages.
    return torch.where(pages > 0, (pages - 1) * page_size + lasts.clamp(1, page_size), pages)


# ---- The operators

ARGUMENTS = (
    "Tensor q, Tensor k, *, float scale, Tensor? q_rope=None, Tensor? k_rope=None, Tensor? indices=None, Tensor? counts=None, bool slots=False, "
    "Tensor? second_k=None, Tensor? second_indices=None, Tensor? second_counts=None, SymInt value_dim=0, "
    "bool causal=False, SymInt causal_prefix=-1, float softcap=0.0, Tensor? sinks=None, Tensor? query_starts=None, Tensor? key_starts=None, Tensor? key_lengths=None, "
    "Tensor? block_table=None, Tensor? table_starts=None, SymInt max_query_length=0, SymInt max_key_length=0, SymInt max_total_keys=0, int splits=0, "
    "Tensor? k_scale=None, str? row_scales=None"
)
LIBRARY.define(f"attention_latent({ARGUMENTS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
LIBRARY.define(f"attention_latent_lse({ARGUMENTS}) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
# The LSE, or nothing; out is written.
LIBRARY.define(f"attention_latent_out(Tensor(a!) out, {ARGUMENTS}, bool lse=False) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def _run(q: torch.Tensor, k: torch.Tensor, out: torch.Tensor | None, with_lse: bool, words: dict[str, Any]) -> tuple[torch.Tensor, Any]:
    return _latent_dispatch.run(_engines.of_device(q.device, "q"), q, k, out, with_lse, words)


def _kernel(q: torch.Tensor, k: torch.Tensor, **words: Any) -> torch.Tensor:
    return _run(q, k, None, False, words)[0]


def _lse_kernel(q: torch.Tensor, k: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _run(q, k, None, True, words)


def _out_kernel(out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, *, lse: bool = False, **words: Any) -> torch.Tensor:
    sums = _run(q, k, out, lse, words)[1]
    return sums if lse else q.new_empty((0,), dtype=torch.float32)


def _traced(q: torch.Tensor, k: torch.Tensor, **words: Any) -> torch.Tensor:
    return q.new_empty(_latent_dispatch.sizes_of(q, words)[0])


def _traced_lse(q: torch.Tensor, k: torch.Tensor, **words: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _traced(q, k, **words), q.new_empty(_latent_dispatch.sizes_of(q, words)[1], dtype=torch.float32)


def _traced_out(out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, *, lse: bool = False, **words: Any) -> torch.Tensor:
    return q.new_empty(_latent_dispatch.sizes_of(q, words)[1] if lse else (0,), dtype=torch.float32)


def _without_gradients(name: str, writes: bool) -> Callable[..., Any]:
    """They have none: zeros in their place would be silent."""

    def call(*tensors: torch.Tensor, **words: Any) -> Any:
        if torch.is_grad_enabled():
            fields = ("out", "q", "k") if writes else ("q", "k")
            for field, tensor in (*zip(fields, tensors), *words.items()):
                if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
                    raise Unsupported(f"{field}: it requires grad, and latent attention has no backward; accepted: torch.no_grad(), or detach()")
        if writes and not tensors[0].is_inference():
            torch.autograd.graph.increment_version(tensors[0])
        with torch._C._AutoDispatchBelowAutograd():
            return getattr(torch.ops.wavejit, name).default(*tensors, **words)

    return call


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
for _name, _implementation, _fake in (("attention_latent", _kernel, _traced), ("attention_latent_lse", _lse_kernel, _traced_lse),
                                      ("attention_latent_out", _out_kernel, _traced_out)):
    LIBRARY.impl(_name, _untraced(_implementation), "CompositeExplicitAutograd")
    LIBRARY.impl(_name, _without_gradients(_name, _name == "attention_latent_out"), "Autograd")
    torch.library.register_fake(f"wavejit::{_name}", _fake, lib=LIBRARY)
_plain: Callable[..., torch.Tensor] = torch.ops.wavejit.attention_latent.default
_with_lse: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.wavejit.attention_latent_lse.default
_into: Callable[..., torch.Tensor] = torch.ops.wavejit.attention_latent_out.default
