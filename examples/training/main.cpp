// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trains a small decoder on wavejit: README.md in this folder says what it shows. Exit code 1: a promise did not hold.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "attention.h"
#include "model.h"
#include "optimiser.h"

namespace training {

namespace {

constexpr std::uint64_t seed = 2026;
constexpr float rate = 3e-3F;
// What is promised of gradients with bf16 attention: of each matrix, the length of the difference over its own.
constexpr double gradient_bound = 0.02;

struct Options {
  std::string device;  // empty: WAVEJIT_DEVICE, else the GPU of this machine
  std::string cache_folder;
  int steps = 6;
};

// Each token follows from the one before, so that there is something to learn.
std::vector<Sequence> make_batch(const Shape& shape, int sequences, int step) {
  Numbers numbers(seed + static_cast<std::uint64_t>(step));
  std::vector<Sequence> batch;
  for (int i = 0; i < sequences; ++i) {
    Sequence sequence = {numbers.below(shape.vocabulary)};
    while (static_cast<int>(sequence.size()) <= shape.length)
      sequence.push_back((5 * sequence.back() + 7) % shape.vocabulary);
    batch.push_back(std::move(sequence));
  }
  return batch;
}

// The float64 gradients beside differences of float64 losses, at some numbers of each matrix.
bool check_reference(const Shape& shape, std::span<const Sequence> batch) {
  PlainAttention attention(shape);
  auto parameters = initial_parameters<double>(shape, seed);
  Parameters<double> gradients(shape);
  loss_and_gradients<double>(parameters, attention, batch, &gradients);
  Numbers numbers(seed);
  double largest = 0;
  int count = 0;
  const auto weights = parameters.matrices();
  const auto slopes = gradients.matrices();
  for (std::size_t m = 0; m < weights.size(); ++m)
    for (int i = 0; i < 2; ++i, ++count) {
      const int at = numbers.below(static_cast<int>(weights[m]->values.size()));
      double& weight = weights[m]->values[at];
      const double kept = weight;
      const double step = 1e-5;
      weight = kept + step;
      const double above = loss_and_gradients<double>(parameters, attention, batch, nullptr);
      weight = kept - step;
      const double below = loss_and_gradients<double>(parameters, attention, batch, nullptr);
      weight = kept;
      const double slope = (above - below) / (2 * step);
      largest = std::max(largest, std::fabs(slope - slopes[m]->values[at]) / (1 + std::fabs(slope)));
    }
  std::printf("reference: %d of its gradients beside differences of losses, largest difference %.1e\n", count, largest);
  return largest < 1e-6;
}

bool check_gradients(wavejit::Engine& engine, const Shape& shape, std::span<const Sequence> batch) {
  DeviceAttention attention(engine, shape);
  PlainAttention plain(shape);
  auto parameters = initial_parameters<float>(shape, seed);
  auto exact_parameters = initial_parameters<double>(shape, seed);
  Parameters<float> gradients(shape);
  Parameters<double> exact(shape);
  const float loss = loss_and_gradients<float>(parameters, attention, batch, &gradients);
  const double exact_loss = loss_and_gradients<double>(exact_parameters, plain, batch, &exact);
  double largest = 0;
  const auto found = gradients.matrices();
  const auto wanted = exact.matrices();
  for (std::size_t m = 0; m < found.size(); ++m) {
    double error = 0;
    double length = 0;
    for (std::size_t i = 0; i < found[m]->values.size(); ++i) {
      error += std::pow(found[m]->values[i] - wanted[m]->values[i], 2);
      length += std::pow(wanted[m]->values[i], 2);
    }
    const double part = std::sqrt(error / length);
    if (!(part <= largest)) largest = part;  // a NaN stays
  }
  std::printf(
      "gradients: %zu matrices beside float64, largest error %.4f of a matrix's length; loss %.4f, exact %.4f\n",
      found.size(), largest, loss, exact_loss);
  return largest < gradient_bound;
}

// Trains with batches cut into micro-batches of these sizes; in reverse, each batch's last sequence comes first.
Parameters<float> train(wavejit::Engine& engine, const Shape& shape, const std::vector<int>& splits, int steps,
                        std::vector<float>& losses, bool in_reverse = false) {
  DeviceAttention attention(engine, shape);
  auto parameters = initial_parameters<float>(shape, seed);
  Adam optimiser(shape, rate);
  int sequences = 0;
  for (const int split : splits) sequences += split;
  for (int step = 0; step < steps; ++step) {
    std::vector<Sequence> batch = make_batch(shape, sequences, step);
    if (in_reverse) std::reverse(batch.begin(), batch.end());
    std::span<const Sequence> rest = batch;
    Parameters<float> gradients(shape);
    float loss = 0;
    for (const int split : splits) {
      loss = loss_and_gradients<float>(parameters, attention, rest.first(split), &gradients, loss);
      rest = rest.subspan(split);
    }
    losses.push_back(loss / static_cast<float>(sequences * shape.length));
    optimiser.step(parameters, gradients);
  }
  return parameters;
}

std::size_t differing_bits(Parameters<float>& one, Parameters<float>& other) {
  std::size_t differing = 0;
  const auto first = one.matrices();
  const auto second = other.matrices();
  for (std::size_t m = 0; m < first.size(); ++m)
    for (std::size_t i = 0; i < first[m]->values.size(); ++i)
      if (std::bit_cast<std::uint32_t>(first[m]->values[i]) != std::bit_cast<std::uint32_t>(second[m]->values[i]))
        ++differing;
  return differing;
}

bool check_splits(wavejit::Engine& engine, const Shape& shape, int steps) {
  std::vector<float> losses;
  Parameters<float> whole = train(engine, shape, {6}, steps, losses);
  for (int step = 0; step < steps; ++step) std::printf("step %d: loss %.4f\n", step + 1, losses[step]);
  std::size_t weights = 0;
  for (const Matrix<float>* matrix : whole.matrices()) weights += matrix->values.size();
  bool same = true;
  for (const std::vector<int>& splits : {std::vector{3, 3}, std::vector{1, 2, 3}}) {
    std::vector<float> others;
    Parameters<float> pieces = train(engine, shape, splits, steps, others);
    const std::size_t differing = differing_bits(whole, pieces);
    std::string name;
    for (const int split : splits) name += (name.empty() ? "" : " + ") + std::to_string(split);
    std::printf("batches of %s in place of 6: %zu of %zu weights differ after %d steps%s\n", name.c_str(), differing,
                weights, steps, others == losses ? ", no loss" : ", LOSSES DO");
    same = same && differing == 0 && others == losses;
  }
  std::vector<float> others;
  Parameters<float> reversed = train(engine, shape, {6}, steps, others, true);
  const std::size_t differing = differing_bits(whole, reversed);
  std::printf("the same sequences in reverse: %zu weights differ, for that is another sum\n", differing);
  same = same && differing > 0;
  const bool learned = losses.back() < losses.front();
  if (!learned) std::printf("the loss did NOT fall\n");
  return same && learned;
}

int usage(const std::string& problem) {
  std::fprintf(stderr, "training: %s\nusage: training [--device sim:gfx950] [--cache-dir FOLDER] [--steps 2 … 1000]\n",
               problem.c_str());
  return 2;
}

int run(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string option = arguments[i];
    if (i + 1 == count) return usage(option + ": no value");
    const std::string value = arguments[i + 1];
    if (option == "--device") {
      options.device = value;
    } else if (option == "--cache-dir") {
      options.cache_folder = value;
    } else if (option == "--steps") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.steps);
      if (error != std::errc() || *end != '\0' || options.steps < 2 || options.steps > 1000)
        return usage("--steps " + value + ": accepted: 2 … 1000");
    } else {
      return usage(option + ": no such option");
    }
  }
  wavejit::EngineOptions engine_options;
  if (!options.device.empty()) engine_options.device = options.device;
  if (!options.cache_folder.empty()) engine_options.cache_directory = options.cache_folder;
  wavejit::Engine engine(engine_options);
  const Shape shape;
  const std::vector<Sequence> batch = make_batch(shape, 2, 0);
  const bool exact = check_reference(shape, std::span(batch).first(1));
  const bool near = check_gradients(engine, shape, batch);
  const bool same = check_splits(engine, shape, options.steps);
  if (exact && near && same) return 0;
  std::fprintf(stderr, "training: a promise did NOT hold\n");
  return 1;
}

}  // namespace

}  // namespace training

int main(int count, char** arguments) {
  try {
    return training::run(count, arguments);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "training: %s\n", failure.what());
    return 3;
  }
}
