// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/simgpu/assembler/linker.h"

#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace wavejit::simgpu::test {

std::string link_shared(const std::string& input, const std::string& output) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  const std::array<const char*, 6> arguments = {"ld.lld",      "-shared", "--threads=1",
                                                input.c_str(), "-o",      output.c_str()};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const bool linked = lld::elf::link(arguments, stream, stream, /*exitEarly=*/false, /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!linked && messages.empty()) messages = "LLD says nothing of why";
  return linked ? std::string() : messages;
}

}  // namespace wavejit::simgpu::test
