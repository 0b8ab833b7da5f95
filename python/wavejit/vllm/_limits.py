# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the backend cannot do, asked before a model loads: on which target, of which layer, and what would do it.

No list of head dims or formats stands here. A layer is a problem descriptor, and `wavejit.explain` says whether a kernel does it.
"""
from __future__ import annotations

import functools
import importlib
import re
from typing import Any

import torch
from vllm.platforms import current_platform

from .. import _device, _offline
from .._errors import Error
from ._lines import Kind, line

# vLLM's names of a cache's type, as wavejit has them. Formats of 8 bits have another encoding on gfx942.
DTYPES = {torch.float16: "fp16", torch.bfloat16: "bf16"}
CACHES = {"auto": "", "float16": "fp16", "bfloat16": "bf16", "fp8": "e4m3", "fp8_e4m3": "e4m3", "fp8_e5m2": "e5m2",
          "fp8_per_token_head": "e4m3", "int8_per_token_head": "i8"}  # fmt: skip
# Formats in which each head of a token has a scale of its own, beside its numbers.
OF_TOKENS = ("fp8_per_token_head", "int8_per_token_head")
FNUZ = ("gfx942",)


@functools.cache
def target() -> str | None:
    """The GPU's architecture, without opening it: vLLM asks in processes that fork afterwards. None where nobody knows."""
    if current_platform.is_cpu():
        found = re.search("gfx[0-9a-f]+", _device.chosen(None))
    else:
        try:
            found = re.search("gfx[0-9a-f]+", str(getattr(importlib.import_module("vllm.platforms.rocm"), "_GCN_ARCH", "")))
        except ImportError:
            found = None
    return found[0] if found else None


def others() -> str:
    """Which backend has more."""
    return "CPU_ATTN" if current_platform.is_cpu() else "TRITON_ATTN"


def cache_format(kv_cache_dtype: str | None) -> str:
    """The format of a cache of 8 bits; "" where it has the queries' type. A name that is not in CACHES is none."""
    name = CACHES[kv_cache_dtype or "auto"]
    if name in ("", *DTYPES.values()):
        return ""
    return f"{name}_fnuz" if name != "i8" and target() in FNUZ else name


def output_format() -> str:
    """The format of an output in 8 bits: what vLLM calls fp8 on this target."""
    return "e4m3_fnuz" if target() in FNUZ else "e4m3"


def without_a_kernel(kind: Kind, page: int = 16) -> str | None:
    """None, or why no kernel does such a layer."""
    return refusal(re.sub(r"(?<=\.\.)\d+", "64", line(kind, 2, 64, 64, page)).replace("1..64", "1", 1).replace("0..64", "64", 1), others())


def refusal(asked: str, who: str) -> str | None:
    """None, or why no kernel does this line, and who may."""
    known, here = _offline.targets(), target()
    if here is not None and here not in known:
        return _refusal_of_target(here, known, who)
    refusals = []
    for name in [here] if here is not None else known:
        try:
            _offline.explain(asked, name)
        except Error as error:
            refusals.append(error.detail)
    if len(refusals) < (1 if here is not None else len(known)):
        return None
    return f"{refusals[0]} (asked: {asked}); {who} may have it"


def _refusal_of_target(here: str, known: list[str], who: str) -> str:
    """A target that some operations of wavejit's have kernels for is told apart from one that none has."""
    told = [line.split("; ") for line in _offline.supported() if line.startswith(f"{here} ")]
    if not told:
        return f"{here}: wavejit has kernels for {', '.join(dict.fromkeys(line.split()[0] for line in _offline.supported() if line.startswith('gfx')))}; {who} runs there"
    missing = [words[0].rpartition(" ")[2] for words in told if len(words) > 1 and "has no kernels for" in words[1]]
    return f"{here}: wavejit.vllm serves {', '.join(known)}, since {' and '.join(missing)} have no kernels for {here}; {who} runs there, and so do wavejit.torch's calls"


def reasons_of_layer(words: dict[str, Any], dtype: torch.dtype) -> list[str]:
    """Why a layer with these words of vLLM's is refused; empty if it is not."""
    found = []
    if words["attn_type"] != "decoder":
        found.append(f"attention of type {words['attn_type']}: wavejit.vllm has decoders; {others()} has it")
    window = window_of(words["sliding_window"])
    if window is not None and window < 1:
        return [*found, f"sliding_window {window}: accepted are a number of keys from 1 on; None, 0 and -1 for no window"]
    if words.get("use_alibi_sqrt"):
        found.append(f"use_alibi_sqrt: wavejit has slopes that are linear in the distance; {others()} has it")
    if words.get("chunk_lookback", -1) > -1:
        found.append("chunk_lookback: wavejit has none; TRITON_ATTN has it")
    if dtype not in DTYPES:
        return [*found, f"dtype {dtype}: accepted with wavejit are float16 and bfloat16 (--dtype bfloat16); {others()} has it"]
    cache = words["kv_cache_dtype"]
    if cache not in CACHES or CACHES[cache] in set(DTYPES.values()) - {DTYPES[dtype]}:
        return [*found, f"kv_cache_dtype {cache}: accepted with wavejit are {', '.join(CACHES)} (--kv-cache-dtype auto); {others()} may have it"]
    if cache_format(cache) and words["head_size"] % 16:
        found.append(f"head_size {words['head_size']} in a cache of 8 bits: accepted are multiples of 16 there (--kv-cache-dtype auto)")
    refusal = None if found else without_a_kernel(kind_of(words, dtype))
    return found if refusal is None else [*found, refusal]


def reasons_of_ranks(words: dict[str, Any]) -> list[str]:
    """Why ranks cannot share the keys of such a layer. What a rank has are keys by number, whose places in the sequence kernels do not know."""
    without = "accepted without it (--decode-context-parallel-size 1)"
    given = {"sliding_window": window_of(words["sliding_window"]), "alibi_slopes": words["alibi_slopes"], "sinks": words["sinks"]}
    found = [f"{name} where ranks share keys: {without}" for name, value in given.items() if value is not None]
    if words["num_kv_heads"] != 1:
        found.append(f"num_kv_heads {words['num_kv_heads']} of a rank where ranks share keys: accepted is 1 (more ranks of --tensor-parallel-size than kv heads)")
    return found


def window_of(sliding_window: int | None) -> int | None:
    """How many keys a row sees, its own included; None: all. Configurations say "no window" by 0 and -1, too."""
    return None if sliding_window in (None, 0, -1) else sliding_window


def kind_of(words: dict[str, Any], dtype: torch.dtype) -> Kind:
    window = window_of(words["sliding_window"])
    return Kind(DTYPES[dtype], words["num_heads"], words["num_kv_heads"], words["head_size"], words.get("head_size_v") or words["head_size"],
                None if window is None else window - 1, float(words["logits_soft_cap"] or 0.0), words["sinks"] is not None,
                words["alibi_slopes"] is not None, cache_format(words["kv_cache_dtype"]), words["kv_cache_dtype"] in OF_TOKENS)
