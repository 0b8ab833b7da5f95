// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compile service: ORC with one session (compile_session.h), in which each kernel spec is a symbol.
//
// A lookup of the symbol materialises it: emit IR → compile layer (lowering.h) → object layer (link.h, inspection.h),
// on a contained thread. The symbol's address is that of the finished compile in this process's memory; nothing is ever
// executed. Callers that ask for the same spec at the same time share one compile; different specs compile in parallel.
// When the last caller has its answer the symbol is removed with everything it held.
//
// When a compile is lost (containment.h) its callers get Status::crashed and the session is abandoned: compiles already
// running in it finish there, later ones start in a new session.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/compiled.h"
#include "codegen/lowering.h"

namespace wavejit::codegen {

struct ServiceOptions {
  // Compile where: in this process, in a wavejit-compile process, or in this process because it is wavejit-compile.
  enum class Containment : std::uint8_t { inprocess, isolated, inside_isolated };
  Containment containment = Containment::inprocess;
  std::uint32_t time_limit_ms = 60'000;
  std::string compiler_program;  // empty: beside this library
  LoweringOptions lowering;      // tests only
};

class Service {
 public:
  explicit Service(ServiceOptions options);
  ~Service();  // waits for compiles under way
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::shared_ptr<const Compiled> compile(const Request& request);
  Compiled emit_ir(const Request& request);
  Compiled disassemble(std::span<const unsigned char> code_object);

  // Sessions given up so far, and symbols that the present one holds: for tests.
  unsigned abandoned_sessions() const;
  std::size_t live_symbols() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wavejit::codegen
