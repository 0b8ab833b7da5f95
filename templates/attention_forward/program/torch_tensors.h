// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The lines that make tensors in the PyTorch code that `wavejit choose` writes, so that it runs as it stands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "templates/attention_forward/program/attention_choice.h"

namespace wavejit::attention_forward::program::choice {

// The imports and the device. `target` simulates it, until a reader with a GPU takes the line out.
std::string torch_beginning(std::string_view target, std::string_view more_imports = {});
// "float8_e4m3fn" of "e4m3", "bfloat16" of "bf16".
std::string torch_type(std::string_view format);
// A line "q = torch.zeros(…)".
std::string torch_zeros(std::string_view name, std::initializer_list<std::int64_t> sizes, std::string_view type);
// int32 lines of sequences that are all as long: "lengths" and "block_table" of pages one behind the other; where each
// sequence begins.
std::string torch_lengths(std::int64_t batch, std::int64_t keys);
std::string torch_block_table(std::int64_t batch, std::int64_t columns);
std::string torch_starts(std::string_view name, std::int64_t batch, std::int64_t length);

// Which functions are called decides how the tensors lie.
enum class TorchCall : std::uint8_t { flash_attn, engine, block_mask };
std::string torch_tensors(const AttentionChoice& call, const tools::Answers& answers, TorchCall of,
                          std::string_view target);

}  // namespace wavejit::attention_forward::program::choice
