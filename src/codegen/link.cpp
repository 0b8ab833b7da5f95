// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <format>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "codegen/containment.h"
#include "system/file_descriptor.h"

LLD_HAS_DRIVER(elf)

namespace wavejit::codegen {
namespace {

std::string path_of(const system::FileDescriptor& descriptor) {
  return std::format("/proc/self/fd/{}", descriptor.get());
}

// LLD keeps its state in globals: one link at a time, and none ever again once a link was lost in the middle of one.
class LinkerAccess {
 public:
  LinkerAccess() : lost_([](const std::string&) { end(State::lost); }) {
    std::unique_lock lock(mutex());
    changed().wait(lock, [] { return state() != State::busy; });
    usable_ = state() == State::free;
    if (usable_) state() = State::busy;
  }
  ~LinkerAccess() {
    if (usable_) end(State::free);
  }
  LinkerAccess(const LinkerAccess&) = delete;
  LinkerAccess& operator=(const LinkerAccess&) = delete;
  bool usable() const { return usable_; }

 private:
  enum class State : std::uint8_t { free, busy, lost };
  // Never destroyed: a lost link's thread may wait beyond the end of main.
  static std::mutex& mutex() {
    static auto* const instance = new std::mutex;
    return *instance;
  }
  static std::condition_variable& changed() {
    static auto* const instance = new std::condition_variable;
    return *instance;
  }
  static State& state() {
    static State instance = State::free;
    return instance;
  }
  static void end(State next) {
    const std::scoped_lock lock(mutex());
    state() = next;
    changed().notify_all();
  }

  bool usable_ = false;
  OnAbandon lost_;
};

// LLD signs its output in .comment, with a distribution's name or what LLD_VERSION says in the environment; the same
// spec shall give the same bytes everywhere. A script that only inserts leaves the default layout alone.
constexpr std::string_view discard_signature = "SECTIONS { /DISCARD/ : { *(.comment) } } INSERT AFTER .text;\n";

std::expected<system::FileDescriptor, Failure> memory_file(std::span<const char> contents) {
  system::FileDescriptor file(memfd_create("wavejit-link", MFD_CLOEXEC));
  if (!file || !system::write_all(file, contents)) {
    return fail(Status::internal, std::format("memfd: {}", std::strerror(errno)));
  }
  return file;
}

std::expected<void, Failure> link_paths(const std::string& input, const std::string& script,
                                        const std::string& output) {
  // The names that a loader needs are in .dynsym. AMD's HIP all the same refuses an image without the section .strtab
  // (hipErrorInvalidImage; clr's elf.cpp, "null sections(STRTAB)"), so that -s would be too much.
  const std::array<const char*, 13> arguments = {
      "ld.lld",      "-shared",      "--strip-debug", "--discard-all",
      "-m",          "elf64_amdgpu", "--threads=1",   "--no-mmap-output-file",
      "-T",          script.c_str(), input.c_str(),   "-o",
      output.c_str()};
  const LinkerAccess access;
  if (!access.usable()) return fail(Status::internal, "LLD was lost in the middle of a link; compile isolated instead");
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const bool linked = lld::elf::link(arguments, stream, stream, /*exitEarly=*/false, /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  if (!linked) return fail(Status::internal, "LLD: " + messages.substr(0, messages.find('\n')));
  return {};
}

}  // namespace

std::expected<Bytes, Failure> link_code_object(std::span<const char> object) {
  const auto input = memory_file(object);
  if (!input) return std::unexpected(input.error());
  const auto script = memory_file(discard_signature);
  if (!script) return std::unexpected(script.error());

  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Status::internal, std::format("pipe: {}", std::strerror(errno)));
  const system::FileDescriptor read_end(ends[0]);
  system::FileDescriptor write_end(ends[1]);

  Bytes output;
  std::jthread reader([&] { system::read_all(read_end, output); });
  auto linked = link_paths(path_of(*input), path_of(*script), path_of(write_end));
  write_end.reset();  // end of file for the reader
  reader.join();
  if (!linked) return std::unexpected(linked.error());
  return output;
}

}  // namespace wavejit::codegen
