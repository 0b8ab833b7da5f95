// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/device/device.h"

#include <algorithm>
#include <deque>
#include <format>
#include <mutex>

#include "boards/board.h"
#include "boards/known_products.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/device/rooms.h"
#include "simgpu/machine/device/state.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu {
namespace {

struct Devices {
  std::mutex mutex;
  std::deque<std::unique_ptr<Device>> all;
  bool environment_was_used = false;

  // Never destroyed: programs use devices from static destructors.
  static Devices& instance() {
    static auto* const devices = new Devices();
    return *devices;
  }
  Device& add(const boards::Board& target) {
    return *all.emplace_back(std::make_unique<Device>(static_cast<int>(all.size()), target));
  }
  // Programs that never open devices themselves get those that the environment names.
  void use_environment() {
    if (environment_was_used) return;
    environment_was_used = true;
    const Config& config = Process::instance().config();
    const auto board = boards::find_board(config.device_target);
    for (int i = 0; board && i < config.device_count; ++i) add(*board);
  }
};

}  // namespace

Device::Device(int ordinal, const boards::Board& target)
    : ordinal_(ordinal), target_(target), state_(std::make_unique<State>(target_)) {
  register_rooms(state_->registry);
}
Device::~Device() = default;

Device* Device::find(int ordinal) {
  Devices& devices = Devices::instance();
  const std::scoped_lock lock(devices.mutex);
  devices.use_environment();
  return ordinal >= 0 && ordinal < static_cast<int>(devices.all.size()) ? devices.all[ordinal].get() : nullptr;
}

int Device::count() {
  Devices& devices = Devices::instance();
  const std::scoped_lock lock(devices.mutex);
  devices.use_environment();
  return static_cast<int>(devices.all.size());
}

std::expected<std::vector<int>, Status> Device::open(std::string_view target, int count) {
  const auto board = boards::find_board(target);
  if (!board) {
    return std::unexpected(
        Status{hip_error_invalid_device,
               std::format("target '{}' is unknown; the simulated GPU takes {}, and boards of them as {}@4x32: 4 dies "
                           "of 32 compute units",
                           target, boards::known_products(), targets::complete_targets().front().id)});
  }
  const auto is_such = [&](const boards::Board& other) {
    return other.id == board->id && other.xcds == board->xcds && other.compute_units == board->compute_units;
  };
  constexpr int most = 64;
  if (count < 1 || count > most) {
    return std::unexpected(Status{hip_error_invalid_value, std::format("{} devices; it takes 1 to {}", count, most)});
  }
  Devices& devices = Devices::instance();
  const std::scoped_lock lock(devices.mutex);
  // A caller that asks before anybody else decides alone. Otherwise the environment's devices are there already.
  devices.environment_was_used = true;
  std::vector<int> ordinals;
  for (const auto& device : devices.all) {
    if (is_such(device->target_) && static_cast<int>(ordinals.size()) < count) ordinals.push_back(device->ordinal_);
  }
  while (static_cast<int>(ordinals.size()) < count) ordinals.push_back(devices.add(*board).ordinal_);
  return ordinals;
}

std::expected<std::shared_ptr<Module>, Status> Device::load(std::span<const std::byte> image) {
  auto object = read_code_object(image);
  if (!object) return std::unexpected(Status{hip_error_invalid_image, object.error()});
  const targets::Target* made_for = targets::find_target_by_machine(object->machine);
  if (made_for == nullptr || made_for->id != target_.id) {
    return std::unexpected(Status{hip_error_no_binary_for_gpu,
                                  std::format("code object for {} (machine {:#x}); device {} is {}",
                                              made_for != nullptr ? made_for->id : std::string_view(object->target_id),
                                              object->machine, ordinal_, target_.id)});
  }
  const auto lanes_of = [](const KernelDescription& kernel) { return kernel.descriptor.lanes(); };
  const unsigned lanes = object->kernels.empty() ? 0 : lanes_of(object->kernels.front());
  if (!std::ranges::all_of(object->kernels, [&](const auto& kernel) { return lanes_of(kernel) == lanes; })) {
    return std::unexpected(
        Status{hip_error_invalid_image, "code object: kernels of waves of 32 lanes and of 64 lanes beside each other"});
  }
  Disassembler* disassembler = Disassembler::for_processor(target_.id, lanes);
  if (disassembler == nullptr) {
    return std::unexpected(Status{hip_error_no_binary_for_gpu, std::format("no disassembler for {}", target_.id)});
  }
  auto code = LoadedCode::load(image, std::move(*object), ordinal_, *disassembler, state_->registry);
  if (!code) return std::unexpected(std::move(code.error()));
  std::shared_ptr<Module> module(new Module());
  module->device_ = this;
  module->code_ = std::move(*code);
  const LoadedCode& loaded = *module->code_;
  for (const KernelDescription& description : loaded.object().kernels) {
    Kernel& kernel = *module->kernels_.emplace_back(std::make_unique<Kernel>());
    kernel.info_ = description.info;
    kernel.module_ = module.get();
    kernel.descriptor_address_ = loaded.base() + description.descriptor_address;
    kernel.code_ = std::make_unique<KernelCode>(KernelCode{
        .descriptor = description.descriptor,
        .code = module->code_.get(),
        .entry = kernel.descriptor_address_ + static_cast<std::uint64_t>(description.descriptor.entry_offset)});
  }
  return module;
}

Kernel::Kernel() = default;
Kernel::~Kernel() = default;

Module::Module() = default;
Module::~Module() = default;

const Kernel* Module::find_kernel(std::string_view name) const {
  if (name.ends_with(".kd")) name.remove_suffix(3);
  const auto found = std::ranges::find_if(kernels_, [&](const auto& kernel) { return kernel->info().name == name; });
  return found == kernels_.end() ? nullptr : found->get();
}

std::vector<const Kernel*> Module::kernels() const {
  std::vector<const Kernel*> all;
  all.reserve(kernels_.size());
  for (const auto& kernel : kernels_) all.push_back(kernel.get());
  return all;
}

GlobalSymbol Module::find_global(std::string_view name) const {
  constexpr std::uint8_t type_object = 1;
  for (const Symbol& symbol : code_->object().dynamic_symbols) {
    if (symbol.defined && symbol.type == type_object && symbol.name == name && !name.ends_with(".kd")) {
      return {.address = code_->base() + symbol.value, .bytes = symbol.bytes};
    }
  }
  return {};
}

const std::string& Module::target_id() const { return code_->object().target_id; }

}  // namespace wavejit::simgpu
