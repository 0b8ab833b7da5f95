// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Holds the declarations of xla_ffi.h against those that jaxlib brings. Read by a compiler, never linked.
#include <type_traits>

#include "xla/ffi/api/c_api.h"
#include "xla_ffi.h"

namespace xla = wavejit::python::xla;

static_assert(XLA_FFI_API_MAJOR == xla::major_version);
static_assert(XLA_FFI_API_MINOR <= xla::newest_minor_version, "a newer interface: read what changed, then name it");

#define SAME_PLACE(OURS, ours, THEIRS, theirs)                     \
  static_assert(offsetof(OURS, ours) == offsetof(THEIRS, theirs)); \
  static_assert(sizeof(OURS::ours) == sizeof(THEIRS::theirs))

SAME_PLACE(xla::Extension, type, XLA_FFI_Metadata_Extension, extension_base.type);
SAME_PLACE(xla::MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME_PLACE(xla::Version, major_number, XLA_FFI_Api_Version, major_version);
SAME_PLACE(xla::Version, minor_number, XLA_FFI_Api_Version, minor_version);
SAME_PLACE(xla::Metadata, version, XLA_FFI_Metadata, api_version);
SAME_PLACE(xla::Metadata, traits, XLA_FFI_Metadata, traits);
SAME_PLACE(xla::Buffer, dtype, XLA_FFI_Buffer, dtype);
SAME_PLACE(xla::Buffer, data, XLA_FFI_Buffer, data);
SAME_PLACE(xla::Buffer, rank, XLA_FFI_Buffer, rank);
SAME_PLACE(xla::Buffer, dims, XLA_FFI_Buffer, dims);
SAME_PLACE(xla::Buffers, count, XLA_FFI_Args, size);
SAME_PLACE(xla::Buffers, buffers, XLA_FFI_Args, args);
SAME_PLACE(xla::Buffers, count, XLA_FFI_Rets, size);
SAME_PLACE(xla::Buffers, buffers, XLA_FFI_Rets, rets);
SAME_PLACE(xla::Text, begin, XLA_FFI_ByteSpan, ptr);
SAME_PLACE(xla::Text, length, XLA_FFI_ByteSpan, len);
SAME_PLACE(xla::Scalar, dtype, XLA_FFI_Scalar, dtype);
SAME_PLACE(xla::Scalar, value, XLA_FFI_Scalar, value);
SAME_PLACE(xla::Attributes, count, XLA_FFI_Attrs, size);
SAME_PLACE(xla::Attributes, types, XLA_FFI_Attrs, types);
SAME_PLACE(xla::Attributes, names, XLA_FFI_Attrs, names);
SAME_PLACE(xla::Attributes, attributes, XLA_FFI_Attrs, attrs);
SAME_PLACE(xla::Frame, extensions, XLA_FFI_CallFrame, extension_start);
SAME_PLACE(xla::Frame, functions, XLA_FFI_CallFrame, api);
SAME_PLACE(xla::Frame, context, XLA_FFI_CallFrame, ctx);
SAME_PLACE(xla::Frame, operands, XLA_FFI_CallFrame, args);
SAME_PLACE(xla::Frame, results, XLA_FFI_CallFrame, rets);
SAME_PLACE(xla::Frame, attributes, XLA_FFI_CallFrame, attrs);
SAME_PLACE(xla::ErrorArguments, message, XLA_FFI_Error_Create_Args, message);
SAME_PLACE(xla::ErrorArguments, code, XLA_FFI_Error_Create_Args, errc);
SAME_PLACE(xla::DestroyArguments, error, XLA_FFI_Error_Destroy_Args, error);
SAME_PLACE(xla::StreamArguments, stream, XLA_FFI_Stream_Get_Args, stream);
SAME_PLACE(xla::MemoryArguments, bytes, XLA_FFI_DeviceMemory_Allocate_Args, size);
SAME_PLACE(xla::MemoryArguments, alignment, XLA_FFI_DeviceMemory_Allocate_Args, alignment);
SAME_PLACE(xla::MemoryArguments, memory, XLA_FFI_DeviceMemory_Allocate_Args, data);
SAME_PLACE(xla::OrdinalArguments, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
SAME_PLACE(xla::Functions, make_error, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME_PLACE(xla::Functions, destroy_error, XLA_FFI_Api, XLA_FFI_Error_Destroy);
SAME_PLACE(xla::Functions, stream, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME_PLACE(xla::Functions, allocate, XLA_FFI_Api, XLA_FFI_DeviceMemory_Allocate);
SAME_PLACE(xla::Functions, ordinal, XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);

static_assert(xla::metadata_extension == XLA_FFI_Extension_Metadata);
static_assert(xla::scalar_attribute == XLA_FFI_AttrType_SCALAR);
static_assert(int{xla::boolean} == XLA_FFI_DataType_PRED);
static_assert(int{xla::int8} == XLA_FFI_DataType_S8 && int{xla::int32} == XLA_FFI_DataType_S32);
static_assert(int{xla::float16} == XLA_FFI_DataType_F16 && int{xla::bfloat16} == XLA_FFI_DataType_BF16);
static_assert(int{xla::float32} == XLA_FFI_DataType_F32 && int{xla::uint8} == XLA_FFI_DataType_U8);
static_assert(int{xla::float8_e4m3fn} == XLA_FFI_DataType_F8E4M3FN);
static_assert(int{xla::float8_e5m2} == XLA_FFI_DataType_F8E5M2);
static_assert(int{xla::float8_e4m3fnuz} == XLA_FFI_DataType_F8E4M3FNUZ);
static_assert(int{xla::float8_e5m2fnuz} == XLA_FFI_DataType_F8E5M2FNUZ);
static_assert(int{xla::invalid_argument} == XLA_FFI_Error_Code_INVALID_ARGUMENT);
static_assert(int{xla::not_found} == XLA_FFI_Error_Code_NOT_FOUND);
static_assert(int{xla::resource_exhausted} == XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
static_assert(int{xla::failed_precondition} == XLA_FFI_Error_Code_FAILED_PRECONDITION);
static_assert(int{xla::unimplemented} == XLA_FFI_Error_Code_UNIMPLEMENTED);
static_assert(int{xla::internal_error} == XLA_FFI_Error_Code_INTERNAL);
