// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/compile/function_code.h"

#include <ctime>

#include "simgpu/machine/compile/helpers.h"
#include "simgpu/machine/compile/library.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::compile {
namespace {

// LLVM's work grows faster than a block's length, and a slice of a wave must have room for the whole block.
constexpr std::uint32_t longest_block = 256;

// Processor time of this thread: what it costs, whoever else wants the processor.
std::uint64_t processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000) + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

FunctionCode::FunctionCode(const Function& function)
    : first_(function.instructions.data()), places_(function.instructions.size()) {
  places_.front().starts_block = true;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    if (instruction.target != nullptr) at(*instruction.target).starts_block = true;
    if (instruction.record->ends_block && i + 1 < places_.size()) places_[i + 1].starts_block = true;
  }
  std::uint32_t length = 0;
  for (Place& place : places_) {
    if (place.starts_block || length == longest_block) {
      place.starts_block = true;
      length = 0;
    }
    ++length;
  }
  std::uint32_t rest = 0;
  for (auto place = places_.rbegin(); place != places_.rend(); ++place) {
    place->rest = ++rest;
    if (place->starts_block) rest = 0;
  }
}

FunctionCode::~FunctionCode() {
  for (Translation* translation : translations_) library()->release(translation);
}

void FunctionCode::translate(const Place& place, std::uint32_t threshold) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || place.code.load(std::memory_order_relaxed) != nullptr) return;
  const Table* const table = library();
  if (table == nullptr) return;
  const std::uint64_t started = processor_nanoseconds();
  // Others that are on their way come along: what LLVM does once a module is not paid again.
  std::vector<Block> blocks;
  std::uint64_t instructions = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& candidate = places_[i];
    if (!candidate.starts_block || candidate.code.load(std::memory_order_relaxed) != nullptr) continue;
    if (&candidate != &place && candidate.entered.load(std::memory_order_relaxed) <= threshold / 4) continue;
    blocks.push_back({.first = first_ + i, .count = candidate.rest, .code = nullptr});
    instructions += candidate.rest;
  }
  std::string error;
  Translation* const translation = table->translate(blocks, helpers(), false, error);
  if (translation == nullptr) return give_up(error);
  translations_.push_back(translation);
  for (const Block& block : blocks) at(*block.first).code.store(block.code, std::memory_order_release);
  Counters& counters = Process::instance().counters();
  counters.translated_instructions.fetch_add(instructions, std::memory_order_relaxed);
  counters.translation_nanoseconds.fetch_add(processor_nanoseconds() - started, std::memory_order_relaxed);
}

FunctionCode& code_of(const Function& function) {
  std::call_once(function.compiled_once, [&] { function.compiled = std::make_shared<FunctionCode>(function); });
  return *function.compiled;
}

}  // namespace wavejit::simgpu::compile
