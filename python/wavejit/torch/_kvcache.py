# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `flash_attn_with_kvcache` does before it attends: it says where each sequence's keys stand, and writes new ones there.

A call with new keys is two launches or three. All of it that the host knows is checked before the first one: `slots` does it, and what
it returns is where keys are written. In a compiled graph it is an operator, so that nothing is written before it has answered.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .._errors import Error, InvalidArgument, Unsupported, in_callers_words
from . import _append, _engines, _gradients, _into, _operators, _dispatch
from ._names import APPENDED, CACHE
from ._repeats import stand_once

if TYPE_CHECKING:
    # cache_seqlens, cache_batch_idx, cache_leftpad and block_table; tensors are int32
    Numbers = tuple[int | torch.Tensor | None, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]

# Limits of a page (templates/attention/call/limits.h): the most keys, and what they are a multiple of.
MOST_KEYS_OF_A_PAGE, KEYS_AT_ONCE = 8192, 16
# Limits of rotary embedding: the most dims that are turned, what they are a multiple of, and types of the tables.
MOST_DIMS_TURNED, DIMS_AT_ONCE, ANGLES = 256, 16, (torch.float32, torch.float16, torch.bfloat16)
# A length above every cache's, to which new keys are added.
MOST_TOLD = 1 << 30


class New(NamedTuple):
    """New keys and values, and how they are turned."""

    k: torch.Tensor
    v: torch.Tensor
    cos: torch.Tensor | None
    sin: torch.Tensor | None
    interleaved: bool
    turns_alike: bool  # all rows of q by the position of the first


class Places(NamedTuple):
    """Where the keys of q's sequences stand in a cache. Numbers are int32 on q's device."""

    lengths: torch.Tensor | None  # [B], without the new keys; None: whole rows
    rows: torch.Tensor | None  # [B]: of a dense cache
    firsts: torch.Tensor | None  # [B]
    table: torch.Tensor | None  # [B, columns]
    page: int  # keys of a page, or of a row
    room: int  # keys that a sequence can have
    longest: int = 0  # no length is more, as far as shapes and numbers of Python's say


# ---- Checks of what every device's host knows: shapes, and numbers that are Python's


def new_keys(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None, cos: torch.Tensor | None, sin: torch.Tensor | None,
             interleaved: bool, turns_alike: bool) -> New:
    if v is None or v.ndim != 4 or k.ndim != 4:
        raise InvalidArgument(f"k, v: shapes {tuple(k.shape)}, {None if v is None else tuple(v.shape)}; accepted: [B, new keys, kv heads, head dim] of both")
    if k.shape[0] != q.shape[0]:
        raise InvalidArgument(f"k: shape {tuple(k.shape)}; accepted: [{q.shape[0]}, new keys, kv heads, head dim], q's batch")
    for field, given, cache in (("k", k, k_cache), ("v", v, v_cache)):
        accepted = (*k.shape[:2], *(cache.shape[2:] if k_cache.ndim == 4 else given.shape[2:]))
        if given.shape != accepted:
            raise InvalidArgument(f"{field}: shape {tuple(given.shape)}; accepted: {list(accepted)}, with the heads and dims of {field}_cache" + (" and the new keys of k" if field == "v" else ""))
    if (cos is None) != (sin is None):
        raise InvalidArgument("rotary_cos, rotary_sin: one of them; accepted: both, or neither")
    for field, tensor in (("k", k), ("v", v), ("rotary_cos", cos), ("rotary_sin", sin)):
        if tensor is None:
            continue
        if tensor.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {q.device}, where q is")
        if field.startswith("rotary") and tensor.ndim != 2:
            raise InvalidArgument(f"{field}: shape {tuple(tensor.shape)}; accepted: [positions, rotary dims / 2]")
    if cos is not None and sin is not None:
        _check_tables(k, cos, sin)
    if 0 not in k.shape[:2]:
        stand_once("k_cache", k_cache)
        stand_once("v_cache", v_cache)
    return New(k, v, cos, sin, interleaved, turns_alike)


def _check_tables(k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    most = min(MOST_DIMS_TURNED, k.shape[3])
    if cos.shape[1] == 0 or 2 * cos.shape[1] % DIMS_AT_ONCE or 2 * cos.shape[1] > most:
        raise InvalidArgument(f"rotary_cos: shape {tuple(cos.shape)}; accepted: [positions, rotary dims / 2], where rotary dims are a multiple of {DIMS_AT_ONCE} up to {most}")
    if cos.dtype not in ANGLES:
        raise InvalidArgument(f"rotary_cos: {cos.dtype}; accepted: {', '.join(map(str, ANGLES))}")
    if sin.shape != cos.shape or sin.dtype is not cos.dtype:
        raise InvalidArgument(f"rotary_sin: {sin.dtype}, shape {tuple(sin.shape)}; accepted: {cos.dtype}, {tuple(cos.shape)}, as rotary_cos")


def check_cache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, paged: bool) -> None:
    if q.ndim != 4:
        raise InvalidArgument(f"q: shape {tuple(q.shape)}; accepted: [B, Sq, heads, head dim]")
    if k_cache.ndim == _dispatch.VECTORISED and paged:
        return
    for field, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if cache.ndim != 4:
            raise InvalidArgument(f"{field}: shape {tuple(cache.shape)}; accepted: " + ("[pages, page size" if paged else "[B, keys") + ", kv heads, head dim]")
    if k_cache.shape[:2] != v_cache.shape[:2]:
        raise InvalidArgument(f"v_cache: shape {tuple(v_cache.shape)}; accepted: {list(k_cache.shape[:2])} in front, as k_cache has them")


def places(q: torch.Tensor, k_cache: torch.Tensor, new: New | None, lengths: int | torch.Tensor | None, rows: torch.Tensor | None, firsts: torch.Tensor | None,
           table: torch.Tensor | None) -> Places:
    batch = q.shape[0]
    for field, given in (("cache_seqlens", lengths), ("cache_batch_idx", rows), ("cache_leftpad", firsts), ("block_table", table)):
        if not isinstance(given, torch.Tensor):
            continue
        if given.device != q.device:
            raise InvalidArgument(f"{field}: a tensor on {given.device}; accepted: {q.device}, where q is")
        if given.shape[0] != batch:
            raise InvalidArgument(f"{field}: shape {tuple(given.shape)}; accepted: [{batch}{', columns' if given.ndim == 2 else ''}], as q has {batch} sequences")
    page = _page(k_cache)
    room = page if table is None else page * table.shape[1]
    count = 0 if new is None else new.k.shape[1]
    if lengths is None and (new is not None or table is not None):
        raise InvalidArgument(f"cache_seqlens: None beside {'k' if new is not None else 'block_table'}; accepted: how many keys each sequence has")
    if count > room:
        raise InvalidArgument(f"k: {count} new keys; accepted: at most {room}, which a sequence of the cache has room for")
    if new is not None and new.cos is not None and new.cos.shape[0] < room:
        # A device's lengths are not known, and a position without an angle would be turned into zeros.
        raise InvalidArgument(f"rotary_cos: {new.cos.shape[0]} positions; accepted: at least {room}, as many as a sequence of the cache has room for")
    if rows is not None and k_cache.shape[0] == 0 and batch:
        raise InvalidArgument(f"k_cache: shape {tuple(k_cache.shape)}; accepted: 1 row or more, of which cache_batch_idx chooses")
    if rows is None and table is None and k_cache.shape[0] < batch:
        raise InvalidArgument(f"k_cache: shape {tuple(k_cache.shape)}; accepted: at least {batch} rows, as q has {batch} sequences")
    longest = room - count
    if isinstance(lengths, int):
        longest = _checked(lengths, room, count)
        lengths = torch.full((batch,), lengths, dtype=torch.int32, device=q.device)
    return Places(lengths, rows, firsts, table, page, room, longest)


def _page(k_cache: torch.Tensor) -> int:
    return k_cache.shape[3] if k_cache.ndim == _dispatch.VECTORISED else k_cache.shape[1]


def _checked(length: int, room: int, count: int) -> int:
    if not 0 <= length <= room - count:
        raise InvalidArgument(f"cache_seqlens = {length}; accepted: {_room(room, count)}")
    return length


def longest_of(k_cache: torch.Tensor, lengths: int | torch.Tensor | None, table: torch.Tensor | None) -> int | None:
    """As `places` has it, of a call without new keys."""
    if table is None:
        return _checked(lengths, _page(k_cache), 0) if isinstance(lengths, int) else None
    if lengths is None:
        raise InvalidArgument("cache_seqlens: None beside block_table; accepted: how many keys each sequence has")
    room = _page(k_cache) * table.shape[1]
    return _checked(lengths, room, 0) if isinstance(lengths, int) else room


def explain(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, numbers: Numbers) -> None:
    """Raises what was refused in the caller's words, if one of these numbers is the reason."""
    try:
        check_cache(q, k_cache, v_cache, numbers[3] is not None)
        at = places(q, k_cache, None, *numbers)
        if can_be_read(q):
            check_numbers(q, k_cache, at)
    except InvalidArgument as error:
        raise error from None


def _room(room: int, count: int) -> str:
    return f"0 … {room - count}, as a sequence of the cache has room for {room} keys" + (f", and k has {count}" if count else "")


# ---- Checks of numbers that the host can read


def can_be_read(tensor: torch.Tensor) -> bool:
    return not torch.compiler.is_compiling() and tensor.is_cpu and _gradients.nothing_traces(tensor)


def check_numbers(q: torch.Tensor, k_cache: torch.Tensor, at: Places, count: int = 0, positions: int | None = None, rows_of_positions: int = 0) -> None:
    """Checks tensors in host memory. `positions`: how many the rotary tables have; `rows_of_positions`: how many follow each other from a sequence's
    first new key on."""
    lengths = [at.room] * q.shape[0] if at.lengths is None else at.lengths.tolist()
    firsts = None if at.firsts is None else at.firsts.tolist()
    for b, length in enumerate(lengths):
        if not 0 <= length <= at.room - count:
            raise InvalidArgument(f"cache_seqlens[{b}] = {length}; accepted: {_room(at.room, count)}")
        first = 0 if firsts is None else firsts[b]
        behind = count if positions is None else 0
        if not 0 <= first <= length + behind:
            raise InvalidArgument(f"cache_leftpad[{b}] = {first}; accepted: 0 … {length + behind}, as cache_seqlens[{b}] = {length}" + (f" and k has {behind}" if behind else ""))
        if positions is not None and length - first + rows_of_positions > positions:
            raise InvalidArgument(f"rotary_cos: {positions} positions; accepted: at least {length - first + rows_of_positions}: {rows_of_positions} rows of q "
                                  f"begin at position {length - first} of sequence {b}")
    if at.rows is not None:
        for b, row in enumerate(at.rows.tolist()):
            if not 0 <= row < k_cache.shape[0]:
                raise InvalidArgument(f"cache_batch_idx[{b}] = {row}; accepted: 0 … {k_cache.shape[0] - 1}, the rows of the cache")
    if at.table is not None:
        for b, (length, entries) in enumerate(zip(lengths, at.table.tolist())):
            for column, page in enumerate(entries[: -(-(length + count) // at.page)] if at.page else ()):
                if not 0 <= page < k_cache.shape[0]:
                    raise InvalidArgument(f"block_table[{b}][{column}] = {page}; accepted: 0 … {k_cache.shape[0] - 1}, the pages of the cache")
    if count:
        _check_written_once(at, lengths, count)


def _check_written_once(at: Places, lengths: list[int], count: int) -> None:
    """Rows and pages that two sequences write to: keys of one of them would be lost."""
    written: dict[int, str] = {}
    for b, length in enumerate(lengths):
        if at.table is not None:
            entries = at.table[b].tolist()
            places = {f"block_table[{b}][{column}]": entries[column] for column in range(length // at.page, -(-(length + count) // at.page))}
        else:
            places = {f"cache_batch_idx[{b}]": int(at.rows[b])} if at.rows is not None else {}
        for field, place in places.items():
            if place in written:
                another = "row of the cache" if at.table is None else "page, as new keys are written to both"
                raise InvalidArgument(f"{field} = {place}, as {written[place]} is; accepted beside k: another {another}")
            written[place] = field


# ---- The cache as attention reads it


def attended(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, at: Places, *, contents: bool = True) -> tuple[torch.Tensor, torch.Tensor]:
    """k and v of q's sequences. Chosen rows are read where they lie, as pages, if they can be; else they are copied, and without
    `contents` only as large."""
    batch = q.shape[0]
    if at.rows is None:  # flash-attn takes the first ones
        return (k_cache, v_cache) if at.table is not None or k_cache.shape[0] == batch else (k_cache[:batch], v_cache[:batch])
    parts = _parts_of_rows(k_cache, v_cache, at)
    if parts == 1:
        return k_cache, v_cache
    if parts:
        return k_cache.unflatten(1, (parts, -1)).flatten(0, 1), v_cache.unflatten(1, (parts, -1)).flatten(0, 1)
    if not contents:
        return k_cache.new_empty((batch, *k_cache.shape[1:])), v_cache.new_empty((batch, *v_cache.shape[1:]))
    index = at.rows.to(torch.int64)
    return k_cache.index_select(0, index), v_cache.index_select(0, index)


def pages(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, at: Places) -> torch.Tensor | None:
    """The pages of each sequence in what `attended` gives, [B, columns]."""
    if at.rows is None:
        return at.table
    parts = _parts_of_rows(k_cache, v_cache, at)
    if parts < 2:
        return at.rows[:, None] if parts else None
    return at.rows[:, None] * parts + torch.arange(parts, dtype=torch.int32, device=q.device)


def _parts_of_rows(k_cache: torch.Tensor, v_cache: torch.Tensor, at: Places) -> int:
    """Into how many pages a row of the cache is cut, as few as there can be; 0: it is not read as pages."""
    keys = k_cache.shape[1]
    if at.firsts is not None or keys == 0 or keys % KEYS_AT_ONCE:
        return 0
    if keys <= MOST_KEYS_OF_A_PAGE:
        return 1
    if k_cache.stride(0) != keys * k_cache.stride(1) or v_cache.stride(0) != keys * v_cache.stride(1):
        return 0  # rows do not follow each other as their keys do
    for parts in range(-(-keys // MOST_KEYS_OF_A_PAGE), keys // KEYS_AT_ONCE):
        if keys % (KEYS_AT_ONCE * parts) == 0:
            return parts
    return keys // KEYS_AT_ONCE


def words_of_keys(lengths: torch.Tensor | None, firsts: torch.Tensor | None, table: torch.Tensor | None, longest: int | None, count: int) -> dict[str, Any]:
    """The operator's words for which keys are there, `count` new ones among them."""
    words: dict[str, Any] = {}
    if table is not None:
        assert longest is not None
        words["block_table"] = table
        if lengths is None:  # whole rows, as pages
            lengths = torch.full((table.shape[0],), longest, dtype=torch.int32, device=table.device)
        words["max_key_length"] = longest + count
    if lengths is not None and count:
        lengths = lengths.clamp(max=MOST_TOLD) + count  # a device's number may be anything, and must not wrap
    if firsts is not None:
        words["first_keys"] = firsts
        lengths = None if lengths is None else lengths - firsts
    if lengths is not None:
        words["key_lengths"] = lengths
    return words


# ---- Everything that is checked before something is written; the slots of new keys

ARGUMENTS = (
    "Tensor q, Tensor k_cache, Tensor v_cache, Tensor cache_seqlens, Tensor? cache_batch_idx, Tensor? cache_leftpad, Tensor? pages, SymInt page, SymInt room, "
    "SymInt new_keys, SymInt positions, SymInt rows_of_positions, Tensor? out, bool lse"
)
_operators.LIBRARY.define(f"kv_cache_slots({ARGUMENTS}, *, {_operators.WORDS}) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def slots(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, at: Places, new: New, out: torch.Tensor | None, with_lse: bool,
          words: dict[str, Any]) -> torch.Tensor:
    """Checks the call as far as the host can, and returns the slot of each new key, int64 [B · new keys]; −1: none."""
    _refuse_gradients({"q": q, "k_cache": k_cache, "v_cache": v_cache, "k": new.k, "v": new.v, "out": out})
    constants = {name: words.get(name) for name in _operators.NAMES[3:]}
    _operators.without_derivative(q, k_cache, v_cache, *constants.values(), names=tuple([CACHE.get(name, name) for name in _operators.NAMES]))
    count, positions = new.k.shape[1], -1 if new.cos is None else new.cos.shape[0]
    given: tuple[Any, ...] = (q, k_cache, v_cache, at.lengths, at.rows, at.firsts, at.table, at.page, at.room, count, positions, max(count, 1 if new.turns_alike else q.shape[1]), out, with_lse)
    looked_at = torch.compiler.is_compiling() or not _gradients.nothing_traces(q)
    return (_operator if looked_at else _run)(*given, **words)


def _run(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor, rows: torch.Tensor | None, firsts: torch.Tensor | None,
         table: torch.Tensor | None, page: int, room: int, count: int, positions: int, rows_of_positions: int, out: torch.Tensor | None, with_lse: bool,
         **words: Any) -> torch.Tensor:
    at = Places(lengths, rows, firsts, table, page, room)
    if q.is_cpu:
        check_numbers(q, k_cache, at, count, None if positions < 0 else positions, rows_of_positions)
    if 0 not in q.shape:
        k, v = attended(q, k_cache, v_cache, at, contents=False)
        try:
            if out is not None:
                _into.check_outputs(q, k, v, out, None, None)
            _dispatch.check(_engines.of_device(q.device, "q"), q, k, v, out, with_lse, words)
        except Error as error:  # here, since behind a compiled graph nobody would
            raise in_callers_words(error, CACHE) from None
    return slots_of(at, count)


def slots_of(at: Places, count: int) -> torch.Tensor:
    """The slots of `count` keys behind those that each sequence has. What is outside of a sequence is −1 or no slot of the cache, and
    cache_append writes neither: a device's numbers may be anything."""
    lengths = at.lengths
    assert lengths is not None
    if count == 0:
        return lengths.new_empty((0,), dtype=torch.int64)
    # A length below 0 is far beyond the room as an unsigned number: one operation less on the device.
    place = lengths.view(torch.uint32).to(torch.int64)[:, None] + torch.arange(count, device=lengths.device)
    inside = place < at.room
    if at.table is None:
        row = torch.arange(place.shape[0], device=place.device) if at.rows is None else at.rows.to(torch.int64)
        return torch.where(inside, row[:, None] * at.page + place, -1).reshape(-1)
    entry = at.table.to(torch.int64).gather(1, (place // at.page).clamp(0, at.table.shape[1] - 1))
    return torch.where(inside, entry * at.page + place % at.page, -1).reshape(-1)


def _traced(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor, rows: torch.Tensor | None, firsts: torch.Tensor | None,
            table: torch.Tensor | None, page: int, room: int, count: int, *_: Any, **__: Any) -> torch.Tensor:
    return q.new_empty((q.shape[0] * count,), dtype=torch.int64)


def _refuse_gradients(tensors: dict[str, torch.Tensor | None]) -> None:
    if not torch.is_grad_enabled():
        return
    for field, tensor in tensors.items():
        if tensor is not None and tensor.requires_grad:
            raise Unsupported(f"{field}: it requires grad, and what is written to a cache has no gradient; accepted: torch.no_grad(), or detach()")


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
_operators.LIBRARY.impl("kv_cache_slots", _untraced(_run), "CompositeExplicitAutograd")
torch.library.register_fake("wavejit::kv_cache_slots", _traced, lib=_operators.LIBRARY)
_operator: Callable[..., torch.Tensor] = torch.ops.wavejit.kv_cache_slots.default


def appended(new: New, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, at: Places, to: torch.Tensor, scales: dict[str, Any]) -> torch.Tensor:
    """Writes new keys and values to their slots; q, turned."""
    try:
        return _appended(new, q, k_cache, v_cache, at, to, scales)
    except Error as error:
        raise in_callers_words(error, APPENDED) from None


def _appended(new: New, q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, at: Places, to: torch.Tensor, scales: dict[str, Any]) -> torch.Tensor:
    k, v = new.k, new.v
    if new.cos is None:
        _append.cache_append(k, v, k_cache, v_cache, to, **scales)
        return q
    assert at.lengths is not None
    batch, count = k.shape[:2]
    begin = at.lengths.to(torch.int64) if at.firsts is None else at.lengths.to(torch.int64) - at.firsts
    positions = (begin[:, None] + torch.arange(count, device=q.device)).reshape(-1)
    turn: dict[str, Any] = {"rotary": "interleaved" if new.interleaved else "halves", "cos": new.cos, "sin": new.sin}
    if q.shape[1] == count and not (new.turns_alike and count > 1):
        turned = _append.cache_append(k, v, k_cache, v_cache, to, positions=positions, q=q, **turn, **scales)
    else:
        # Rows of q are others than those of k, or have other positions: a launch of their own, which writes no key. It comes first, since it may be refused.
        of_rows = begin[:, None] + (0 if new.turns_alike else torch.arange(q.shape[1], device=q.device))
        nowhere = torch.full((batch * q.shape[1],), -1, dtype=torch.int64, device=q.device)
        turned = _append.cache_append(q[:, :, :1], None, q.new_empty(1, 1, 1, q.shape[3]), None, nowhere, positions=of_rows.expand(batch, q.shape[1]).reshape(-1), q=q, **turn)
        _append.cache_append(k, v, k_cache, v_cache, to, positions=positions, **turn, **scales)
    assert turned is not None
    return turned


def scales_of(k_cache: torch.Tensor, k_descale: Any, v_descale: Any) -> dict[str, torch.Tensor]:
    """What cache_append divides by, of a cache of 8 bits."""
    return {field: _scale(field, given, k_cache) for field, given in (("k_scale", k_descale), ("v_scale", v_descale)) if given is not None}


def _scale(field: str, given: Any, k_cache: torch.Tensor) -> torch.Tensor:
    if k_cache.dtype not in _dispatch.CACHES:
        raise InvalidArgument(f"{field.replace('scale', 'descale')}: given beside a cache of {k_cache.dtype}; accepted: a cache of 8 bits")
    if isinstance(given, (int, float)):
        _check_divisors(field, [given])
        return torch.full((1,), given, dtype=torch.float32, device=k_cache.device)
    if can_be_read(given):
        _check_divisors(field, given.detach().reshape(-1).tolist())
    if given.numel() == 1 or (given.ndim == 2 and given.shape[0] == 1):
        return given.reshape(-1)  # type: ignore[no-any-return]
    if given.ndim == 1:
        return given  # type: ignore[no-any-return]
    raise InvalidArgument(f"{field.replace('scale', 'descale')}: shape {tuple(given.shape)}; accepted beside k: one number, or one for each kv head")


def _check_divisors(field: str, scales: list[float]) -> None:
    for scale in scales:
        if scale == 0 or not math.isfinite(scale):
            raise InvalidArgument(f"{field.replace('scale', 'descale')} = {scale:g}; accepted beside k: finite numbers other than 0, by which new keys and values are divided")


# ---- A longest length of 0


def check_no_rows(field: str, longest: Any, of: str, starts: torch.Tensor | None, lengths: torch.Tensor | None = None) -> None:
    """Where the longest sequence is said to have nothing, no sequence may have rows or keys. The operators take a 0 for a length that is not told,
    and so it counts where the numbers are a device's."""
    given = starts if lengths is None else lengths
    if isinstance(longest, bool) or not isinstance(longest, int) or longest != 0 or given is None or not can_be_read(given):
        return
    numbers = given.tolist()
    for index, number in enumerate(numbers):
        if lengths is not None and number > 0:
            raise InvalidArgument(f"{of}[{index}] = {number}; accepted: 0, as {field} = 0")
        if lengths is None and index and number > numbers[index - 1]:
            raise InvalidArgument(f"{of}[{index}] = {number}; accepted: {numbers[index - 1]} (after {numbers[index - 1]}, {field} = 0)")
