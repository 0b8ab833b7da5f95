// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/code_object_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "tools/device_array.h"

namespace wavejit::tools {

namespace {

// HIP's functions as the simulated GPU exports them (hip_runtime_api.h): handles are pointers, errors are numbers.
using Load = int (*)(void** module, const char* path);
using Unload = int (*)(void* module);
using GetFunction = int (*)(void** function, void* module, const char* name);
using LaunchKernel = int (*)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned lds_bytes, void* stream, void** parameters,
                             void** extra);
using SetDevice = int (*)(int ordinal);
using ErrorName = const char* (*)(int error);

// HIP_LAUNCH_PARAM_BUFFER_POINTER, …_BUFFER_SIZE, …_END.
void* launch_word(std::uintptr_t number) { return std::bit_cast<void*>(number); }

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// "4096", "64KiB", "1MiB"
std::optional<std::uint64_t> bytes_of(std::string_view text) {
  std::uint64_t unit = 1;
  for (const auto& [suffix, factor] : {std::pair("KiB", 10), std::pair("MiB", 20), std::pair("GiB", 30)}) {
    if (!text.ends_with(suffix)) continue;
    unit = std::uint64_t{1} << static_cast<unsigned>(factor);
    text.remove_suffix(std::strlen(suffix));
    break;
  }
  const auto count = number_of<std::uint64_t>(text);
  if (!count || *count == 0 || *count > (std::uint64_t{1} << 40) / unit) return std::nullopt;
  return *count * unit;
}

// "64", "64,8", "64,8,2"
std::optional<std::array<unsigned, 3>> sizes_of(std::string_view text) {
  std::array<unsigned, 3> sizes = {1, 1, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t end = std::min(text.find(','), text.size());
    const auto size = number_of<unsigned>(text.substr(0, end));
    if (!size || *size == 0) return std::nullopt;
    sizes[i] = *size;
    if (end == text.size()) return sizes;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

template <typename Number>
bool put(KernelArgument& argument, std::string_view text) {
  const auto value = number_of<Number>(text);
  if (!value) return false;
  argument.bytes = sizeof(Number);
  std::memcpy(&argument.bits, &*value, sizeof(Number));
  return true;
}

// "buffer:1MiB", "i32:4", "f32:0.5"
std::optional<KernelArgument> argument_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view type = text.substr(0, colon);
  const std::string_view value = text.substr(colon + 1);
  KernelArgument argument;
  if (type == "buffer") {
    const auto bytes = bytes_of(value);
    if (!bytes) return std::nullopt;
    argument.buffer_bytes = *bytes;
    return argument;
  }
  const bool known =
      (type == "i32" && put<std::int32_t>(argument, value)) || (type == "u32" && put<std::uint32_t>(argument, value)) ||
      (type == "i64" && put<std::int64_t>(argument, value)) || (type == "u64" && put<std::uint64_t>(argument, value)) ||
      (type == "f32" && put<float>(argument, value)) || (type == "f64" && put<double>(argument, value));
  return known ? std::optional(argument) : std::nullopt;
}

Result<std::vector<KernelArgument>> arguments_of(std::string_view text) {
  std::vector<KernelArgument> arguments;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const auto argument = argument_of(text.substr(0, end));
    if (!argument) {
      return failed(ExitCode::usage,
                    fmt::format("'{}' is not accepted; buffer:<bytes>, i32:, u32:, i64:, u64:, f32:, f64:<value> are",
                                text.substr(0, end)));
    }
    arguments.push_back(*argument);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return arguments;
}

Result<std::vector<char>> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.good() && !file.eof()) return failed(ExitCode::file, fmt::format("{}: cannot be read", path));
  constexpr std::size_t least = 64;  // an ELF header
  if (bytes.size() < least) {
    return failed(ExitCode::file, fmt::format("{}: {} bytes are no code object", path, bytes.size()));
  }
  return bytes;
}

// Names of the kernels in a code object's metadata: what ends in ".kd" in its table of strings.
std::vector<std::string> kernel_names(std::span<const char> bytes) {
  constexpr std::string_view descriptor = ".kd";
  const std::string_view text(bytes.data(), bytes.size());
  std::vector<std::string> names;
  for (std::size_t at = text.find(descriptor); at != std::string_view::npos; at = text.find(descriptor, at + 1)) {
    if (at + descriptor.size() >= text.size() || text[at + descriptor.size()] != '\0') continue;
    const std::size_t before = text.rfind('\0', at);
    std::string name(text.substr(before + 1, at - before - 1));
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<std::string_view> CodeObjectCall::setting_names() {
  return {"kernel", "grid", "workgroup", "lds", "arguments"};
}

Result<bool> CodeObjectCall::set(const std::string& name, const std::string& value) {
  if (name == "kernel") {
    kernel = value;
  } else if (name == "grid" || name == "workgroup") {
    const auto sizes = sizes_of(value);
    if (!sizes)
      return failed(ExitCode::usage, fmt::format("'{}' is not accepted; one to three sizes are, as 64,8", value));
    (name == "grid" ? grid : workgroup) = *sizes;
  } else if (name == "lds") {
    const auto bytes = value == "0" ? std::optional<std::uint64_t>(0) : bytes_of(value);
    if (!bytes || *bytes > std::numeric_limits<unsigned>::max())
      return failed(ExitCode::usage, fmt::format("'{}' is not accepted; bytes are, as 65536 or 64KiB", value));
    lds_bytes = static_cast<unsigned>(*bytes);
  } else if (name == "arguments") {
    auto read = arguments_of(value);
    if (!read) return std::unexpected(read.error());
    arguments = std::move(*read);
  } else {
    return false;
  }
  return true;
}

Result<void> CodeObjectCall::run(wavejit_engine* engine, const SimulatedGpu& gpu) const {
  const auto image = read_file(path);
  if (!image) return std::unexpected(image.error());
  // From the file, not from memory: only so HIP knows where a damaged one ends.
  const auto load = gpu.find<Load>("hipModuleLoad");
  const auto unload = gpu.find<Unload>("hipModuleUnload");
  const auto get = gpu.find<GetFunction>("hipModuleGetFunction");
  const auto launch = gpu.find<LaunchKernel>("hipModuleLaunchKernel");
  const auto error_name = gpu.find<ErrorName>("hipGetErrorName");
  const auto set_device = gpu.find<SetDevice>("hipSetDevice");
  const auto open_devices = gpu.find<decltype(&wavejit_simgpu_open_devices)>("wavejit_simgpu_open_devices");
  if (set_device == nullptr || open_devices == nullptr || load == nullptr || unload == nullptr || get == nullptr ||
      launch == nullptr || error_name == nullptr)
    return failed(ExitCode::internal, "the simulated GPU lacks HIP's module functions");

  // The engine's device: the first of its target.
  int ordinal = 0;
  if (open_devices(wavejit_engine_target(engine), 1, &ordinal) != 0 || set_device(ordinal) != 0)
    return failed(ExitCode::device, fmt::format("no simulated {}", wavejit_engine_target(engine)));

  void* module = nullptr;
  if (const int error = load(&module, path.c_str()); error != 0) {
    return failed(ExitCode::device,
                  fmt::format("{}: {} does not load it ({})", path, wavejit_engine_target(engine), error_name(error)));
  }
  const std::vector<std::string> names = kernel_names(*image);
  const std::string chosen = kernel.empty() && names.size() == 1 ? names.front() : kernel;
  void* function = nullptr;
  if (chosen.empty() || get(&function, module, chosen.c_str()) != 0) {
    static_cast<void>(unload(module));
    return failed(ExitCode::usage, fmt::format("{}: {}; kernel=<name> is accepted with one of: {}", path,
                                               chosen.empty() ? "which kernel is meant is not clear"
                                                              : fmt::format("it has no kernel '{}'", chosen),
                                               list_of(names)));
  }
  // Arguments one after the other, each at a multiple of its own size.
  std::vector<char> packed;
  std::vector<DeviceArray> buffers;
  Result<void> outcome;
  for (const KernelArgument& argument : arguments) {
    packed.resize((packed.size() + argument.bytes - 1) / argument.bytes * argument.bytes);
    std::uint64_t bits = argument.bits;
    if (argument.buffer_bytes != 0) {
      auto buffer = DeviceArray::allocate(engine, argument.buffer_bytes);
      const std::vector<char> zeros(argument.buffer_bytes, 0);
      outcome = buffer ? buffer->copy_in(zeros.data()) : std::unexpected(buffer.error());
      if (!outcome) break;
      bits = std::bit_cast<std::uint64_t>(buffer->data());
      buffers.push_back(std::move(*buffer));
    }
    packed.resize(packed.size() + argument.bytes);
    std::memcpy(packed.data() + packed.size() - argument.bytes, &bits, argument.bytes);
  }
  std::size_t packed_bytes = packed.size();
  packed.resize(packed.size() + 1);  // never null
  std::array<void*, 5> extra = {launch_word(1), packed.data(), launch_word(2), &packed_bytes, launch_word(3)};
  if (outcome) {
    const int error = launch(function, grid[0], grid[1], grid[2], workgroup[0], workgroup[1], workgroup[2], lds_bytes,
                             nullptr, nullptr, extra.data());
    if (error != 0) {
      outcome = failed(
          ExitCode::device,
          fmt::format(
              "{}: {} is refused with grid {},{},{}, workgroup {},{},{}, {} bytes of LDS and {} of arguments ({})",
              path, chosen, grid[0], grid[1], grid[2], workgroup[0], workgroup[1], workgroup[2], lds_bytes,
              packed_bytes, error_name(error)));
    } else {
      outcome = checked(wavejit_device_synchronize(engine));
    }
  }
  static_cast<void>(unload(module));
  return outcome;
}

}  // namespace wavejit::tools
