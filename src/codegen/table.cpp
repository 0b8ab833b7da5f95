// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/table.h"

#include <atomic>
#include <cstring>
#include <format>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codegen/comgr.h"
#include "codegen/generator_id.h"
#include "codegen/isolated.h"
#include "codegen/service.h"

struct wavejit_codegen_service {
  wavejit::codegen::Service service;
};

namespace wavejit::codegen {
namespace {

// What lowering_identity must know of the services around it: a process that is wavejit-compile answers for comgr
// itself, others ask the program that their services use.
std::atomic<bool> is_isolated_process = false;
std::mutex program_mutex;
std::string known_program;

void copy_text(char* to, std::size_t capacity, std::string_view text) {
  if (!to || capacity == 0) return;
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

wavejit_codegen_service* create(const wavejit_codegen_options* options, char* error, std::size_t capacity) {
  const auto refuse = [&](const std::string& text) -> wavejit_codegen_service* {
    copy_text(error, capacity, text);
    return nullptr;
  };
  wavejit_codegen_options given = {};
  if (options) {
    if (options->size < sizeof(std::size_t) + sizeof(std::int32_t) || options->size > 4096) {
      return refuse(std::format("options.size is {}; sizeof(struct wavejit_codegen_options) = {} is expected",
                                options->size, sizeof given));
    }
    std::memcpy(&given, options,
                std::min(options->size, sizeof given));  // a caller of an older header knows fewer fields
  }
  ServiceOptions service_options;
  switch (given.containment) {
    case WAVEJIT_CODEGEN_INPROCESS:
      service_options.containment = ServiceOptions::Containment::inprocess;
      break;
    case WAVEJIT_CODEGEN_ISOLATED:
      service_options.containment = ServiceOptions::Containment::isolated;
      break;
    case WAVEJIT_CODEGEN_INSIDE:
      service_options.containment = ServiceOptions::Containment::inside_isolated;
      is_isolated_process = true;
      break;
    default:
      return refuse(std::format("options.containment is {}; 0 (inprocess), 1 (isolated) and 2 (inside) are accepted",
                                given.containment));
  }
  if (given.time_limit_ms != 0) service_options.time_limit_ms = given.time_limit_ms;
  if (given.compiler_program) {
    service_options.compiler_program = given.compiler_program;
    const std::scoped_lock lock(program_mutex);
    known_program = given.compiler_program;
  }
  try {
    return new wavejit_codegen_service{Service(std::move(service_options))};
  } catch (const std::exception& exception) {
    return refuse(exception.what());
  }
}

void destroy(wavejit_codegen_service* service) { delete service; }

// Hands a finished compile to the caller; the owner keeps its bytes alive until release().
void fill(wavejit_codegen_result* result, std::shared_ptr<const Compiled> compiled) {
  wavejit_codegen_result filled = {};
  filled.size = sizeof filled;
  filled.status = static_cast<std::int32_t>(compiled->status);
  filled.detail = compiled->detail.c_str();
  if (compiled->status == Status::ok) {
    filled.code_object = compiled->bytes.data();
    filled.code_object_bytes = compiled->bytes.size();
    filled.facts = compiled->facts;
  }
  filled.facts.size = sizeof filled.facts;
  filled.emit_ns = compiled->times.emit_ns;
  filled.lower_ns = compiled->times.lower_ns;
  filled.link_ns = compiled->times.link_ns;
  filled.inspect_ns = compiled->times.inspect_ns;
  filled.owner = new std::shared_ptr<const Compiled>(std::move(compiled));
  *result = filled;
}

void fill_failure(wavejit_codegen_result* result, Status status, const char* static_detail) {
  *result = {};
  result->size = sizeof *result;
  result->status = static_cast<std::int32_t>(status);
  result->detail = static_detail;
  result->facts.size = sizeof result->facts;
}

// No exception crosses the C boundary.
template <typename Work>
void answer(wavejit_codegen_result* result, const Work& work) {
  if (!result) return;
  try {
    fill(result, work());
  } catch (const std::exception&) {
    fill_failure(result, Status::internal, "out of memory");
  }
}

void compile(wavejit_codegen_service* service, const char* spec_text, wavejit_codegen_result* result) {
  if (!service || !spec_text) return fill_failure(result, Status::invalid, "service and spec_text must not be null");
  answer(result,
         [&] { return service->service.compile({.source = Request::Source::spec, .text = spec_text, .target = {}}); });
}

void compile_ir(wavejit_codegen_service* service, const char* target, const char* lowering, const char* ir_text,
                wavejit_codegen_result* result) {
  if (!service || !target || !lowering || !ir_text)
    return fill_failure(result, Status::invalid, "no argument may be null");
  const std::string_view word = lowering;
  if (word != "llvm" && word != "comgr")
    return fill_failure(result, Status::invalid, "lowering: llvm and comgr are accepted");
  answer(result, [&] {
    return service->service.compile({.source = Request::Source::ir,
                                     .text = ir_text,
                                     .target = target,
                                     .lowering = word == "comgr" ? Lowering::comgr : Lowering::llvm});
  });
}

void release(wavejit_codegen_result* result) {
  if (!result) return;
  delete static_cast<std::shared_ptr<const Compiled>*>(result->owner);
  fill_failure(result, Status::internal, "released");
}

void emit_ir(wavejit_codegen_service* service, const char* spec_text, wavejit_codegen_result* result) {
  if (!service || !spec_text) return fill_failure(result, Status::invalid, "service and spec_text must not be null");
  answer(result, [&] {
    return std::make_shared<const Compiled>(
        service->service.emit_ir({.source = Request::Source::spec, .text = spec_text, .target = {}}));
  });
}

void disassemble(wavejit_codegen_service* service, const unsigned char* code_object, std::size_t bytes,
                 wavejit_codegen_result* result) {
  if (!service || !code_object)
    return fill_failure(result, Status::invalid, "service and code_object must not be null");
  answer(result,
         [&] { return std::make_shared<const Compiled>(service->service.disassemble(std::span(code_object, bytes))); });
}

std::optional<std::string> find_identity(const std::string& lowering) {
  if (lowering == "llvm") return std::format("llvm={}", llvm_version());
  if (lowering != "comgr") return std::nullopt;
  if (is_isolated_process) {
    auto identity = comgr::identity();
    return identity ? std::optional(*identity) : std::nullopt;
  }
  std::string program;
  {
    const std::scoped_lock lock(program_mutex);
    program = known_program;
  }
  auto identity = isolated::lowering_identity(lowering, {.program = program});
  return identity ? std::optional(*identity) : std::nullopt;
}

// Found once per lowering: comgr's takes a process. The strings live as long as the library.
const char* lowering_identity(const char* lowering) {
  if (!lowering) return nullptr;
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::optional<std::string>>;
  try {
    const std::scoped_lock lock(mutex);
    auto entry = known->find(lowering);
    if (entry == known->end()) entry = known->emplace(lowering, find_identity(lowering)).first;
    return entry->second ? entry->second->c_str() : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

const char* generator_of(const char* family) {
  if (!family) return nullptr;
  const std::string_view id = generator_id(family);
  return id.empty() ? nullptr : id.data();  // NOLINT(bugprone-suspicious-stringview-data-usage): a literal
}

}  // namespace

const struct wavejit_codegen_table* table(std::uint32_t abi) {
  static const struct wavejit_codegen_table functions = {
      .abi = WAVEJIT_CODEGEN_ABI,
      .reserved = 0,
      .generator_id = generator_of,
      // A literal (generator_id.h).
      .llvm_version = llvm_version().data(),  // NOLINT(bugprone-suspicious-stringview-data-usage)
      .create = create,
      .destroy = destroy,
      .compile = compile,
      .release = release,
      .emit_ir = emit_ir,
      .disassemble = disassemble,
      .lowering_identity = lowering_identity,
      .compile_ir = compile_ir,
  };
  return abi == WAVEJIT_CODEGEN_ABI ? &functions : nullptr;
}

}  // namespace wavejit::codegen
