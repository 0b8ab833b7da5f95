// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// XLA's foreign-function interface as far as this uses it: what XLA hands to a handler, and what it asks XLA for.
//
// It is an interface of C whose structs begin with their size and grow at their end. So nothing of JAX is needed to
// compile this, and one build serves several jaxlibs; tests hold these declarations against the headers of JAX 0.9.1's
// and 0.12.0's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::python::xla {

inline constexpr int major_version = 0;
inline constexpr int newest_minor_version = 5;  // that this was held against

enum Dtype : std::int32_t {
  boolean = 1,
  int8 = 2,
  int32 = 4,
  uint8 = 6,
  float16 = 10,
  float32 = 11,
  bfloat16 = 16,
  float8_e5m2 = 19,
  float8_e4m3fn = 20,
  float8_e5m2fnuz = 24,
  float8_e4m3fnuz = 25,
};

enum ErrorCode : std::int32_t {
  invalid_argument = 3,
  not_found = 5,
  resource_exhausted = 8,
  failed_precondition = 9,
  unimplemented = 12,
  internal_error = 13,
};

struct Error;
struct Context;
struct Future;

struct Extension {
  std::size_t size;
  std::int32_t type;
  Extension* next;
};
inline constexpr std::int32_t metadata_extension = 1;

struct Version {
  std::size_t size;
  Extension* extensions;
  int major_number;
  int minor_number;
};
struct Metadata {
  std::size_t size;
  Version version;
  std::uint32_t traits;
  std::int64_t state_type;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Buffer {
  std::size_t size;
  Extension* extensions;
  std::int32_t dtype;
  void* data;
  std::int64_t rank;
  std::int64_t* dims;
};

struct Buffers {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  std::int32_t* types;
  void** buffers;
};

struct Text {
  const char* begin;
  std::size_t length;
};
struct Scalar {
  std::int32_t dtype;
  void* value;
};
inline constexpr std::int32_t scalar_attribute = 3;

// In the order of their names.
struct Attributes {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  std::int32_t* types;
  Text** names;
  void** attributes;
};

struct ErrorArguments {
  std::size_t size;
  Extension* extensions;
  const char* message;
  std::int32_t code;
};
struct DestroyArguments {
  std::size_t size;
  Extension* extensions;
  Error* error;
};
struct StreamArguments {
  std::size_t size;
  Extension* extensions;
  Context* context;
  void* stream;  // found
};
struct MemoryArguments {
  std::size_t size;
  Extension* extensions;
  Context* context;
  std::size_t bytes;
  std::size_t alignment;
  void* memory;  // found; XLA takes it back when the handler returns, in the order of its stream
};
struct OrdinalArguments {
  std::size_t size;
  Extension* extensions;
  Context* context;
  std::int32_t ordinal;  // found
};

using Unused = void (*)();

struct Functions {
  std::size_t size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*make_error)(ErrorArguments*);
  Unused error_details;
  void (*destroy_error)(DestroyArguments*);
  Unused register_handler;
  Error* (*stream)(StreamArguments*);
  Unused register_type;
  Unused context_value;
  Unused set_state;
  Unused state;
  Error* (*allocate)(MemoryArguments*);
  Unused free;
  Unused schedule;
  Unused threads;
  Unused make_future;
  Unused set_available;
  Unused set_error;
  Unused run;
  Error* (*ordinal)(OrdinalArguments*);
};

struct Frame {
  std::size_t size;
  Extension* extensions;
  const Functions* functions;
  Context* context;
  std::int32_t stage;
  Buffers operands;
  Buffers results;
  Attributes attributes;
  Future* future;
};

using Handler = Error*(Frame*);

}  // namespace wavejit::python::xla
