#pragma once
// The vector ALU: registers handlers for VOP1, VOP2, VOP3, VOP3P and VOPC in all their encodings (README.md).

#include <span>
#include <string_view>

#include "simgpu/decode/registry.h"
#include "simgpu/vector/operation.h"

namespace wavejit::simgpu {

/// Everything with a `v_` mnemonic except matrix instructions, for the registry's target.
void register_vector(Registry& registry);

namespace vector {

/// Host instruction sets that the kernels are compiled for. All give the same bits.
enum class HostSet : uint8_t { x86_64_v2, x86_64_v3, x86_64_v4 };
inline constexpr unsigned host_set_count = 3;

[[nodiscard]] bool host_supports(HostSet set);
/// The widest that this host supports.
[[nodiscard]] HostSet best_host_set();
[[nodiscard]] std::string_view name_of(HostSet set);
/// The kernels as compiled for `set`; the order is the same in every set.
[[nodiscard]] std::span<const OperationList> operation_lists(HostSet set);

}  // namespace vector
}  // namespace wavejit::simgpu
