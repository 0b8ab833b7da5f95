// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "subject.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <span>
#include <sstream>

#include "kernels/facts.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/machine/instruction/instruction.h"
#include "simgpu/machine/launch/observer.h"
#include "simgpu/process/check.h"
#include "simgpu/process/process.h"
#include "support/attention_reference.h"
#include "support/compared_rows.h"
#include "support/storage_types.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention_forward/kernel/combine/parameters.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {

int SubjectProblem::batch() const {
  const std::size_t entries = std::max({query_starts.size(), key_starts.size(), key_lengths.size() + 1});
  return entries > 1 ? static_cast<int>(entries) - 1 : 1;
}
int SubjectProblem::query_rows() const { return query_starts.empty() ? queries : query_starts.back(); }
int SubjectProblem::key_rows() const { return key_starts.empty() ? keys : key_starts.back(); }

namespace {

using attention_forward::Mask;
using ForwardSpec = attention_forward::ForwardKernel;
using CombineSpec = attention_combine::CombineKernel;

constexpr int heads_per_kv_head = 2;
constexpr int fence_rows = 67;                 // of NaN behind K and V: more than a tile
constexpr std::uint16_t fence_value = 0x7fa5;  // NaN in both types
constexpr int window_left = 150;
constexpr int window_right = 20;
constexpr std::uint64_t most_instructions = 200'000;  // of a wave; whole kernels take a tenth

// Device memory with its contents, as hipMemcpy would have put them there.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count)
      : data_(static_cast<T*>(simgpu::DeviceMemory::instance().allocate(std::max<std::size_t>(count, 1) * sizeof(T),
                                                                        simgpu::MemoryKind::device, 0))),
        count_(count) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    original_ = values;
    restore();
  }
  ~DeviceArray() { simgpu::DeviceMemory::instance().free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void set(const std::vector<T>& values) {
    std::ranges::copy(values, data_);
    simgpu::DeviceMemory::instance().define(data_, count_ * sizeof(T));
  }
  // What a kernel with something missing may have written over.
  void restore() const {
    std::ranges::copy(original_, data_);
    simgpu::DeviceMemory::instance().define(data_, count_ * sizeof(T));
  }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::vector<T> copy() const { return {data_, data_ + count_}; }

 private:
  T* data_;
  std::size_t count_;
  std::vector<T> original_;
};

// The first numbers of a seed, at least this many. They are drawn once: each takes logarithms of long doubles, and all
// subjects have the same three seeds.
const std::vector<float>& normal_numbers(std::uint64_t seed, std::size_t count) {
  struct Sequence {
    explicit Sequence(std::uint64_t of) : random(of) {}
    std::mt19937_64 random;
    std::normal_distribution<float> normal;
    std::vector<float> numbers;
  };
  static std::map<std::uint64_t, Sequence> sequences;
  Sequence& sequence = sequences.try_emplace(seed, seed).first->second;
  while (sequence.numbers.size() < count) sequence.numbers.push_back(sequence.normal(sequence.random));
  return sequence.numbers;
}

// Normal values; those of later rows grow every three tiles, so that maxima rise and sums are rescaled in the middle of
// the walk, at odd tiles and at even ones.
std::vector<float> values(int rows, std::size_t row_elements, Storage storage, std::uint64_t seed, bool grows) {
  std::vector<float> all(static_cast<std::size_t>(rows) * row_elements);
  const std::vector<float>& normal = normal_numbers(seed, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int row = static_cast<int>(i / row_elements);
    const float growth = grows ? 1.0F + (2 * static_cast<float>(row / 192)) : 1.0F;
    all[i] = from_storage(storage, to_storage(storage, normal[i] * growth));
  }
  return all;
}

std::vector<std::uint16_t> stored(const std::vector<float>& all, Storage storage, std::size_t fence) {
  std::vector<std::uint16_t> bits;
  bits.reserve(all.size() + fence);
  for (const float value : all) bits.push_back(to_storage(storage, value));
  bits.insert(bits.end(), fence, fence_value);
  return bits;
}

// Kernels read the lower half of Q's address in place of arrays that are missing, and what a change to that shows
// depends on its sign: always positive here.
class QueryArray {
 public:
  explicit QueryArray(const std::vector<std::uint16_t>& values) {
    constexpr std::size_t distance = std::size_t{1} << 28;
    array_ = std::make_unique<DeviceArray<std::uint16_t>>(values);
    while ((array_->address() & 0x8000'0000) != 0) {
      passed_.push_back(std::make_unique<DeviceArray<std::uint16_t>>(distance / 2));
      passed_.push_back(std::move(array_));
      array_ = std::make_unique<DeviceArray<std::uint16_t>>(values);
    }
  }
  std::uint64_t address() const { return array_->address(); }
  void restore() const { array_->restore(); }

 private:
  std::unique_ptr<DeviceArray<std::uint16_t>> array_;
  std::vector<std::unique_ptr<DeviceArray<std::uint16_t>>> passed_;
};

class Visits final : public simgpu::Observer {
 public:
  explicit Visits(std::set<std::uint32_t>& offsets) : offsets_(offsets) {}
  // One host thread runs everything.
  void before(const simgpu::Wave& /*wave*/, const simgpu::Instruction& instruction) override {
    const std::size_t place = instruction.offset_in_function / 4;
    if (place >= seen_.size()) seen_.resize(place + 1);
    if (seen_[place]) return;
    seen_[place] = true;
    offsets_.insert(instruction.offset_in_function);
  }

 private:
  std::set<std::uint32_t>& offsets_;
  std::vector<bool> seen_;  // by dwords: most instructions run many times
};

}  // namespace

struct Subject::Ran {
  std::vector<std::string> checks;
  std::string first;
  std::vector<std::uint16_t> o;
  std::vector<float> lse;
};

struct Subject::Data {
  Data(const ForwardSpec& forward, SubjectProblem of)
      : spec(forward),
        size(std::move(of)),
        kv_heads(size.query_heads / heads_per_kv_head),
        storage(spec.dtype == attention_forward::DataType::bf16 ? Storage::bf16 : Storage::fp16),
        q_values(values(size.query_rows(), row(spec.head_dim_qk, size.query_heads), storage, 1, false)),
        k_values(values(size.key_rows(), row(spec.head_dim_qk, kv_heads), storage, 2, true)),
        v_values(values(size.key_rows(), row(spec.head_dim_v, kv_heads), storage, 3, false)),
        q(stored(q_values, storage, fence_rows * row(spec.head_dim_qk, size.query_heads))),
        k(stored(k_values, storage, fence_rows * row(spec.head_dim_qk, kv_heads))),
        v(stored(v_values, storage, fence_rows * row(spec.head_dim_v, kv_heads))),
        query_starts(size.query_starts),
        key_starts(size.key_starts),
        key_lengths(size.key_lengths),
        sink(size.wrong ? std::vector<float>(4, -std::numeric_limits<float>::infinity())
                        : std::vector<float>{0.5F, -1.0F, 2.0F, 0.0F}),
        o((size.query_rows() + fence_rows) * row(spec.head_dim_v, size.query_heads)),
        lse((size.query_rows() + fence_rows) * row(1, size.query_heads)),
        chunks(spec.split_keys == 0 ? 1 : (size.keys + spec.split_keys - 1) / spec.split_keys),
        workspace(attention_combine::workspace_bytes(
                      static_cast<std::uint64_t>(size.query_rows()), static_cast<std::uint64_t>(size.query_heads),
                      static_cast<std::uint64_t>(spec.split_keys == 0 ? 0 : chunks), spec.head_dim_v)
                      .value_or(0) /
                  sizeof(std::uint32_t)) {
    fresh_o.assign(o.copy().size(), fence_value);
    fresh_lse.assign(lse.copy().size(), -12345.0F);
    fresh_workspace.assign(workspace.copy().size(), ~std::uint32_t{0});  // NaN: a record left out shows
  }
  static std::size_t row(int head_dim, int heads) { return static_cast<std::size_t>(head_dim) * heads; }

  attention_forward::Arguments arguments() const {
    const auto bytes = [](int head_dim, int heads) { return static_cast<std::uint32_t>(row(head_dim, heads) * 2); };
    attention_forward::Arguments a;
    a.q = q.address();
    a.k = k.address();
    a.v = v.address();
    a.o = o.address();
    a.lse = lse.address();
    a.q_head_stride = static_cast<std::uint64_t>(spec.head_dim_qk) * 2;
    a.k_head_stride = static_cast<std::uint64_t>(spec.head_dim_qk) * 2;
    a.v_head_stride = static_cast<std::uint64_t>(spec.head_dim_v) * 2;
    a.o_head_stride = static_cast<std::uint64_t>(spec.head_dim_v) * 2;
    a.lse_head_stride = static_cast<std::uint64_t>(size.query_rows()) * sizeof(float);
    a.q_row_stride = bytes(spec.head_dim_qk, size.query_heads);
    a.k_row_stride = bytes(spec.head_dim_qk, kv_heads);
    a.v_row_stride = bytes(spec.head_dim_v, kv_heads);
    a.o_row_stride = bytes(spec.head_dim_v, size.query_heads);
    a.query_length = static_cast<std::uint32_t>(size.queries);
    a.key_length = static_cast<std::uint32_t>(size.keys);
    a.bottom_right_mask = ~std::uint32_t{0};
    a.query_heads = static_cast<std::uint32_t>(size.query_heads);
    a.kv_head_multiplier = attention_forward::kv_head_multiplier(a.query_heads, static_cast<std::uint32_t>(kv_heads));
    a.scale_log2e = static_cast<float>(scale() * std::numbers::log2e);
    a.window_left = window_left;
    a.window_right = window_right;
    a.sequences.query_starts = size.query_starts.empty() ? 0 : query_starts.address();
    a.sequences.key_starts = size.key_starts.empty() ? 0 : key_starts.address();
    a.sequences.key_lengths = size.key_lengths.empty() ? 0 : key_lengths.address();
    a.sequences.query_rows = static_cast<std::uint32_t>(size.query_rows());
    a.sequences.key_rows = static_cast<std::uint32_t>(size.key_rows());
    if (size.sink) a.sink = sink.address();
    if (size.dies > 1) {
      const auto dies = static_cast<std::uint32_t>(size.dies);
      a.heads_per_die = a.query_heads / dies;
      a.die_multiplier = attention_forward::kv_head_multiplier(dies, 1);
    }
    a.workspace = workspace.address();
    a.splits = static_cast<std::uint32_t>(size.runs == 0 ? chunks : size.runs);
    a.query_head_multiplier = attention_forward::division_multiplier(a.query_heads);
    a.split_multiplier = attention_forward::division_multiplier(a.splits);
    return a;
  }

  attention_combine::Arguments combine_arguments() const {
    const attention_forward::Arguments a = arguments();
    const bool windowed = spec.mask == attention_forward::Mask::window;
    return {.workspace = a.workspace,
            .o = a.o,
            .o_head_stride = a.o_head_stride,
            .lse = size.wants_lse ? a.lse : 0,
            .lse_head_stride = a.lse_head_stride,
            .sink = a.sink,
            .query_starts = a.sequences.query_starts,
            .key_starts = a.sequences.key_starts,
            .key_lengths = a.sequences.key_lengths,
            .query_rows = a.sequences.query_rows,
            .query_length = a.query_length,
            .key_rows = a.sequences.key_rows,
            .key_length = a.key_length,
            .causal_offset = a.causal_offset,
            .bottom_right_mask = a.bottom_right_mask,
            .window_left = windowed ? a.window_left : attention_forward::unlimited_window,
            .window_right = windowed                                       ? a.window_right
                            : spec.mask == attention_forward::Mask::causal ? 0
                                                                           : attention_forward::unlimited_window,
            .query_heads = a.query_heads,
            .o_row_stride = a.o_row_stride,
            .scale_log2e = a.scale_log2e,
            .lists = {},
            .scales = {}};
  }

  double scale() const { return size.zero_scale ? 0 : 1 / std::sqrt(static_cast<double>(spec.head_dim_qk)); }
  bool has_lse() const { return spec.lse || (spec.split_keys != 0 && size.wants_lse); }

  // Empty, or how far the result is from float64.
  std::string error_of(const Ran& ran) const {
    if (size.wrong) return {};
    AttentionInputs inputs{.batch = size.batch(),
                           .query_length = size.queries,
                           .key_length = size.keys,
                           .query_heads = size.query_heads,
                           .kv_heads = kv_heads,
                           .head_dim = spec.head_dim_qk,
                           .head_dim_v = spec.head_dim_v,
                           .causal = spec.mask == Mask::causal,
                           .scale = scale(),
                           .q = q_values,
                           .k = k_values,
                           .v = v_values};
    inputs.window = spec.mask == Mask::window;
    inputs.window_left = window_left;
    inputs.window_right = window_right;
    inputs.query_starts = size.query_starts;
    inputs.key_starts = size.key_starts;
    inputs.key_lengths = size.key_lengths;
    if (size.sink) {
      inputs.sink = sink.copy();
      inputs.sink.resize(static_cast<std::size_t>(size.query_heads));
    }
    const AttentionAnswer exact = attention_reference(inputs);
    return compare_rows(storage, inputs, exact, ran.o,
                        has_lse() ? std::span<const float>(ran.lse) : std::span<const float>())
        .wrong();
  }

  ForwardSpec spec;
  SubjectProblem size;
  int kv_heads;
  Storage storage;
  std::vector<float> q_values;
  std::vector<float> k_values;
  std::vector<float> v_values;
  QueryArray q;
  DeviceArray<std::uint16_t> k;
  DeviceArray<std::uint16_t> v;
  DeviceArray<std::int32_t> query_starts;
  DeviceArray<std::int32_t> key_starts;
  DeviceArray<std::int32_t> key_lengths;
  DeviceArray<float> sink;
  mutable DeviceArray<std::uint16_t> o;
  mutable DeviceArray<float> lse;
  int chunks;
  mutable DeviceArray<std::uint32_t> workspace;
  std::vector<std::uint16_t> fresh_o;
  std::vector<float> fresh_lse;
  std::vector<std::uint32_t> fresh_workspace;
  Ran whole;  // what the kernels as they were compiled give
};

Subject::Ran Subject::run_problem(const Data& data, const Replacement* replacement,
                                  std::vector<std::set<std::uint32_t>>* visited) const {
  Ran ran;
  simgpu::Process& process = simgpu::Process::instance();
  process.take_findings(SIZE_MAX);
  process.take_reports(SIZE_MAX);
  data.q.restore();
  for (const auto* inputs : {&data.k, &data.v}) inputs->restore();
  for (const auto* lengths : {&data.query_starts, &data.key_starts, &data.key_lengths}) lengths->restore();
  data.sink.restore();
  data.o.set(data.fresh_o);
  data.lse.set(data.fresh_lse);
  data.workspace.set(data.fresh_workspace);
  const auto ordinals = simgpu::Device::open(kernels_.front().target(), 1);
  simgpu::Device& device = *simgpu::Device::find(ordinals->front());
  simgpu::Status status;
  for (std::size_t i = 0; i < kernels_.size() && status.ok(); ++i) {
    const bool replaced = replacement != nullptr && replacement->kernel == i;
    const auto module = device.load(replaced ? *replacement->code_object : code_objects_[i]);
    if (!module) {
      status = module.error();
      break;
    }
    attention_forward::Arguments forward;
    attention_combine::Arguments combine;
    attention_forward::LaunchGeometry geometry;
    std::span<const std::byte> kernarg;
    const auto queries = static_cast<std::uint32_t>(data.size.queries);
    const auto heads = static_cast<std::uint32_t>(data.size.query_heads);
    const auto batch = static_cast<std::uint32_t>(data.size.batch());
    if (const auto* spec = kernels_[i].get_if<ForwardSpec>()) {
      forward = data.arguments();
      kernarg = std::as_bytes(std::span(&forward, 1));
      geometry = attention_forward::launch_geometry(*spec, *targets::find_target(spec->target), batch, heads, queries,
                                                    forward.splits);
    } else {
      combine = data.combine_arguments();
      kernarg = std::as_bytes(std::span(&combine, 1));
      geometry = attention_combine::launch_geometry(kernels_[i].get<CombineSpec>(), batch, heads, queries);
    }
    std::optional<Visits> observer;
    if (visited != nullptr) observer.emplace((*visited)[i]);
    status = device.launch({.kernel = (*module)->kernels().front(),
                            .workgroups = {geometry.grid_x, geometry.grid_y, geometry.grid_z},
                            .workgroup_size = {geometry.threads, 1, 1},
                            .dynamic_lds_bytes = geometry.dynamic_lds_bytes,
                            .kernarg = kernarg,
                            .observer = observer ? &*observer : nullptr});
  }
  std::istringstream lines(process.take_findings(SIZE_MAX));
  for (std::string line; std::getline(lines, line);) {
    const std::string check = nlohmann::json::parse(line)["check"];
    if (!std::ranges::contains(ran.checks, check)) ran.checks.push_back(check);
  }
  std::istringstream reports(process.take_reports(SIZE_MAX));
  std::getline(reports, ran.first);
  if (!status.ok() && ran.first.empty()) ran.first = status.text;
  if (!status.ok() && ran.checks.empty()) ran.checks.emplace_back("fault");
  ran.o = data.o.copy();
  ran.lse = data.lse.copy();
  return ran;
}

Subject::Subject(std::vector<families::KernelSpec> kernels, std::vector<SubjectProblem> problems)
    : kernels_(std::move(kernels)), visited_(kernels_.size()) {
  for (const families::KernelSpec& spec : kernels_) {
    CompiledKernel kernel = known_kernel(spec);
    if (!kernel.error.empty()) {
      problem_ = kernel.error;
      return;
    }
    code_objects_.push_back(std::move(kernel.code_object));
  }
  // Memory is followed from its allocation on, so the settings come first.
  simgpu::Settings settings = simgpu::Process::instance().settings();
  settings.checks = simgpu::all_checks;
  settings.arrival = simgpu::Arrival::late;
  settings.rules = simgpu::Rules::strict;
  settings.threads = 1;
  settings.instruction_limit = most_instructions;
  simgpu::Process::instance().set_settings(settings);
  for (const SubjectProblem& size : problems) {
    data_.push_back(std::make_unique<Data>(kernels_.front().get<ForwardSpec>(), size));
    Data& data = *data_.back();
    data.whole = run_problem(data, nullptr, &visited_);
    problem_ = data.whole.first;
    if (problem_.empty()) problem_ = data.error_of(data.whole);
    if (problem_.empty() && differs(data, run_problem(data, nullptr, nullptr)))
      problem_ = "another result the second time";
    if (!problem_.empty()) {
      problem_ = std::format("{} queries, {} keys: {}", size.queries, size.keys, problem_);
      return;
    }
  }
}

Subject::~Subject() = default;

bool Subject::differs(const Data& data, const Ran& ran) {
  // As bytes: NaN is itself.
  return ran.o != data.whole.o ||
         std::memcmp(ran.lse.data(), data.whole.lse.data(), ran.lse.size() * sizeof(float)) != 0;
}

Outcome Subject::run(std::size_t kernel, const std::vector<std::byte>& code_object) const {
  const Replacement replacement{.kernel = kernel, .code_object = &code_object};
  for (const std::unique_ptr<Data>& data : data_) {
    const Ran ran = run_problem(*data, &replacement, nullptr);
    Outcome outcome{.checks = ran.checks, .first = ran.first, .differs = differs(*data, ran)};
    if (outcome.caught()) return outcome;
  }
  return {};
}

}  // namespace wavejit::tests
