#include "runtime/explain.h"

#include <set>
#include <utility>

#include "runtime/engine.h"
#include "runtime/kernel_source.h"
#include "runtime/remote_library.h"
#include "runtime/route.h"
#include "runtime/splits.h"
#include "targets/targets.h"
#include "templates/attention_combine/call/spec.h"

namespace wavejit::runtime {
namespace {

Result<const targets::Target*> choose_target(const Config& config, std::string_view name) {
  if (name.empty()) {
    if (!config.device.value.simulated) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "target is not given and device = " + to_text(config.device.value) +
                                                " does not tell it without being opened; accepted: a target (" +
                                                targets::known_targets() + ") or WAVEJIT_DEVICE=sim:<target>");
    }
    name = config.device.value.target;
  }
  const targets::Target* target = targets::find_target(name);
  if (target == nullptr) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "target = \"" + std::string(name) + "\" is not known; accepted: " + targets::known_targets());
  }
  return target;
}

// Labels of one width, so that a terminal shows two columns.
std::string row(std::string_view label, std::string_view text) {
  std::string line(label);
  line.resize(std::max<std::size_t>(9, line.size() + 1), ' ');
  return line + std::string(text);
}

std::string where(KernelSource& source, const cache::Key& key) {
  if (source.cache().mode() == cache::Mode::off) return "the disk cache is off";
  const auto hit = source.cache().lookup(key);
  return hit ? "on disk (" + hit->layer() + ")" : "not on disk";
}

std::string where_remotely(const Config& config, const cache::Key& key) {
  auto remote = open_remote(config);
  if (!remote) return remote.error();
  const std::string name = remote->name;
  std::string problem;
  cache::CacheOptions options;
  options.mode = cache::Mode::read_only;
  options.remote = *std::move(remote);
  options.on_event = [&](const cache::Event& event) { problem = event.what; };
  cache::Cache fleet(std::move(options));
  if (fleet.remote_has(key)) return name + " has it";
  return problem.empty() ? name + " has it not" : problem;
}

}  // namespace

Result<std::vector<std::string>> explain(const Config& config, std::string_view descriptor, std::string_view target,
                                         CodegenLibrary& codegen) {
  auto problem = parse_descriptor(descriptor);
  if (!problem) return std::unexpected(std::move(problem.error()));
  auto row_of_target = choose_target(config, target);
  if (!row_of_target) return std::unexpected(std::move(row_of_target.error()));
  const AttentionProblem call = problem_of(*problem);
  const auto plan = plan_splits(call, **row_of_target, config.kv_splits.value);
  if (!plan) return std::unexpected(plan.error());
  auto route = choose_route(kernel_shape(call, *plan), **row_of_target, toggles_of(config));
  if (!route) return std::unexpected(std::move(route.error()));

  Logger logger(config.log_level.value);
  // Looks at the machine's own layers; a lookup through the remote one would publish what it finds.
  Config local = config;
  local.cache_remote = {};
  KernelSource source(local, codegen, logger);
  auto key = source.key_of(route->spec);
  if (!key) return std::unexpected(std::move(key.error()));

  const attention_forward::Resources& cost = route->resources;
  std::vector<std::string> lines = {
      row("problem", to_text(*problem)),
      row("target", std::string((*row_of_target)->id) + " (" + std::string((*row_of_target)->product) + ")"),
      row("route", describe(*route)),
      row("splits", describe(*plan, call)),
      row("spec", to_text(route->spec)),
      row("key", key->hex() + "  " + where(source, *key)),
      row("key text", key->text()),
      row("cost", std::to_string(cost.lds_bytes) + " bytes of LDS, up to " + std::to_string(cost.vgpr_budget) +
                      " VGPRs, " + std::to_string(cost.workgroups_per_compute_unit) +
                      (cost.workgroups_per_compute_unit == 1 ? " workgroup" : " workgroups") + " per CU"),
  };
  std::vector<cache::Key> keys = {*key};
  if (plan->splits > 1) {
    const attention_combine::KernelSpec combine = attention_combine::combine_of(route->spec);
    auto combine_key = source.key_of(combine);
    if (!combine_key) return std::unexpected(std::move(combine_key.error()));
    lines.push_back(row("combine", to_text(combine)));
    lines.push_back(row("key", combine_key->hex() + "  " + where(source, *combine_key)));
    keys.push_back(*std::move(combine_key));
  }
  if (config.cache_remote.value) {
    // In the order of the keys.
    for (const cache::Key& one : keys) lines.push_back(row("remote", where_remotely(config, one)));
  }
  for (const Refusal& refusal : route->refused) lines.push_back(row("refused", refusal.route + ": " + refusal.reason));
  for (const std::string& setting : describe(config)) lines.push_back(row("setting", setting));
  for (const std::string& warning : config.warnings) lines.push_back(row("warning", warning));
  return lines;
}

Result<std::vector<std::string>> kernels_of(const Config& config, std::string_view descriptor,
                                            std::string_view target) {
  auto problem = parse_descriptor(descriptor);
  if (!problem) return std::unexpected(std::move(problem.error()));
  auto row_of_target = choose_target(config, target);
  if (!row_of_target) return std::unexpected(std::move(row_of_target.error()));
  const AttentionProblem call = problem_of(*problem);
  const auto plan = plan_splits(call, **row_of_target, config.kv_splits.value);
  if (!plan) return std::unexpected(plan.error());
  auto route = choose_route(kernel_shape(call, *plan), **row_of_target, toggles_of(config));
  if (!route) return std::unexpected(std::move(route.error()));
  std::vector<std::string> specs = {to_text(route->spec)};
  if (plan->splits > 1) specs.push_back(to_text(attention_combine::combine_of(route->spec)));
  return specs;
}

std::vector<std::string> supported() {
  std::vector<std::string> lines;
  for (const targets::Target& target : targets::all_targets()) {
    std::string line(target.id);
    line += " (" + std::string(target.product) + "): attention_forward";
    std::set<std::string> dtypes;
    std::set<std::pair<int, int>> head_dims;
    bool causal = false;
    bool lse = false;
    AttentionShape plain;
    for (const AttentionShape& shape : supported_shapes(target, {})) {
      dtypes.emplace(attention_forward::to_text(shape.dtype));
      head_dims.emplace(shape.head_dim_qk, shape.head_dim_v);
      causal |= shape.mask == attention_forward::Mask::causal;
      lse |= shape.lse;
      if (shape.mask == attention_forward::Mask::none) plain = shape;
    }
    const auto list = [&](std::string_view label, const auto& items, auto text) {
      line += "; ";
      line += label;
      for (const auto& item : items) line += " " + text(item);
    };
    list("dtypes", dtypes, [](const std::string& name) { return name; });
    list("head dims", head_dims,
         [](const std::pair<int, int>& dims) { return to_text(attention_forward::HeadDims{dims.first, dims.second}); });
    line += std::string("; masks none") + (causal ? " causal" : "");
    // What multiplies shapes is asked for one by one, on top of one that has a kernel.
    const auto possible = [&](const auto& change) {
      AttentionShape shape = plain;
      change(shape);
      return choose_route(shape, target, {}).has_value();
    };
    if (possible([](AttentionShape& shape) { shape.mask = attention_forward::Mask::window; })) line += " window";
    std::set<std::string> modifiers;
    for (const attention_forward::ModifierRow& row : attention_forward::modifier_rows)
      if (!row.in_code || possible([&](AttentionShape& shape) { shape.modifiers.add(row.modifier); }))
        modifiers.emplace(row.word);
    list("modifiers", modifiers, [](const std::string& word) { return word; });
    if (lse) line += "; LSE on request";
    line += "; pipelines";
    for (const auto pipeline : attention_forward::all_pipelines)
      if (!supported_shapes(target, {.pipeline = pipeline}).empty()) line += " " + std::string(to_text(pipeline));
    line += "; O store";
    for (const auto store : {attention_forward::OutputStore::permlane, attention_forward::OutputStore::scalar})
      if (!supported_shapes(target, {.output_store = store}).empty()) line += " " + std::string(to_text(store));
    lines.push_back(std::move(line));
  }
  lines.emplace_back(
      "lengths: queries 1 or more, keys 0 or more, equal or not, dense or packed, key lengths in device memory; heads "
      "MHA, GQA, MQA; strides positive multiples of 8 "
      "(BSHD, BHSD and between); batch slices below 4 GiB");
  return lines;
}

}  // namespace wavejit::runtime
