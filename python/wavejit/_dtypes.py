# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types: their names, sizes, and what C, DLPack and numpy call them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ._errors import InvalidArgument


class DType(NamedTuple):
    """An element type. `c` is its number in wavejit.h (0: for lengths and tables only); code and bits are DLPack's."""

    name: str
    c: int
    code: int
    bits: int
    host: str  # what numpy computes with
    aliases: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        return self.bits // 8


FP16 = DType("fp16", 1, 2, 16, "float16", ("float16", "half"))
BF16 = DType("bf16", 2, 4, 16, "uint16", ("bfloat16",))
FP32 = DType("fp32", 3, 2, 32, "float32", ("float32", "float"))
INT32 = DType("int32", 0, 0, 32, "int32")
ALL = (FP16, BF16, FP32, INT32)
ELEMENTS = (FP16, BF16, FP32)
NARROW = (FP16, BF16)  # of q, k and v
_BY_NAME = {name: dtype for dtype in ALL for name in (dtype.name, *dtype.aliases)}
_BY_CODE = {(dtype.code, dtype.bits): dtype for dtype in ALL}
# What DLPack calls types of 8 bits and fewer (dlpack.h); nothing here takes them.
_OF_DLPACK_ONLY = {7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2",
           13: "float8_e5m2fnuz", 14: "float8_e8m0fnu", 15: "float6_e2m3fn", 16: "float6_e3m2fn", 17: "float4_e2m1fn"}  # fmt: skip


def names_of(dtypes: Iterable[DType]) -> str:
    return ", ".join(dtype.name for dtype in dtypes)


def named(given: Any, field: str = "dtype", accepted: Iterable[DType] = ALL) -> DType:
    """The type of "bf16", "bfloat16", a numpy or ml_dtypes type, a torch dtype."""
    if isinstance(given, DType):
        return given
    accepted = tuple(accepted)
    name = given if isinstance(given, str) else getattr(given, "name", None) or getattr(given, "__name__", None) or str(given)
    found = _BY_NAME.get(name.removeprefix("torch."))
    if found is None or found not in accepted:
        raise InvalidArgument(f"{field}: dtype {name if found is None else found.name}; accepted: {names_of(accepted)}")
    return found


def of_dlpack(code: int, bits: int, lanes: int, field: str, accepted: Iterable[DType] = ALL) -> DType:
    found = _BY_CODE.get((code, bits)) if lanes == 1 else None
    if found is None:
        kinds = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}
        name = _OF_DLPACK_ONLY.get(code) or f"{kinds.get(code, f'kind {code} of ')}{bits}"
        raise InvalidArgument(f"{field}: dtype {name}{f'x{lanes}' if lanes != 1 else ''}; accepted: {names_of(accepted)}")
    return found
