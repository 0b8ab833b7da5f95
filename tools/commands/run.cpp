// run: one attention call from a user's arrays to arrays again, through the C ABI only.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/attention_reference.h"
#include "tools/commands/commands.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/modifiers.h"
#include "tools/npy.h"
#include "tools/output_file.h"
#include "tools/run_report.h"
#include "tools/sweep/simulated_gpu.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  EngineOptions engine;
  std::string family;
  std::string q;
  std::string k;
  std::string v;
  std::string out;
  std::string lse;
  std::string dtype = "fp16";
  std::string scale;
  Modifiers modifiers;
  bool check = false;
  bool json = false;
  bool cycles = false;
  std::string timeline;
  int repeat = 0;
};

using Clock = std::chrono::steady_clock;

// Names and times the steps around the call.
class Steps {
 public:
  explicit Steps(RunReport& report) : report_(&report), last_(Clock::now()) {}
  void ended(const char* name) {
    const auto now = Clock::now();
    report_->steps.emplace_back(name, static_cast<std::uint64_t>(std::chrono::nanoseconds(now - last_).count()));
    last_ = now;
  }

 private:
  RunReport* report_;
  Clock::time_point last_;
};

std::optional<float> parse_scale(const std::string& text) {
  float value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// What the three files must have in common; the library knows the rest.
Result<void> check_shapes(const Arguments& arguments, const NpyHeader& q, const NpyHeader& k, const NpyHeader& v) {
  const auto differs = [](const std::string& field, const std::string& path, const Shape& shape,
                          const std::string& what) {
    return failed(ExitCode::file, fmt::format("--{} {}: its shape is {}; {}", field, path, to_text(shape), what));
  };
  if (q.shape[0] < 1 || q.shape[1] < 1 || q.shape[2] < 1 || q.shape[3] < 1) {
    return differs("q", arguments.q, q.shape, "[batch, length, heads, head dim], each at least 1, is accepted");
  }
  if (k.shape[0] != q.shape[0])
    return differs("k", arguments.k, k.shape, fmt::format("q's batch of {} is accepted", q.shape[0]));
  if (k.shape[3] != q.shape[3])
    return differs("k", arguments.k, k.shape, fmt::format("q's head dim of {} is accepted", q.shape[3]));
  if (k.shape[2] < 1 || q.shape[2] % k.shape[2] != 0) {
    return differs("k", arguments.k, k.shape,
                   fmt::format("a number of heads that divides q's {} is accepted", q.shape[2]));
  }
  if (v.shape != k.shape)
    return differs("v", arguments.v, v.shape, fmt::format("k's {} is accepted", to_text(k.shape)));
  return {};
}

struct Inputs {
  Array q;
  Array k;
  Array v;
};

// Every header before any element: a wrong third file is told at once.
Result<Inputs> read_inputs(const Arguments& arguments, HalfType type, RunReport& report) {
  const auto q = read_npy_header("q", arguments.q);
  if (!q) return std::unexpected(q.error());
  const auto k = read_npy_header("k", arguments.k);
  if (!k) return std::unexpected(k.error());
  const auto v = read_npy_header("v", arguments.v);
  if (!v) return std::unexpected(v.error());
  if (auto shapes = check_shapes(arguments, *q, *k, *v); !shapes) return std::unexpected(shapes.error());

  Inputs inputs;
  for (const auto& [field, path, array] :
       {std::tuple("q", &arguments.q, &inputs.q), std::tuple("k", &arguments.k, &inputs.k),
        std::tuple("v", &arguments.v, &inputs.v)}) {
    auto read = read_npy(field, *path, type);
    if (!read) return std::unexpected(read.error());
    *array = std::move(*read);
    if (array->became_infinite > 0) {
      report.notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", field,
                                         array->became_infinite, to_text(type)));
    }
  }
  return inputs;
}

struct Outputs {
  OutputFile out;
  std::optional<OutputFile> lse;
  std::optional<OutputFile> timeline;
};

// The arrays would be gone with the first result.
Result<void> keep_inputs(const Arguments& arguments) {
  for (const auto& [output, to] : {std::pair("--out", &arguments.out), std::pair("--lse", &arguments.lse),
                                   std::pair("--timeline", &arguments.timeline)}) {
    for (const auto& [input, from] :
         {std::pair("--q", &arguments.q), std::pair("--k", &arguments.k), std::pair("--v", &arguments.v)}) {
      std::error_code none;
      if (!to->empty() && (*to == *from || std::filesystem::equivalent(*to, *from, none)))
        return failed(ExitCode::usage,
                      fmt::format("{} {}: it is also {}; another name is accepted", output, *to, input));
    }
  }
  return {};
}

Result<Outputs> open_outputs(const Arguments& arguments) {
  if (auto kept = keep_inputs(arguments); !kept) return std::unexpected(kept.error());
  auto out = OutputFile::open("out", arguments.out);
  if (!out) return std::unexpected(out.error());
  Outputs outputs{.out = std::move(*out), .lse = std::nullopt, .timeline = std::nullopt};
  if (!arguments.lse.empty()) {
    auto lse = OutputFile::open("lse", arguments.lse);
    if (!lse) return std::unexpected(lse.error());
    if (lse->path() == outputs.out.path() || arguments.lse == arguments.out) {
      return failed(ExitCode::usage,
                    fmt::format("--lse {}: it is also --out; another name is accepted", arguments.lse));
    }
    outputs.lse.emplace(std::move(*lse));
  }
  if (!arguments.timeline.empty()) {
    auto timeline = OutputFile::open("timeline", arguments.timeline);
    if (!timeline) return std::unexpected(timeline.error());
    if (arguments.timeline == arguments.out || arguments.timeline == arguments.lse) {
      return failed(ExitCode::usage,
                    fmt::format("--timeline {}: it is also {}; another name is accepted", arguments.timeline,
                                arguments.timeline == arguments.out ? "--out" : "--lse"));
    }
    outputs.timeline.emplace(std::move(*timeline));
  }
  return outputs;
}

// The arrays on the device and the call's arguments.
class Call {
 public:
  static Result<Call> prepare(wavejit_engine* engine, const Inputs& inputs, HalfType type, bool with_lse) {
    const Shape& q = inputs.q.shape;
    auto device_q = DeviceArray::allocate(engine, inputs.q.values.size() * 2);
    auto device_k = DeviceArray::allocate(engine, inputs.k.values.size() * 2);
    auto device_v = DeviceArray::allocate(engine, inputs.v.values.size() * 2);
    auto device_o = DeviceArray::allocate(engine, inputs.q.values.size() * 2);
    auto device_lse = DeviceArray::allocate(engine, with_lse ? static_cast<std::size_t>(q[0] * q[1] * q[2]) * 4 : 0);
    for (const auto* array : {&device_q, &device_k, &device_v, &device_o, &device_lse}) {
      if (!*array) return std::unexpected(array->error());
    }
    for (const auto& copied : {device_q->copy_in(inputs.q.values.data()), device_k->copy_in(inputs.k.values.data()),
                               device_v->copy_in(inputs.v.values.data())}) {
      if (!copied) return std::unexpected(copied.error());
    }
    Call call(engine, q, std::move(*device_q), std::move(*device_k), std::move(*device_v), std::move(*device_o),
              std::move(*device_lse));
    const wavejit_dtype dtype = type == HalfType::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16;
    const auto tensor = [dtype](const DeviceArray& memory, const Shape& shape) {
      return wavejit_dense_tensor(memory.data(), dtype, shape[0], shape[1], shape[2], shape[3]);
    };
    call.arguments_.size = sizeof call.arguments_;
    call.arguments_.q = tensor(call.q_, q);
    call.arguments_.k = tensor(call.k_, inputs.k.shape);
    call.arguments_.v = tensor(call.v_, inputs.v.shape);
    call.arguments_.o = tensor(call.o_, q);
    if (with_lse) call.arguments_.lse = wavejit_dense_tensor(call.lse_.data(), WAVEJIT_FP32, q[0], q[2], q[1], 1);
    return call;
  }

  void set(float scale, const Modifiers& modifiers, const ModifiersOnDevice& arrays) {
    arguments_.scale = scale;
    modifiers.describe(arguments_, arrays);
  }

  Result<void> launch(wavejit_call_report* report) {
    arguments_.report = report;
    return checked(wavejit_attention_forward(engine_, &arguments_, nullptr));
  }
  Result<void> wait() { return checked(wavejit_device_synchronize(engine_)); }

  Result<std::vector<std::uint16_t>> output() const {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(element_count(shape_)));
    if (auto copied = o_.copy_out(bits.data()); !copied) return std::unexpected(copied.error());
    return bits;
  }
  Result<std::vector<float>> lse() const {
    std::vector<float> values(static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2]));
    if (auto copied = lse_.copy_out(values.data()); !copied) return std::unexpected(copied.error());
    return values;
  }

 private:
  Call(wavejit_engine* engine, const Shape& shape, DeviceArray q, DeviceArray k, DeviceArray v, DeviceArray o,
       DeviceArray lse)
      : engine_(engine),
        shape_(shape),
        q_(std::move(q)),
        k_(std::move(k)),
        v_(std::move(v)),
        o_(std::move(o)),
        lse_(std::move(lse)) {}

  wavejit_engine* engine_;
  Shape shape_;
  DeviceArray q_;
  DeviceArray k_;
  DeviceArray v_;
  DeviceArray o_;
  DeviceArray lse_;
  wavejit_attention_forward_arguments arguments_{};
};

Result<void> repeat_calls(Call& call, int count, const std::vector<std::uint16_t>& first, RunReport& report) {
  std::vector<std::uint64_t> times;
  wavejit_call_report last{};
  last.size = sizeof last;
  for (int i = 0; i < count; ++i) {
    const bool final = i + 1 == count;
    const auto started = Clock::now();
    if (auto launched = call.launch(final ? &last : nullptr); !launched) return launched;
    times.push_back(static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - started).count()));
    if (auto waited = call.wait(); !waited) return waited;
    const auto again = call.output();
    if (!again) return std::unexpected(again.error());
    report.repeats_identical = report.repeats_identical && *again == first;
  }
  std::ranges::sort(times);
  report.repeats = count;
  report.median_repeat_ns = times[times.size() / 2];
  report.last_origin = origin_text(last.origin);
  return {};
}

// Why the clock did not time the call, of what it says.
std::string refusal_of(const std::string& cycles) {
  std::istringstream lines(cycles);
  for (std::string line; std::getline(lines, line);) {
    const auto launch = nlohmann::json::parse(line, nullptr, false);
    if (launch.is_object() && launch.contains("refused")) return launch["refused"].get<std::string>();
  }
  return "nothing was launched";
}

Result<ExitCode> run(Arguments& arguments) {
  if (arguments.family != "attention_forward") {
    return failed(ExitCode::usage, fmt::format("family '{}' is not accepted; attention_forward is", arguments.family));
  }
  const HalfType type = *parse_half_type(arguments.dtype);
  RunReport report;
  Steps steps(report);

  const auto inputs = read_inputs(arguments, type, report);
  if (!inputs) return std::unexpected(inputs.error());
  if (auto read = arguments.modifiers.read(type, inputs->q.shape, inputs->k.shape); !read)
    return std::unexpected(read.error());
  auto outputs = open_outputs(arguments);
  if (!outputs) return std::unexpected(outputs.error());
  steps.ended("read");

  const wavejit_engine_options options = arguments.engine.options();
  wavejit_engine* raw_engine = nullptr;
  if (auto created = checked(wavejit_engine_create(&options, &raw_engine)); !created)
    return std::unexpected(created.error());
  const std::unique_ptr<wavejit_engine, DestroyEngine> engine(raw_engine);
  report.target = wavejit_engine_target(raw_engine);
  report.device_name = wavejit_engine_device_name(raw_engine);
  steps.ended("open device");
  std::optional<sweep::SimulatedGpu> clock;
  if (arguments.cycles || !arguments.timeline.empty()) {
    clock = sweep::SimulatedGpu::resident();
    if (!clock) {
      return failed(ExitCode::usage, fmt::format("{}: {} is not simulated; --device sim:<target> is accepted",
                                                 arguments.cycles ? "--cycles" : "--timeline", report.device_name));
    }
  }

  const bool with_lse = outputs->lse.has_value();
  auto call = Call::prepare(raw_engine, *inputs, type, with_lse);
  if (!call) return std::unexpected(call.error());
  const auto head_dim = static_cast<double>(inputs->q.shape[3]);
  const float scale =
      arguments.scale.empty() ? static_cast<float>(1.0 / std::sqrt(head_dim)) : *parse_scale(arguments.scale);
  const auto modifiers = arguments.modifiers.copy_to(raw_engine);
  if (!modifiers) return std::unexpected(modifiers.error());
  call->set(scale, arguments.modifiers, *modifiers);
  steps.ended("copy in");

  report.call.size = sizeof report.call;
  constexpr std::uint64_t timeline_cycles = 8192;  // a few tiles of keys
  if (clock) {
    clock->set_clock(sweep::sampled_workgroups);
    clock->set_timeline(outputs->timeline ? timeline_cycles : 0);
  }
  if (auto launched = call->launch(&report.call); !launched) return std::unexpected(launched.error());
  steps.ended("call");
  if (auto waited = call->wait(); !waited) return std::unexpected(waited.error());
  std::string trace;
  if (clock) {
    clock->set_clock(0);
    report.cycles = clock->take_cycles();
    clock->set_timeline(0);
    trace = clock->take_timeline();
  }
  if (outputs->timeline && trace.empty()) {
    return failed(ExitCode::usage, fmt::format("--timeline {}: the call was not timed: {}", arguments.timeline,
                                               refusal_of(report.cycles)));
  }
  steps.ended("wait");
  const auto bits = call->output();
  if (!bits) return std::unexpected(bits.error());
  std::vector<float> lse;
  if (with_lse) {
    auto copied = call->lse();
    if (!copied) return std::unexpected(copied.error());
    lse = std::move(*copied);
  }
  steps.ended("copy out");

  if (arguments.repeat > 0) {
    if (auto repeated = repeat_calls(*call, arguments.repeat, *bits, report); !repeated)
      return std::unexpected(repeated.error());
    steps.ended("repeat");
  }

  std::vector<float> output(bits->size());
  std::ranges::transform(*bits, output.begin(), [type](std::uint16_t element) { return decode(type, element); });
  if (arguments.check) {
    AttentionProblem problem;
    problem.type = type;
    problem.q = &inputs->q;
    problem.k = &inputs->k;
    problem.v = &inputs->v;
    problem.scale = scale;
    arguments.modifiers.describe(problem);
    const ExactAttention exact = exact_attention(problem);
    report.judgement = judge(problem, exact, output, lse);
    steps.ended("check");
  }

  const Shape& q = inputs->q.shape;
  const std::vector<std::int64_t> lse_shape = {q[0], q[2], q[1]};
  if (auto written = outputs->out.write(npy_bytes(output, q)); !written) return std::unexpected(written.error());
  if (with_lse) {
    if (auto written = outputs->lse->write(npy_bytes(lse, lse_shape)); !written)
      return std::unexpected(written.error());
  }
  if (auto done = outputs->out.commit(); !done) return std::unexpected(done.error());
  report.written.push_back(fmt::format("{} {} float32", arguments.out, to_text(q)));
  if (outputs->timeline) {
    if (auto done = outputs->timeline->finish(trace); !done) return std::unexpected(done.error());
    report.written.push_back(fmt::format("{} a timeline of {} cycles", arguments.timeline, timeline_cycles));
  }
  if (with_lse) {
    if (auto done = outputs->lse->commit(); !done) return std::unexpected(done.error());
    report.written.push_back(fmt::format("{} [{}, {}, {}] float32", arguments.lse, q[0], q[2], q[1]));
  }
  steps.ended("write");

  fmt::print("{}", arguments.json ? to_json(report) : to_text(report));
  return report.passed() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_run(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("run", "Compute attention on your arrays, and check the result if you like");
  command->add_option("family", arguments->family, "attention_forward")->required()->type_name("FAMILY");
  command->add_option("--q", arguments->q, "queries [batch, length, heads, head dim]")
      ->required()
      ->type_name("FILE.npy");
  command->add_option("--k", arguments->k, "keys [batch, length, kv heads, head dim]")
      ->required()
      ->type_name("FILE.npy");
  command->add_option("--v", arguments->v, "values, shaped as the keys")->required()->type_name("FILE.npy");
  command->add_option("--out", arguments->out, "the result, shaped as the queries, float32")
      ->required()
      ->type_name("FILE.npy");
  command->add_option("--lse", arguments->lse, "also the log-sum-exp [batch, heads, length], float32")
      ->type_name("FILE.npy");
  arguments->modifiers.add_options(*command);
  limit(command->add_option("--scale", arguments->scale, "of q·k before the softmax (default: 1 / sqrt(head dim))"),
        "NUMBER", [](const std::string& given) {
          return parse_scale(given) ? std::string()
                                    : fmt::format("'{}' is not accepted; finite numbers are, as 0.125", given);
        });
  add_choice(*command, "--dtype", arguments->dtype, {"fp16", "bf16"}, "the kernel's type; inputs are rounded to it")
      ->capture_default_str();
  arguments->engine.add_device(*command);
  command->add_flag("--check", arguments->check,
                    "compare with attention in float64 on the host; exit code 1 beyond the bound");
  limit_count(command->add_option("--repeat", arguments->repeat, "call so many times more, and compare the bits"),
              999'999);
  command->add_flag("--cycles", arguments->cycles,
                    "also predict the cycles of the call, from a sample of its workgroups; simulated devices only");
  command
      ->add_option("--timeline", arguments->timeline,
                   "the same, and cycles of one compute unit for Perfetto or chrome://tracing")
      ->type_name("FILE.json");
  command->add_flag("--json", arguments->json, "report for programs instead of people");
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(
      "Arrays are NumPy's: numpy.save('q.npy', q) with float16 or float32, C or Fortran order. Outputs appear whole or "
      "not at all.\n\n"
      "Examples\n"
      "  wavejit run attention_forward --q q.npy --k k.npy --v v.npy --out o.npy --device sim:gfx950 --check\n"
      "  wavejit run attention_forward --q q.npy --k k.npy --v v.npy --out o.npy --lse lse.npy --causal --dtype bf16");
  command->callback([&chosen, arguments] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace wavejit::tools
