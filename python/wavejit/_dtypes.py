# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types: their names, sizes, and what C, DLPack and numpy call them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

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
INT64 = DType("int64", 0, 0, 64, "int64")  # of slots and positions alone
# Elements of 8 bits. The same byte is another number in another of them: nothing takes one for the other.
E4M3 = DType("e4m3", 4, 10, 8, "uint8", ("float8_e4m3fn",))
E5M2 = DType("e5m2", 5, 12, 8, "uint8", ("float8_e5m2",))
E4M3_FNUZ = DType("e4m3_fnuz", 6, 11, 8, "uint8", ("float8_e4m3fnuz",))
E5M2_FNUZ = DType("e5m2_fnuz", 7, 13, 8, "uint8", ("float8_e5m2fnuz",))
EIGHT_BITS = (E4M3, E5M2, E4M3_FNUZ, E5M2_FNUZ)
# q and k may have it beside v of 16 bits, or k and v.
INT8 = DType("int8", 8, 0, 8, "int8")
CACHES = (*EIGHT_BITS, INT8)  # of k and v beside wider queries
WRITTEN = (E4M3, E4M3_FNUZ, INT8)  # of out, beside o_scale
ALL = (FP16, BF16, FP32, INT32, *EIGHT_BITS, INT8)
ELEMENTS = (FP16, BF16, FP32)
RESULTS = (FP32, *WRITTEN)  # of out beside the type of q
NARROW = (FP16, BF16)  # of q, k and v
QUERIES = (*NARROW, E4M3)  # of attention_forward
INDEXED = (FP16, BF16, E4M3, E4M3_FNUZ)  # of the indexer's queries and keys
BYTES = ((1, 8, 1), (0, 8, 1))  # DLPack's integers
_BY_NAME = {name: dtype for dtype in ALL for name in (dtype.name, *dtype.aliases)}
_BY_CODE = {(dtype.code, dtype.bits): dtype for dtype in (*ALL, INT64)}
# What else DLPack has a name for (dlpack.h); nothing here takes them.
_OF_DLPACK_ONLY = {7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 14: "float8_e8m0fnu", 15: "float6_e2m3fn", 16: "float6_e3m2fn",
                   17: "float4_e2m1fn"}


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


def widened(bits: Any, dtype: DType) -> Any:
    """Elements of 8 bits in fp32, exactly: numpy's uint8 → float32."""
    import numpy

    if dtype is INT8:
        return bits.view(numpy.int8).astype(numpy.float32)
    mantissa_bits = 3 if dtype in (E4M3, E4M3_FNUZ) else 2
    bytes_ = numpy.arange(256)
    mantissa, exponent = bytes_ & ((1 << mantissa_bits) - 1), (bytes_ & 0x7F) >> mantissa_bits
    fnuz = dtype in (E4M3_FNUZ, E5M2_FNUZ)
    bias = (1 << (6 - mantissa_bits)) - (0 if fnuz else 1)
    values = numpy.ldexp(mantissa + ((exponent > 0) << mantissa_bits), numpy.maximum(exponent, 1) - bias - mantissa_bits)
    if fnuz:
        values[0x80] = numpy.nan
    elif dtype is E4M3:
        values[[0x7F, 0xFF]] = numpy.nan
    else:
        top = exponent == 31
        values[top] = numpy.where(mantissa[top] == 0, numpy.inf, numpy.nan)
    return numpy.where(bytes_ < 0x80, values, -values).astype(numpy.float32)[bits]


def eight_bits(given: Any) -> DType | None:
    """The type of 8 bits that an array says it has, numpy's with ml_dtypes, torch's, a DeviceArray's; None: another type, or none."""
    found = _told(given)
    return found if found in EIGHT_BITS else None


def of_cache(given: Any) -> DType | None:
    """The same of k and v, whose integers are elements, too."""
    found = _told(given)
    return found if found in CACHES else None


Known = TypeVar("Known", DType, "DType | None")


def cache_type(k: Any, element: Known, cache_dtype: Any, wide: tuple[DType, ...]) -> DType | Known:
    """The type of k and v: what the caller says, what k says of 8 bits, else q's. `wide`: the types of 16 bits that are taken."""
    if cache_dtype is not None:
        return named(cache_dtype, "cache_dtype", (*wide, *CACHES))
    return of_cache(k) or element


def is_integer(given: Any) -> bool:
    """Whether an array says that its elements are integers of 8 bits."""
    return _told(given) is INT8


def is_fp32(given: Any) -> bool:
    """Whether an array says that its elements are f32."""
    return _told(given) is FP32


def _told(given: Any) -> DType | None:
    told = getattr(given, "dtype", "")
    name = told if isinstance(told, str) else getattr(told, "name", None) or str(told)
    return _BY_NAME.get(name.removeprefix("torch."))


def of_dlpack(code: int, bits: int, lanes: int, field: str, accepted: Iterable[DType] = ALL) -> DType:
    found = _BY_CODE.get((code, bits)) if lanes == 1 else None
    if (code, bits, lanes) in BYTES:
        accepted = tuple(accepted)
        if len(accepted) == 1 and accepted[0] in EIGHT_BITS:  # the caller says what the bytes are
            return accepted[0]
    if found is None:
        kinds = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}
        name = _OF_DLPACK_ONLY.get(code) or f"{kinds.get(code, f'kind {code} of ')}{bits}"
        raise InvalidArgument(f"{field}: dtype {name}{f'x{lanes}' if lanes != 1 else ''}; accepted: {names_of(accepted)}")
    return found
