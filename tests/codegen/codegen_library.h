// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libwavejit_codegen.so as the runtime sees it: opened by path, one symbol, a table.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen_api.h"

namespace wavejit::codegen {

const struct wavejit_codegen_table& library();

// A service and its answers, owned.
class TableService {
 public:
  explicit TableService(int containment = WAVEJIT_CODEGEN_INPROCESS, const char* program = nullptr,
                        unsigned time_limit_ms = 0);
  ~TableService();
  TableService(const TableService&) = delete;
  TableService& operator=(const TableService&) = delete;
  wavejit_codegen_service* get() const { return service_; }

 private:
  wavejit_codegen_service* service_ = nullptr;
};

struct Answer {
  int status = -1;
  std::string detail;
  std::vector<unsigned char> bytes;
  wavejit_codegen_facts facts = {};
  std::uint64_t nanoseconds = 0;  // all phases
};

Answer compile(const TableService& service, const std::string& spec);
Answer compile_ir(const TableService& service, const std::string& target, const std::string& ir,
                  const char* lowering = "llvm");

// Every combination of the words that change code which the target supports.
std::vector<std::string> supported_specs(const char* lowering = "llvm");

}  // namespace wavejit::codegen
