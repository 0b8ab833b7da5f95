// LLD reads and writes paths. The object goes in through a memfd; the result comes out through a pipe, because LLD
// replaces the file it writes to and a memfd cannot be replaced. A reader drains the pipe while LLD writes, so that no
// size of output can block it.
#include "codegen/link.h"

#include <fcntl.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/ArrayRef.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <format>
#include <mutex>
#include <string>
#include <thread>

#include "codegen/file_descriptor.h"

LLD_HAS_DRIVER(elf)

namespace wavejit::codegen {
namespace {

std::string path_of(const FileDescriptor& descriptor) { return std::format("/proc/self/fd/{}", descriptor.get()); }

}  // namespace

std::expected<Bytes, Failure> link_code_object(std::span<const char> object) {
  const FileDescriptor input(memfd_create("wavejit-object", MFD_CLOEXEC));
  if (!input) return fail(Status::internal, std::format("memfd_create: {}", std::strerror(errno)));
  if (!write_all(input, object)) return fail(Status::internal, std::format("memfd write: {}", std::strerror(errno)));

  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Status::internal, std::format("pipe: {}", std::strerror(errno)));
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);

  const std::string input_path = path_of(input);
  const std::string output_path = path_of(write_end);
  // -s: symbol names of a code object are in .dynsym; nothing else may depend on who linked it.
  const std::array<const char*, 10> arguments = {
      "ld.lld", "-shared",          "-m", "elf64_amdgpu",     "--no-mmap-output-file", "--threads=1",
      "-s",     input_path.c_str(), "-o", output_path.c_str()};
  Bytes output;
  std::jthread reader([&] { read_all(read_end, output); });
  std::string messages;
  bool linked = false;
  {
    static std::mutex one_link_at_a_time;
    const std::scoped_lock lock(one_link_at_a_time);
    llvm::raw_string_ostream stream(messages);
    linked = lld::elf::link(arguments, stream, stream, /*exitEarly=*/false, /*disableOutput=*/false);
    lld::CommonLinkerContext::destroy();
  }
  write_end.reset();  // end of file for the reader
  reader.join();
  if (!linked) {
    return fail(Status::internal, "LLD: " + messages.substr(0, messages.find('\n')));
  }
  return output;
}

}  // namespace wavejit::codegen
