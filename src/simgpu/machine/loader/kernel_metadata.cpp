// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/loader/kernel_metadata.h"

#include <algorithm>
#include <format>
#include <optional>
#include <string_view>
#include <utility>

#include "simgpu/machine/loader/message_pack.h"

namespace wavejit::simgpu {
namespace {

std::expected<void, std::string> read_arguments(const MessageValue& entry, KernelInfo& info) {
  const MessageValue* arguments = entry.find(".args");
  if (arguments == nullptr) return {};
  for (const MessageValue& value : arguments->elements) {
    KernelArgument argument{.name = std::string(value.text_of(".name")),
                            .value_kind = std::string(value.text_of(".value_kind")),
                            .offset = static_cast<std::uint32_t>(value.number_of(".offset")),
                            .size = static_cast<std::uint32_t>(value.number_of(".size"))};
    const std::uint64_t end = std::uint64_t{argument.offset} + argument.size;
    if (end > info.kernarg_bytes) {
      return std::unexpected(std::format("kernel {}: argument at {} of {} bytes ends beyond its kernarg segment of {}",
                                         info.name, argument.offset, argument.size, info.kernarg_bytes));
    }
    if (!argument.hidden())
      info.explicit_kernarg_bytes = std::max(info.explicit_kernarg_bytes, static_cast<std::uint32_t>(end));
    info.arguments.push_back(std::move(argument));
  }
  std::ranges::stable_sort(info.arguments, {}, &KernelArgument::offset);
  return {};
}

}  // namespace

std::expected<void, std::string> read_kernel_metadata(const Bytes& content, CodeObject& object) {
  const auto root = read_message_pack(content);
  if (!root) return std::unexpected("the metadata note is not valid MessagePack");
  const std::string_view target = root->text_of("amdhsa.target");
  // The processor follows four parts of a triple: "amdgcn-amd-amdhsa--gfx950:xnack-",
  // "amdgpu9.42-amd-amdhsa-unknown-gfx942".
  std::size_t processor = 0;
  for (int part = 0; part < 4 && processor != target.npos; ++part)
    processor = target.find('-', processor + (part != 0));
  object.target_id = processor == target.npos ? target : target.substr(processor + 1);
  const MessageValue* kernels = root->find("amdhsa.kernels");
  if (kernels == nullptr) return {};
  for (const MessageValue& entry : kernels->elements) {
    KernelDescription kernel;
    KernelInfo& info = kernel.info;
    info.name = entry.text_of(".symbol");
    if (!info.name.ends_with(".kd")) {
      return std::unexpected(std::format("kernel symbol '{}'; it takes a name that ends in .kd", info.name));
    }
    info.name.resize(info.name.size() - 3);
    info.kernarg_bytes = static_cast<std::uint32_t>(entry.number_of(".kernarg_segment_size"));
    info.max_threads_per_workgroup = static_cast<std::uint32_t>(entry.number_of(".max_flat_workgroup_size", 1024));
    info.vgprs = static_cast<std::uint32_t>(entry.number_of(".vgpr_count"));
    info.agprs = static_cast<std::uint32_t>(entry.number_of(".agpr_count"));
    info.sgprs = static_cast<std::uint32_t>(entry.number_of(".sgpr_count"));
    const auto stated = [&](std::string_view key) {
      return entry.find(key) == nullptr ? std::nullopt : std::optional<std::uint64_t>(entry.number_of(key));
    };
    kernel.stated_lds_bytes = stated(".group_segment_fixed_size");
    kernel.stated_private_bytes = stated(".private_segment_fixed_size");
    kernel.stated_wavefront_size = stated(".wavefront_size");
    info.uses_dynamic_stack = entry.number_of(".uses_dynamic_stack") != 0;
    if (const MessageValue* required = entry.find(".reqd_workgroup_size")) {
      for (std::size_t i = 0; i < std::min<std::size_t>(3, required->elements.size()); ++i) {
        info.required_workgroup[i] = static_cast<std::uint32_t>(required->elements[i].integer);
      }
    }
    if (auto done = read_arguments(entry, info); !done) return done;
    object.kernels.push_back(std::move(kernel));
  }
  return {};
}

}  // namespace wavejit::simgpu
