// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/comgr.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <format>
#include <string_view>
#include <vector>

#include "codegen/lowering.h"
#include "system/file_descriptor.h"

namespace wavejit::codegen::comgr {
namespace {

// comgr's binary interface, as far as it is used here (amd_comgr.h of comgr 2 and 3; the numbers are part of its ABI).
// Every object is a 64-bit handle passed by value.
struct Handle {
  std::uint64_t handle = 0;
};
enum : int { success = 0 };
enum DataKind : int { log_data = 0x5, bitcode_data = 0x6, relocatable_data = 0x7, executable_data = 0x8 };
enum Action : int { codegen_bitcode_to_relocatable = 0x4, link_relocatable_to_executable = 0x7 };

struct Functions {
  void (*get_version)(std::size_t* major, std::size_t* minor) = nullptr;
  int (*create_data)(int kind, Handle* data) = nullptr;
  int (*release_data)(Handle data) = nullptr;
  int (*set_data)(Handle data, std::size_t size, const char* bytes) = nullptr;
  int (*set_data_name)(Handle data, const char* name) = nullptr;
  int (*get_data)(Handle data, std::size_t* size, char* bytes) = nullptr;
  int (*create_data_set)(Handle* set) = nullptr;
  int (*destroy_data_set)(Handle set) = nullptr;
  int (*data_set_add)(Handle set, Handle data) = nullptr;
  int (*action_data_count)(Handle set, int kind, std::size_t* count) = nullptr;
  int (*action_data_get_data)(Handle set, int kind, std::size_t index, Handle* data) = nullptr;
  int (*create_action_info)(Handle* info) = nullptr;
  int (*destroy_action_info)(Handle info) = nullptr;
  int (*set_isa_name)(Handle info, const char* name) = nullptr;
  int (*set_option_list)(Handle info, const char* const* options, std::size_t count) = nullptr;
  int (*set_logging)(Handle info, bool logging) = nullptr;
  int (*do_action)(int kind, Handle info, Handle input, Handle result) = nullptr;
};

struct Library {
  Functions functions;
  std::string reason;  // why it cannot be used; empty when it can
};

Library open_library() {
  Library library;
  void* handle = nullptr;
  // Versions 2 (ROCm 5 and 6) and 3 (ROCm 7) agree in what is used; ROCm's own folder is often not in the loader's
  // path.
  for (const char* name : {"libamd_comgr.so.3", "libamd_comgr.so.2", "/opt/rocm/lib/libamd_comgr.so.3",
                           "/opt/rocm/lib/libamd_comgr.so.2"}) {
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle) break;
  }
  if (!handle) {
    library.reason = "lowering=comgr needs libamd_comgr.so.3 or .so.2 of a ROCm installation; neither can be loaded";
    return library;
  }
  const auto find = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function && library.reason.empty()) library.reason = std::format("the installed comgr has no {}", name);
  };
  Functions& f = library.functions;
  find(f.get_version, "amd_comgr_get_version");
  find(f.create_data, "amd_comgr_create_data");
  find(f.release_data, "amd_comgr_release_data");
  find(f.set_data, "amd_comgr_set_data");
  find(f.set_data_name, "amd_comgr_set_data_name");
  find(f.get_data, "amd_comgr_get_data");
  find(f.create_data_set, "amd_comgr_create_data_set");
  find(f.destroy_data_set, "amd_comgr_destroy_data_set");
  find(f.data_set_add, "amd_comgr_data_set_add");
  find(f.action_data_count, "amd_comgr_action_data_count");
  find(f.action_data_get_data, "amd_comgr_action_data_get_data");
  find(f.create_action_info, "amd_comgr_create_action_info");
  find(f.destroy_action_info, "amd_comgr_destroy_action_info");
  find(f.set_isa_name, "amd_comgr_action_info_set_isa_name");
  find(f.set_option_list, "amd_comgr_action_info_set_option_list");
  find(f.set_logging, "amd_comgr_action_info_set_logging");
  find(f.do_action, "amd_comgr_do_action");
  return library;
}

std::expected<const Functions*, Failure> functions() {
  static const Library library = open_library();
  if (!library.reason.empty()) return fail(Status::unavailable, library.reason);
  return &library.functions;
}

// Owners of comgr's handles.
class Data {
 public:
  Data(const Functions& f, Handle handle) : f_(f), handle_(handle) {}
  ~Data() {
    if (handle_.handle != 0) f_.release_data(handle_);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  Handle get() const { return handle_; }

 private:
  const Functions& f_;
  Handle handle_;
};

class DataSet {
 public:
  explicit DataSet(const Functions& f) : f_(f) { ok_ = f.create_data_set(&handle_) == success; }
  ~DataSet() {
    if (ok_) f_.destroy_data_set(handle_);
  }
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;
  Handle get() const { return handle_; }

  bool add(DataKind kind, std::span<const char> bytes, const char* name) {
    Handle handle;
    if (!ok_ || f_.create_data(kind, &handle) != success) return false;
    const Data data(f_, handle);
    return f_.set_data(handle, bytes.size(), bytes.data()) == success && f_.set_data_name(handle, name) == success &&
           f_.data_set_add(handle_, handle) == success;
  }

  // The first datum of a kind; empty when there is none.
  std::vector<char> first(DataKind kind) const {
    std::size_t count = 0;
    if (!ok_ || f_.action_data_count(handle_, kind, &count) != success || count == 0) return {};
    Handle handle;
    if (f_.action_data_get_data(handle_, kind, 0, &handle) != success) return {};
    const Data data(f_, handle);
    std::size_t size = 0;
    if (f_.get_data(handle, &size, nullptr) != success) return {};
    std::vector<char> bytes(size);
    if (f_.get_data(handle, &size, bytes.data()) != success) return {};
    return bytes;
  }

 private:
  const Functions& f_;
  Handle handle_;
  bool ok_ = false;
};

class ActionInfo {
 public:
  explicit ActionInfo(const Functions& f) : f_(f) { ok_ = f.create_action_info(&handle_) == success; }
  ~ActionInfo() {
    if (ok_) f_.destroy_action_info(handle_);
  }
  ActionInfo(const ActionInfo&) = delete;
  ActionInfo& operator=(const ActionInfo&) = delete;
  Handle get() const { return handle_; }
  bool ok() const { return ok_; }

 private:
  const Functions& f_;
  Handle handle_;
  bool ok_ = false;
};

// The log's first line that says "error", else its first line.
std::string reason_in(const std::vector<char>& log) {
  const std::string_view text(log.data(), log.size());
  std::size_t at = text.find("error:");
  if (at == std::string_view::npos) at = 0;
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  return line.empty() ? "no log" : std::string(line.substr(0, 300));
}

std::expected<std::vector<char>, Failure> run(Action action, const targets::Target& target,
                                              std::span<const char* const> options, DataKind input_kind,
                                              std::span<const char> input, const char* input_name,
                                              DataKind output_kind) {
  const auto loaded = functions();
  if (!loaded) return std::unexpected(loaded.error());
  const Functions& f = **loaded;
  const ActionInfo info(f);
  DataSet inputs(f);
  const DataSet outputs(f);
  const std::string isa = std::format("amdgcn-amd-amdhsa--{}", target.id);
  if (!info.ok() || f.set_isa_name(info.get(), isa.c_str()) != success) {
    return fail(Status::unavailable, std::format("the installed comgr does not know {}", isa));
  }
  if (f.set_option_list(info.get(), options.data(), options.size()) != success ||
      f.set_logging(info.get(), true) != success || !inputs.add(input_kind, input, input_name)) {
    return fail(Status::internal, "comgr refused its input");
  }
  const int status = f.do_action(action, info.get(), inputs.get(), outputs.get());
  std::vector<char> output = outputs.first(output_kind);
  if (status != success || output.empty()) {
    return fail(Status::unavailable, std::format("comgr (action {}, status {}): {}", static_cast<int>(action), status,
                                                 reason_in(outputs.first(log_data))));
  }
  return output;
}

// Build ids of comgr and of the LLVM libraries that came with it: what makes its output what it is.
struct LoadedLibrary {
  std::string path;
  std::string build_id;
};

int collect(dl_phdr_info* info, std::size_t, void* argument) {
  const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!file.starts_with("libamd_comgr") && !file.starts_with("libLLVM") && !file.starts_with("libclang") &&
      !file.starts_with("liblld"))
    return 0;
  LoadedLibrary library = {.path = std::string(path), .build_id = {}};
  for (const auto& header : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    if (header.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader states addresses as numbers
    const char* note = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* const end = note + header.p_memsz;
    const auto aligned = [](std::uint32_t size) { return (size + 3U) & ~3U; };
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) fields;
      std::memcpy(&fields, note, sizeof fields);
      const char* name = note + sizeof fields;
      const char* description = name + aligned(fields.n_namesz);
      if (fields.n_type == NT_GNU_BUILD_ID && fields.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        library.build_id.assign(description, fields.n_descsz);
      }
      note = description + aligned(fields.n_descsz);
    }
  }
  static_cast<std::vector<LoadedLibrary>*>(argument)->push_back(std::move(library));
  return 0;
}

}  // namespace

std::expected<std::string, Failure> identity() {
  const auto loaded = functions();
  if (!loaded) return std::unexpected(loaded.error());
  std::size_t major = 0;
  std::size_t minor = 0;
  (*loaded)->get_version(&major, &minor);
  std::vector<LoadedLibrary> libraries;
  dl_iterate_phdr(collect, &libraries);
  std::vector<std::string> ids;
  for (LoadedLibrary& library : libraries) {
    if (library.build_id.empty()) {  // a build without one: the file itself is its identity
      Bytes contents;
      const system::FileDescriptor file(::open(library.path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file || !system::read_all(file, contents)) return fail(Status::unavailable, "cannot read " + library.path);
      library.build_id = std::to_string(llvm::xxh3_64bits(llvm::ArrayRef<std::uint8_t>(contents)));
    }
    ids.push_back(library.build_id);
  }
  std::ranges::sort(ids);
  std::string all;
  for (const std::string& id : ids) all += id;
  return std::format("comgr={}.{} build={:016x}", major, minor, llvm::xxh3_64bits(all));
}

std::expected<void, Failure> lower(llvm::Module& module, const targets::Target& target,
                                   llvm::SmallVectorImpl<char>& object) {
  if (auto prepared = prepare(module, target); !prepared) return prepared;
  llvm::SmallString<0> bitcode;
  llvm::raw_svector_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  // No option at all would mean -O0. The emitter's order is the schedule, and sinking breaks barriers (lowering.h).
  static constexpr std::array<const char*, 11> options = {"-O2",
                                                          "-Xclang",
                                                          "-disable-llvm-passes",
                                                          "-mllvm",
                                                          "-disable-machine-sink",
                                                          "-mllvm",
                                                          "-enable-misched=0",
                                                          "-mllvm",
                                                          "-enable-post-misched=0",
                                                          "-mcode-object-version=5",
                                                          "-nogpulib"};
  auto output =
      run(codegen_bitcode_to_relocatable, target, options, bitcode_data, bitcode, "kernel.bc", relocatable_data);
  if (!output) return std::unexpected(output.error());
  object.append(output->begin(), output->end());
  return {};
}

std::expected<Bytes, Failure> link(std::span<const char> object, const targets::Target& target) {
  static constexpr std::array<const char*, 1> options = {"-Wl,-s"};
  auto output =
      run(link_relocatable_to_executable, target, options, relocatable_data, object, "kernel.o", executable_data);
  if (!output) return std::unexpected(output.error());
  return Bytes(output->begin(), output->end());
}

}  // namespace wavejit::codegen::comgr
