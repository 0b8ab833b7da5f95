# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of one query, each over other keys, become one result: `attention_merge`, its operators, and vLLM's `merge_attn_states`."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import _documented
from .._errors import Error, InvalidArgument, Unsupported
from . import _engines, _gradients, _dispatch
from ._operators import LIBRARY, tensors_only
from ._repeats import stand_once

if TYPE_CHECKING:
    Parts = Sequence[torch.Tensor] | torch.Tensor

WIDE = (torch.float32, torch.float16, torch.bfloat16)  # of parts


@_documented.with_rows_of("attention_merge")
def attention_merge(outs: Parts, lses: Parts, *, out: torch.Tensor | None = None, lse: torch.Tensor | None = None,
                    dtype: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Results of several calls over different keys of the same queries become that of one call over all keys: (out, lse).

    {outs}
    out, lse
        Yours, which may be one of the parts; None: new ones, out of `dtype`, or of the parts' own.

    As `wavejit.Engine.attention_merge`: one launch, parts in order, in f32; a part whose lse is −∞ changes nothing. Nothing of it has a gradient.
    torch.compile traces it as `torch.ops.wavejit.attention_merge`, or `…_out` where out or lse are yours.

    >>> import torch, wavejit.torch
    >>> _ = wavejit.torch.use("sim:gfx950")
    >>> ones, zeros = torch.ones(1, 2, 8, dtype=torch.bfloat16), torch.zeros(2, 1)
    >>> out, lse = wavejit.torch.attention_merge([ones, 3 * ones], [zeros, zeros])
    >>> out[0, 0, :3].tolist(), round(lse[0, 0].item(), 4)
    ([2.0, 2.0, 2.0], 0.6931)
    """
    stacked = isinstance(outs, torch.Tensor)
    if stacked != isinstance(lses, torch.Tensor):
        raise InvalidArgument("outs and lses: a tensor and a sequence; accepted: two sequences of tensors, or two tensors with a dimension of parts in front")
    given: tuple[list[Any], list[Any]] = ([outs], [lses]) if stacked else (list(outs), list(lses))
    if not given[0]:
        raise InvalidArgument("outs: no part; accepted: 1 to 8")
    if out is None and lse is None:
        return operator(*given, stacked=stacked, dtype=dtype)
    like, of_rows = _results(given[0][0], stacked)
    if out is None:
        out = given[0][0].new_empty(like, dtype=dtype)
    elif dtype not in (None, out.dtype):
        raise InvalidArgument(f"dtype: {dtype} beside out of {out.dtype}; accepted: out alone")
    if lse is None:
        lse = out.new_empty(of_rows, dtype=torch.float32)
    operator_out(*given, out, lse, stacked=stacked)
    return out, lse


def merge_attn_states(output: torch.Tensor, prefix_output: torch.Tensor, prefix_lse: torch.Tensor, suffix_output: torch.Tensor, suffix_lse: torch.Tensor,
                      output_lse: torch.Tensor | None = None, prefill_tokens_with_context: int | None = None,
                      output_scale: torch.Tensor | None = None) -> None:
    """vLLM's function: a prefix's result [tokens, heads, head dim] with LSE [heads, tokens], and a suffix's, into `output`. An LSE of +∞ counts
    as none, like −∞: some attention writes it where a row has no key.

    prefill_tokens_with_context
        Tokens from this one on have no prefix: what the suffix gave is copied. None: all have one.
    output_scale
        fp32 of one element, beside an `output` of float8: what its numbers count, more than 0. What is beyond the type's range is its greatest number.

    All of it that the host knows is checked before anything is written.

    >>> import torch, wavejit.torch
    >>> _ = wavejit.torch.use("sim:gfx950")
    >>> ones, zeros, out = torch.ones(1, 2, 8).half(), torch.zeros(2, 1), torch.empty(1, 2, 8).half()
    >>> wavejit.torch.merge_attn_states(out, ones, zeros, 5 * ones, zeros)
    >>> out[0, 0, 0].item()
    3.0
    """
    given = {"prefix_output": prefix_output, "prefix_lse": prefix_lse, "suffix_output": suffix_output, "suffix_lse": suffix_lse, "output_lse": output_lse}
    _check_states(output, {field: tensor for field, tensor in given.items() if tensor is not None})
    _check_scale(output, output_scale)
    tokens = output.shape[0]
    merged = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    if not isinstance(merged, (int, torch.SymInt)) or not 0 <= merged <= tokens:
        raise InvalidArgument(f"prefill_tokens_with_context = {merged}; accepted: 0 … {tokens}, the tokens of output, as an integer")
    result = output if output_scale is None else torch.empty_like(output, dtype=torch.float32)
    lse = None if output_lse is None else output_lse[:, :merged]
    if merged:
        lses = [sums[:, :merged].masked_fill(sums[:, :merged] == float("inf"), float("-inf")) for sums in (prefix_lse, suffix_lse)]
        try:
            attention_merge([prefix_output[:merged], suffix_output[:merged]], lses, out=result[:merged], lse=lse)
        except Error as error:
            raise _in_vllms_words(error) from None
    if merged < tokens:
        result[merged:].copy_(suffix_output[merged:])
        if output_lse is not None:
            output_lse[:, merged:].copy_(suffix_lse[:, merged:])
    if output_scale is not None:
        most = torch.finfo(output.dtype).max
        output.copy_((result * (1.0 / output_scale.reshape(()))).clamp_(-most, most).to(output.dtype))


def _check_states(output: torch.Tensor, given: dict[str, torch.Tensor]) -> None:
    """Checks the tensors of `merge_attn_states`: a part of what it writes is copied, and a copy takes other shapes and types without a word."""
    tensors_only({"output": output, **given})
    if output.ndim != 3:
        raise InvalidArgument(f"output: shape {tuple(output.shape)}; accepted: [tokens, heads, head dim]")
    tokens, heads, dim = output.shape
    part = given["prefix_output"].dtype
    for field, tensor in given.items():
        sizes = (heads, tokens) if field.endswith("lse") else (tokens, heads, dim)
        if tuple(tensor.shape) != sizes:
            raise InvalidArgument(f"{field}: shape {tuple(tensor.shape)}; accepted: {sizes}, as output has shape {tuple(output.shape)}")
        types = (torch.float32,) if field.endswith("lse") else WIDE if field == "prefix_output" else (part,)
        if tensor.dtype not in types:
            raise InvalidArgument(f"{field}: {tensor.dtype}; accepted: {', '.join(map(str, types))}" + (", as prefix_output" if field == "suffix_output" else ""))
        if tensor.device != output.device:
            raise InvalidArgument(f"{field}: a tensor on {tensor.device}; accepted: {output.device}, where output is")
    results = WIDE if part is torch.float32 else (part, torch.float32)
    if output.dtype not in (*results, *_dispatch.EIGHT_BITS):
        raise InvalidArgument(f"output: {output.dtype}; accepted beside parts of {part}: {', '.join(map(str, (*results, *_dispatch.EIGHT_BITS)))}")
    for field, tensor in (("output", output), *given.items()):
        if tensor.requires_grad and torch.is_grad_enabled():
            raise Unsupported(f"{field}: it requires grad; accepted: torch.no_grad(), or detach(): a merge of parts has no gradient")
        if field.startswith("output"):
            stand_once(field, tensor)


def _check_scale(output: torch.Tensor, scale: torch.Tensor | None) -> None:
    is_narrow = output.dtype in _dispatch.EIGHT_BITS
    if is_narrow != (scale is not None):
        raise InvalidArgument(f"output_scale: {'None' if scale is None else 'given'} beside output of {output.dtype}; accepted: "
                              f"{'a tensor of one element beside float8' if is_narrow else 'None'}")
    if scale is None:
        return
    tensors_only({"output_scale": scale})
    if scale.numel() != 1 or scale.dtype is not torch.float32:
        raise InvalidArgument(f"output_scale: {scale.dtype}, shape {tuple(scale.shape)}; accepted: torch.float32 of one element")
    if scale.device != output.device:
        raise InvalidArgument(f"output_scale: a tensor on {scale.device}; accepted: {output.device}, where output is")
    if not torch.compiler.is_compiling() and scale.is_cpu and _gradients.nothing_traces(scale):
        if not (0 < scale.item() < math.inf and bool(torch.isfinite(1.0 / scale).all())):
            raise InvalidArgument(f"output_scale = {scale.item():g}; accepted: a positive number, finite in fp32 as one over it is")


def _in_vllms_words(error: Error) -> Error:
    """What the engine says of two parts, by the arguments of `merge_attn_states`."""
    words = {"outs[0]": "prefix_output", "outs[1]": "suffix_output", "lses[0]": "prefix_lse", "lses[1]": "suffix_lse", "lse": "output_lse", "out": "output"}
    detail = re.sub(r"\b(?:outs|lses)\[[01]\]|^(?:out|lse)\b", lambda found: words[found[0]], error.detail)
    return type(error)(detail, error.status)


# ---- The operators

PARTS = "Tensor[] outs, Tensor[] lses"
LIBRARY.define(f"attention_merge({PARTS}, *, bool stacked=False, ScalarType? dtype=None) -> (Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
LIBRARY.define(f"attention_merge_out({PARTS}, Tensor(a!) out, Tensor(b!) lse, *, bool stacked=False) -> ()", tags=(torch.Tag.pt2_compliant_tag,))


def _results(first: torch.Tensor, stacked: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of out and of lse."""
    sizes = tuple(first.shape[1:] if stacked else first.shape)
    if len(sizes) not in (3, 4):
        raise InvalidArgument(f"outs: shape {tuple(first.shape)}; accepted: [tokens, heads, head dim] or [batch, tokens, heads, head dim], with stacks a dimension of parts in front")
    return sizes, (*sizes[:-3], sizes[-2], sizes[-3])


def _run(outs: list[torch.Tensor], lses: list[torch.Tensor], *, stacked: bool = False, dtype: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = _traced(outs, lses, stacked=stacked, dtype=dtype)
    _run_out(outs, lses, out, lse, stacked=stacked)
    return out, lse


def _run_out(outs: list[torch.Tensor], lses: list[torch.Tensor], out: torch.Tensor, lse: torch.Tensor, *, stacked: bool = False) -> None:
    first = outs[0]
    engine = _engines.of_device(first.device, "outs[0]")
    for name, tensors in (("outs", outs), ("lses", lses), ("out", [out]), ("lse", [lse])):
        for tensor in tensors:
            if tensor.device != first.device:
                raise InvalidArgument(f"{name}: a tensor on {tensor.device}; accepted: {first.device}, where the first part is")
    if 0 in first.shape[:-1]:
        return
    words: dict[str, Any] = {} if first.is_cpu else {"stream": _dispatch.current_stream(first.device)}
    taken = [tensor.detach() if first.is_cpu else _dispatch._array(engine, name, tensor.detach())
             for name, tensors in (("outs", outs), ("lses", lses), ("out", [out]), ("lse", [lse])) for tensor in tensors]
    parts: tuple[Any, Any] = (taken[: len(outs)], taken[len(outs) : -2])
    if stacked:
        parts = (parts[0][0], parts[1][0])
    engine.call("attention_merge", *parts, out=taken[-2], lse=taken[-1], **words).launch()


def _traced(outs: list[torch.Tensor], lses: list[torch.Tensor], *, stacked: bool = False, dtype: torch.dtype | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    sizes, of_rows = _results(outs[0], stacked)
    return outs[0].new_empty(sizes, dtype=dtype), outs[0].new_empty(of_rows, dtype=torch.float32)


def _without_gradients(beneath: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    def checked(outs: list[torch.Tensor], lses: list[torch.Tensor], *tensors: torch.Tensor, **words: Any) -> Any:
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*outs, *lses, *tensors)):
            raise Unsupported("attention_merge: a tensor that requires grad; accepted: none does, or torch.no_grad(): a merge of parts has no gradient")
        with torch._C._AutoDispatchBelowAutograd():
            return beneath()(outs, lses, *tensors, **words)

    return checked


_untraced: Any = torch.compiler.disable  # what is below an operator is not looked into
LIBRARY.impl("attention_merge", _untraced(_run), "CompositeExplicitAutograd")
LIBRARY.impl("attention_merge", _without_gradients(lambda: operator), "Autograd")
torch.library.register_fake("wavejit::attention_merge", _traced, lib=LIBRARY)
LIBRARY.impl("attention_merge_out", _untraced(_run_out), "CompositeExplicitAutograd")
LIBRARY.impl("attention_merge_out", _without_gradients(lambda: operator_out), "Autograd")
torch.library.register_fake("wavejit::attention_merge_out", lambda *_, **__: None, lib=LIBRARY)
operator: Callable[..., tuple[torch.Tensor, torch.Tensor]] = torch.ops.wavejit.attention_merge.default
operator_out: Callable[..., None] = torch.ops.wavejit.attention_merge_out.default
