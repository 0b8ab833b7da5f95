// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of a model's calls have kernels on a target, by what the library itself answers to each of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/served_model.h"

namespace wavejit::tools {

// A line with one length in place of each range, and what takes it.
struct RoutedCall {
  std::string name;  // "prefill", "decode"; "": it is neither, or has no pages
  std::string descriptor;
  std::string route;  // "interleaved 128x64, scalar O store"
  bool operator==(const RoutedCall&) const = default;
};

// A line that the families say of the model (serving_lines).
struct LineAnswer {
  std::string line;
  std::vector<std::string> kinds;  // of layers that make this call
  std::vector<RoutedCall> calls;
  std::string refusal;  // "": every call of the line has a kernel
};

enum class Supported : std::uint8_t { yes, partly, no };
std::string_view word_of(Supported supported);

// Keys and values in one format.
struct CacheAnswer {
  std::string cache;  // "bf16", "fp8"
  std::vector<LineAnswer> lines;
  // yes: every call of every layer. partly: there are layers without such a call. no: there are no others.
  Supported supported = Supported::no;
  std::string missing;  // "full layers: head dim 512 …", the first refusal in short
};

struct TargetAnswer {
  std::string target;
  std::string product;
  std::vector<CacheAnswer> caches;  // that of the model's type first
};

struct ModelAnswer {
  std::string name;
  ServedModel served;
  std::string refusal;  // of its configuration, in short: then there are no targets' answers
  std::vector<TargetAnswer> targets;
};

// A target and one of its products, as rows of `wavejit supported` name them.
struct NamedTarget {
  std::string id;
  std::string product;
};

// Asks the library about each line, on each target.
Result<ModelAnswer> answer_for(const std::string& name, const ServedModel& served,
                               const std::vector<NamedTarget>& targets);
// An answer without targets: nobody can tell the calls of a configuration that cannot be read.
ModelAnswer unread_model(const std::string& name, const std::string& where, const Failure& failure);

// Every call of the model's own cache type has kernels on every target that was asked for.
bool all_supported(const ModelAnswer& answer);

// For people: what was read, then each target with its calls.
std::string model_text(const ModelAnswer& answer);
// Models down, targets across, a cell each.
std::string models_markdown(const std::vector<ModelAnswer>& answers, const std::vector<NamedTarget>& targets);
std::string models_text(const std::vector<ModelAnswer>& answers);
std::string model_json(const ModelAnswer& answer);
std::string models_json(const std::vector<ModelAnswer>& answers);

}  // namespace wavejit::tools
