// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "tools/doctor/checker.h"
#include "tools/doctor/examination.h"
#include "tools/doctor/patterns.h"

namespace wavejit::tools::doctor {

AsBuilt::AsBuilt() : gpu_(SimulatedGpu::resident()) {
  if (!gpu_) return;
  before_ = gpu_->settings();
  wavejit_simgpu_settings plain = before_;
  plain.checks = 0;
  plain.schedule = WAVEJIT_SIMGPU_IN_ORDER;
  plain.arrival = WAVEJIT_SIMGPU_ARRIVES_EARLY;
  plain.matrix = WAVEJIT_SIMGPU_MATRIX_SEQUENTIAL;
  plain.transcendentals = WAVEJIT_SIMGPU_TRANSCENDENTALS_NEAREST;
  gpu_->set(plain);
}

AsBuilt::~AsBuilt() {
  if (gpu_) gpu_->set(before_);
}

bool Choice::wants(std::string_view name, int risk) const {
  if (risk > most_risk) return false;
  return only.empty() || std::ranges::any_of(only, [&](const std::string& start) { return name.starts_with(start); });
}

std::vector<Question> probe_questions(const Subjects& subjects) {
  std::vector<Question> questions;
  const std::string_view target = wavejit_engine_target(subjects.gpu->engine());
  for (const Probe& probe : all_probes()) {
    if (probe.target != target) continue;
    questions.push_back({.finding = finding_of(probe), .ask = [&probe, subjects](Finding finding) {
                           const std::vector<std::uint32_t> words = words_of(probe);
                           const auto answer = subjects.gpu->run(probe, words);
                           if (!answer) {
                             finding.status = Status::failed;
                             finding.text = answer.error().what;
                             return finding;
                           }
                           std::vector<std::uint32_t> expected;
                           if (subjects.simulated != nullptr) {
                             const AsBuilt as_built;
                             if (const auto simulated = subjects.simulated->run(probe, words)) expected = *simulated;
                           }
                           return check(probe, words, *answer, expected);
                         }});
  }
  return questions;
}

std::vector<Question> all_questions(const Subjects& subjects) {
  std::vector<Question> questions = fact_questions(subjects);
  for (auto* more : {probe_questions, call_questions, timing_questions})
    std::ranges::move(more(subjects), std::back_inserter(questions));
  std::ranges::stable_sort(questions, {}, [](const Question& question) { return question.finding.risk; });
  return questions;
}

}  // namespace wavejit::tools::doctor
